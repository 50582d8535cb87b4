"""Embeddings by the library: what memory new tensors have is NaN here, so that rows that were not written show."""

import copy
import pickle
import unittest
from unittest import mock

import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

import common
import models
import test_graphs
from common import SHAPES
from fuseplan import capture, embeddings, explain, optimize, restore, stats
from fuseplan.replace import find_layers
from fuseplan.stack import asking

NAMES = ('bert', 'roberta', 'xlm-roberta', 'camembert', 'electra', 'distilbert', 'mpnet', 'nomic', 'modernbert')
needs_masks = unittest.skipUnless(transformers.__version__ >= '5', 'masks are taken from models of transformers 5')
OURS = 'embeddings: by the library, without rows of padding'
THEIRS = "embeddings: by the model's own module: "


def draw(name='bert', **fields):
    return models.draw(name, **({'embedding_size': 32} if name == 'electra' else {}), **fields)


def tokens(batch=2, seq_len=20):
    return torch.randint(0, 64, (batch, seq_len), generator=torch.Generator().manual_seed(1))


def masks(batch, seq_len):
    """None, padding on the right, on the left, and of another type."""
    right = (torch.arange(seq_len) < torch.linspace(1, seq_len, batch).int()[:, None]).long()
    return None, right, right.flip(1), right.bool()


class Seeing(TorchDispatchMode):

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Case(common.Case):

    def setUp(self):
        torch.use_deterministic_algorithms(True)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        self.plain = draw()
        self.ours = optimize(copy.deepcopy(self.plain), SHAPES)

    @property
    def calls(self):
        (found,) = stats(self.ours).values()
        return found['embeddings']

    def assertSame(self, mask=None, *, by_library=True, **inputs):
        inputs = {'input_ids': tokens(), 'attention_mask': mask, **inputs}
        before = self.calls
        want, got = (m(**inputs)[0] for m in (self.plain, self.ours))
        real = slice(None) if mask is None else mask.bool()
        self.assertNear(got[real], want[real])
        self.assertEqual(self.calls - before, int(by_library))


class Classes(Case):

    def test_each(self):
        for name in filter(models.has, NAMES):
            with self.subTest(name):
                self.plain = draw(name)
                self.ours = optimize(copy.deepcopy(self.plain), SHAPES)
                self.assertIn(OURS, explain(self.ours))
                types = {'token_type_ids': tokens(5) % 2} if hasattr(
                    self.plain.embeddings, 'token_type_embeddings') else {}
                for mask in masks(5, 20):
                    self.assertSame(mask, input_ids=tokens(5))
                    self.assertSame(mask, input_ids=tokens(5), **types)
                self.assertSame(torch.ones(2, 32).long(), input_ids=tokens(2, 32))

    @needs_masks
    def test_rows(self):
        """The layers get rows of tokens alone, and all where there is no mask."""
        engine, got = find_layers(self.ours)[0].stack.engine, []
        for mask in masks(2, 20):
            with mock.patch.object(engine, '_run', side_effect=lambda x, *_: got.append(x) or [x]):
                self.ours(input_ids=tokens(), attention_mask=mask)
            kept = torch.ones(2, 20).bool() if mask is None else mask.bool()
            self.assertTrue(got[-1][~kept].isnan().all())
            self.assertNear(got[-1][kept], self.plain.embeddings(tokens())[kept], 1e-6)

    @needs_masks
    def test_graphs(self):
        modes, run = [], embeddings.Embeddings.run

        def see(*args, **kwargs):
            modes.append(type(_get_current_dispatch_mode()))
            return run(*args, **kwargs)
        with mock.patch.dict(test_graphs.graphs.kinds, cpu=test_graphs.OnCpu), mock.patch.object(
                test_graphs.masks, 'read', test_graphs.read_as_on_gpu), mock.patch.object(
                    embeddings.Embeddings, 'run', see):
            self.ours = optimize(copy.deepcopy(self.plain), SHAPES)
            for mask in masks(2, 20)[:3]:
                for i in range(5):
                    ids = (tokens() + i) % 64
                    want, got = (m(input_ids=ids, attention_mask=mask)[0] for m in (self.plain, self.ours))
                    real = slice(None) if mask is None else mask.bool()
                    self.assertNear(got[real], want[real])
        (found,) = stats(self.ours).values()
        self.assertGreater(sum(shape['replays'] for shape in found['shapes'].values()), 4)
        self.assertEqual(modes.count(capture.Recorder), 4)  # two for each of two graphs

    @needs_masks
    def test_wrong_ids(self):
        ids, right = tokens(), masks(2, 20)[1]
        ids[0, 19] = 64  # of padding: it is not read
        self.ours(ids, attention_mask=right)
        self.assertRefused('the id of token 19 of sequence 0 is 64; expected 0 to 63', self.ours, ids,
                           kind=RuntimeError)
        self.assertRefused('the type of token 0 of sequence 0 is 2; expected 0 to 1', self.ours, tokens(), right,
                           tokens() * 0 + 2, kind=RuntimeError)


class Modules(Case):
    """Where the module itself runs."""

    def test_other_readers(self):
        right = masks(2, 20)[1]
        seen = []

        def see(module, args, output=None):
            seen.append(args[0] if output is None else output)
        for where in self.ours.embeddings, self.ours.embeddings.word_embeddings, self.ours.embeddings.LayerNorm:
            hook = where.register_forward_hook(see)
            self.assertSame(right, by_library=False)
            hook.remove()
        hook = self.ours.encoder.register_forward_pre_hook(see)
        self.assertSame(right, by_library=False)
        hook.remove()
        hook = torch.nn.modules.module.register_module_forward_hook(see)
        self.assertSame(right, by_library=False)
        hook.remove()
        self.assertFalse(any(t.isnan().any() for t in seen if torch.is_tensor(t) and t.is_floating_point()
                             and t.shape[-1] == 32 and t.dim() == 3))
        want, got = (m(tokens(), right, output_hidden_states=True).hidden_states[0] for m in (self.plain, self.ours))
        self.assertTrue(torch.equal(got, want))
        self.assertTrue(torch.equal(self.ours.embeddings(tokens()), want))
        self.assertSame(right)

    def test_other_calls(self):
        right = masks(2, 20)[1]
        self.assertSame(right, by_library=False, input_ids=None, inputs_embeds=torch.randn(2, 20, 32))
        self.assertSame(right, by_library=False, position_ids=torch.arange(19, -1, -1)[None])
        self.assertSame(right, by_library=False, token_type_ids=torch.ones(2, 20).int())
        self.assertSame(right, by_library=False, input_ids=tokens().int())
        hook = self.ours.register_forward_pre_hook(
            lambda module, args, kwargs: (args, {**kwargs, 'input_ids': tokens().clone()}), with_kwargs=True)
        want, got = (m(input_ids=ids, attention_mask=right)[0] for m, ids in ((self.plain, tokens()),
                                                                             (self.ours, tokens().flip(1))))
        self.assertNear(got[right.bool()], want[right.bool()])
        hook.remove()
        with Seeing():
            self.assertSame(right, by_library=False)
        with torch.autocast('cpu', torch.bfloat16):
            before = self.calls
            self.ours(tokens(), right)
            self.assertEqual(self.calls, before)
        long = torch.arange(40) < torch.tensor([[40], [9]])
        self.assertSame(long.long(), by_library=True, input_ids=tokens(2, 40))
        with asking([find_layers(self.ours)[0].stack], lengths=long.sum(1).int()):
            self.assertSame(long.long(), by_library=True, input_ids=tokens(2, 40))
        self.assertSame(right)

    def test_weights(self):
        """Those of the module at the time of a call."""
        for model in self.plain, self.ours:
            model.embeddings.word_embeddings.weight.mul_(1.5)
            model.embeddings.LayerNorm.bias = torch.nn.Parameter(torch.ones(32))
        self.assertSame()
        for model in self.plain, self.ours:
            torch.manual_seed(1)
            model.resize_token_embeddings(80)
        self.assertSame(input_ids=tokens() + 16)
        for model in self.plain, self.ours:
            model.embeddings.LayerNorm = torch.nn.LayerNorm(32, elementwise_affine=False)
        self.assertSame(by_library=False)
        for model in self.plain, self.ours:
            model.embeddings.LayerNorm = torch.nn.RMSNorm(32).eval()
        self.assertSame(by_library=False)

    def test_copies(self):
        names = list(self.plain.state_dict())
        self.assertEqual(list(self.ours.state_dict()), names)
        for other in copy.deepcopy(self.ours), pickle.loads(pickle.dumps(self.ours)):
            self.assertTrue(torch.equal(other(tokens())[0], self.plain(tokens())[0]))
            self.assertIs(other.embeddings.forward.__self__, other.embeddings)
            self.assertIn(OURS, explain(optimize(other, SHAPES)))
        kept = self.ours.embeddings.forward
        restore(self.ours)
        self.assertNotIn('forward', vars(self.ours.embeddings))
        for forward in kept, self.ours.embeddings.forward:
            self.assertTrue(torch.equal(forward(tokens()), self.plain.embeddings(tokens())))

    def test_other_embeddings(self):
        class BertEmbeddings(type(self.plain.embeddings)):
            def forward(self, *args, **kwargs):
                return super().forward(*args, **kwargs) * 2

        def derived(module):
            module.__class__ = BertEmbeddings

        def patched(module):
            forward = module.forward
            module.forward = lambda *args, **kwargs: forward(*args, **kwargs) * 2

        def bounded(module):
            module.word_embeddings.max_norm = 1.0

        def unaligned(module):
            table = module.position_embeddings.weight
            memory = torch.empty(table.numel() + 1)[1:].view_as(table)
            table.data = memory.copy_(table)

        def further(module):
            module.further = torch.nn.Linear(32, 32)
        for change, why in ((derived, 'it is a test_embeddings.BertEmb'), (patched, 'its forward() is not that of'),
                            (bounded, 'its word_embeddings has max_norm'), (further, 'its further is a Linear'),
                            (unaligned, 'its position tensor is torch.float32 (130, 32) on cpu, 4 bytes behind a'),
                            (lambda m: m.token_type_ids.fill_(1), "the library's rows differ from its by"),
                            (lambda m: m.position_ids.copy_(m.position_ids.flip(1)), "the library's rows differ")):
            self.plain, self.ours = draw(), draw()
            for model in self.plain, self.ours:
                change(model.embeddings)
            optimize(self.ours, SHAPES)
            self.assertIn(THEIRS + why, explain(self.ours))
            self.assertSame(masks(2, 20)[1], by_library=False)
        self.plain, self.ours = common.pair('electra')
        self.assertIn(THEIRS + 'its word tensor is torch.float32 (64, 16) on cpu; expected torch.float32 of 32 columns',
                      explain(self.ours))
        for model, why in ((models.draw('vit'), 'the library has none of a ViTModel'),
                           (torch.nn.ModuleList(draw().encoder.layer), 'the library has none outside models of')):
            self.assertIn(THEIRS + why, explain(optimize(model.eval(), None if why.endswith('ViTModel') else SHAPES)))
        self.assertSame(by_library=False)


if __name__ == '__main__':
    unittest.main()
