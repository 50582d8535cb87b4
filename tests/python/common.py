"""What tests of the package share."""

import atexit
import copy
import os
import shutil
import tempfile
import unittest
import warnings

warnings.filterwarnings('ignore')
_root = tempfile.mkdtemp()
atexit.register(shutil.rmtree, _root, ignore_errors=True)
os.environ.update(FUSEPLAN_DB=os.path.join(_root, 'db'), FUSEPLAN_CACHE=os.path.join(_root, 'cache'),
                  FUSEPLAN_LOCK_DIR=_root, OMP_WAIT_POLICY='passive', HF_HUB_OFFLINE='1',
                  TOKENIZERS_PARALLELISM='false')
os.environ.setdefault('FUSEPLAN_PYTHON_CACHE', os.path.join(_root, 'libraries'))

import torch  # noqa: E402: after the environment is set
import transformers  # noqa: E402

import fuseplan  # noqa: E402
import models  # noqa: E402
from fuseplan import probe  # noqa: E402

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
torch.set_grad_enabled(False)
SHAPES = [(2, 32)]


class Case(unittest.TestCase):

    def assertNear(self, got, want, most=1e-5):
        self.assertEqual(got.shape, want.shape)
        self.assertLess(float((got - want).norm() / want.norm()), most)

    def assertAlike(self, pair, call):
        """What it gives of our model is near to what it gives of the plain one."""
        want, got = map(call, pair)
        self.assertNear(got, want)

    def assertRefused(self, text, function, *args, kind=fuseplan.Unsupported, **kwargs):
        with self.assertRaises(kind) as caught:
            function(*args, **kwargs)
        self.assertIn(text, str(caught.exception))


def pair(*args, **kwargs):
    """A model that is drawn, and a copy with our layers."""
    plain = models.draw(*args, **kwargs)
    return plain, fuseplan.optimize(copy.deepcopy(plain), SHAPES)


def run(model, batch=2, seq_len=20, lengths=None, **kwargs):
    """The model's output, and (B,S) where tokens are, or None."""
    inputs, real = probe.draw_inputs(model, batch, seq_len, lengths)
    return probe.run_model(model, {**inputs, **kwargs}), real
