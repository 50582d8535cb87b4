"""How far tests/cuda/peers.py lets results be from those in fp32, by type."""

import argparse
import contextlib
import io
import os
import sys
from unittest import mock

import torch

import common

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../cuda'))
import peers  # noqa: E402


class Peers(common.Case):

    def judge(self, dtype, error):
        """Whether fuseplan's result and a variant's pass, each so far from what is wanted."""
        point = peers.Point(argparse.Namespace(dtype=dtype, layer=[]), 'flan-t5-base', 2, 4, 'full')
        want, dump, said = torch.ones(2, 4, 8), mock.MagicMock(), [io.StringIO(), io.StringIO()]
        dump.real.return_value = torch.ones(2, 4, dtype=torch.bool)
        with (mock.patch.object(peers.torch_layers, 'Dump', return_value=dump), contextlib.redirect_stderr(said[0]),
              mock.patch.object(peers.torch_layers, 'recompute_layers', return_value=error)):
            right = peers.same_work('directory', point)
        with contextlib.redirect_stderr(said[1]):
            same = peers.same_results(dump, {'compile': want * (1 + error)}, want, point)
        self.assertEqual(right, 'is right' in said[0].getvalue())
        self.assertEqual(same, not said[1].getvalue())
        return right, same

    def test_bounds(self):
        self.assertEqual(self.judge('fp16', 0.009), (True, True))
        self.assertEqual(self.judge('fp16', 0.014), (False, False))
        self.assertEqual(self.judge('bf16', 0.014), (True, True))
        self.assertEqual(self.judge('bf16', 0.09), (False, False))
        self.assertEqual(self.judge('bf16', float('nan')), (False, False))
