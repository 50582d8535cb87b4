"""The table of tests/cuda/rates.py, of a model so small that a CPU runs it."""

import contextlib
import importlib.util
import io
import os
import signal
import sys
import time
import unittest
from unittest import mock

import torch
import transformers

import common
import fuseplan

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../cuda'))
import rates  # noqa: E402
import traffic  # noqa: E402


def draw_tiny():
    return transformers.BertModel(transformers.BertConfig(
        hidden_size=32, num_attention_heads=2, intermediate_size=64, num_hidden_layers=2))


@unittest.skipUnless(importlib.util.find_spec('sentence_transformers'), 'sentence-transformers is not installed')
class Rates(common.Case):

    def measure(self, compiler, change=lambda embeddings: embeddings):
        """The table's rows, and how many are wrong.  compiler: the side effect of compiling."""
        encode, out = fuseplan.encode, io.StringIO()
        with (mock.patch.dict(traffic.MODELS, {'tiny': draw_tiny}), mock.patch.object(rates, 'SHAPES', [(64, 128)]),
              mock.patch.object(fuseplan, 'encode', lambda *a, **k: change(encode(*a, **k))),
              mock.patch.object(torch.nn.Module, 'compile', side_effect=compiler),
              mock.patch.dict(sys.modules, {'onnxruntime': None}), contextlib.redirect_stdout(out)):
            wrong = rates.measure('tiny', count=256)
        rows = [line[2:-2].split(' | ') for line in out.getvalue().splitlines() if line.startswith('| ')]
        return {row[0]: row[1:] for row in rows}, wrong

    def test_table(self):
        rows, wrong = self.measure(RuntimeError('no compiler\nfound'))
        self.assertEqual(wrong, 0)
        self.assertEqual(rows['encode, torch.compile'], ['RuntimeError: no compiler'])
        self.assertIn('onnxruntime', rows['encode, onnxruntime'][0])
        for way in 'encode, plain', 'encode, our layers', 'fuseplan.encode':
            batch, rate, _, share, near = rows[way]
            self.assertIn(int(batch), rates.BATCHES)
            self.assertAlmostEqual(float(rate) / float(rows['tokenizer alone'][1]), float(share), delta=0.01)
            self.assertGreaterEqual(float(near), rates.COSINE_MIN)

    def test_wrong(self):
        def hang(**_):  # for less than the limit, which runs already
            self.assertGreater(signal.alarm(1), 0)
            time.sleep(100)
        rows, wrong = self.measure(hang, lambda embeddings: embeddings[::-1].copy())
        self.assertEqual(wrong, 1)
        self.assertEqual(rows['encode, torch.compile'], ['TimeUp: not ready in 60 s'])
        self.assertLess(float(rows['fuseplan.encode'][-1]), rates.COSINE_MIN)


if __name__ == '__main__':
    unittest.main()
