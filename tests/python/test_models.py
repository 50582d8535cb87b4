"""Each family, by the transformers that are there: what is found, and what its layers compute."""

import copy
import functools
import pickle
import sys
import types
import unittest
from unittest import mock

import torch

import common
import models
import stubs
from common import SHAPES, run
from fuseplan import explain, finder, optimize, probe, restore, stats


class Models(common.Case):

    def check_found(self, name, plain):
        (stack, *more), _ = finder.find_stacks(plain)
        chain, mask, *_ = models.MODELS[name]
        self.assertEqual((stack.chain, stack.mask, len(more)), (chain, mask, 0))

    def check_hidden(self, plain, ours):
        want, got = (run(model, output_hidden_states=True)[0].hidden_states for model in (plain, ours))
        self.assertEqual(len(got), len(want))
        for one, other in zip(got, want):
            self.assertNear(one, other)

    def check(self, name):
        plain = models.draw(name)
        self.check_found(name, plain)
        ours = copy.deepcopy(plain)
        text = probe.longest(ours) or 'input_ids' in probe.draw_inputs(ours, 1, 4)[0]
        self.assertIs(optimize(ours, SHAPES if text else [(2, run(ours)[0][0].shape[1])]), ours)
        for batch, lengths in (2, None), (5, None), (2, [20, 7]):
            (want, real), (got, _) = (run(model, batch, lengths=lengths) for model in (plain, ours))
            if name in ('clip text', 'siglip text'):
                self.assertNear(got.pooler_output, want.pooler_output)
            want, got = want.last_hidden_state, got.last_hidden_state
            self.assertNear(*((got, want) if real is None else (got[real], want[real])))
        (found,) = stats(ours).values()
        plain_calls = {'attention_mask': 1} if name == 'siglip text' else {}  # a head reads the row of padding
        self.assertEqual((sum(shape['calls'] for shape in found['shapes'].values()), found['plain']),
                         (3 - len(plain_calls), plain_calls))
        if name != 'whisper':
            self.check_hidden(plain, ours)
        restore(ours)
        self.assertTrue(torch.equal(run(ours)[0].last_hidden_state, run(plain)[0].last_hidden_state))
        self.assertEqual([str(m) for m in ours.modules()], [str(m) for m in plain.modules()])


def _add(name):
    def test(self):
        if not models.has(name):
            self.skipTest('this version of transformers has none')
        self.check(name)
    setattr(Models, 'test_' + ''.join(c if c.isalnum() else '_' for c in name), test)


for model in models.MODELS:
    _add(model)


class Stubs(common.Case):

    def test_remote(self):
        for name, (_, chain) in stubs.KINDS.items():
            with self.subTest(name):
                plain = stubs.draw(name)
                ours = optimize(copy.deepcopy(plain), SHAPES)
                (stack,), _ = finder.find_stacks(plain)
                self.assertEqual(stack.chain, chain)
                x, mask = torch.randn(2, 24, 32), torch.ones(2, 24)
                mask[1, 9:] = 0
                self.assertNear(ours(x), plain(x))
                self.assertNear(ours(x, mask)[mask.bool()], plain(x, mask)[mask.bool()])


class Pytorch(common.Case):

    def test_transformer_encoder(self):
        tanh = functools.partial(torch.nn.functional.gelu, approximate='tanh')
        for first, activation, chain in ((False, 'relu', 'post+relu'), (True, 'gelu', 'pre'),
                                         (False, tanh, 'post+gelu_tanh')):
            with self.subTest(chain):
                layer = torch.nn.TransformerEncoderLayer(32, 2, 64, activation=activation, norm_first=first,
                                                         batch_first=True)
                plain = models.shake(torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval())
                ours = optimize(copy.deepcopy(plain), SHAPES)
                self.assertEqual((next(iter(stats(ours))), finder.find_stacks(plain)[0][0].chain), ('layers', chain))
                x, padding = torch.randn(2, 24, 32), torch.arange(24) >= torch.tensor([[24], [9]])
                self.assertNear(ours(x), plain(x))
                got, want = (m(x, src_key_padding_mask=padding) for m in (ours, plain))
                self.assertNear(got[~padding], want[~padding])

    def test_nested_tensors(self):
        """An encoder that would give its layers these where padding is on the right."""
        layer = torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
        plain = models.shake(torch.nn.TransformerEncoder(layer, 3).eval())
        ours = optimize(copy.deepcopy(plain), SHAPES)
        for length in 24, 40:
            x, right = torch.randn(2, length, 32), torch.arange(length) >= torch.tensor([[length], [9]])
            for padding in right, right.flip(1), torch.zeros_like(right), None:
                got, want = (m(x, src_key_padding_mask=padding) for m in (ours, plain))
                real = slice(None) if padding is None else ~padding
                self.assertNear(got[real], want[real])
        self.assertEqual(stats(ours)['layers']['plain'], {'more than 32 tokens': 4})
        x = torch.nested.nested_tensor([torch.randn(length, 32) for length in (24, 9)])
        for got, want in zip(ours(x).unbind(), plain(x).unbind()):
            self.assertNear(got, want)
        self.assertEqual(stats(ours)['layers']['plain'], {'more than 32 tokens': 4, 'nested tensors': 1})
        for other in copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), restore(ours):
            self.assertIs(other.use_nested_tensor, True)

    def test_list_of_layers(self):
        layer = torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
        plain = models.shake(torch.nn.ModuleList([copy.deepcopy(layer) for _ in range(3)]).eval())
        ours = optimize(plain, SHAPES)
        x = torch.randn(2, 24, 32)
        for_ours, for_plain = x, x
        for layer in ours:
            for_ours = layer(for_ours)
        for layer in plain:
            for_plain = layer(for_plain)
        self.assertTrue(explain(ours).startswith('ModuleList: 3 layers'), explain(ours))
        self.assertEqual([*stats(ours)], ['ModuleList'])
        self.assertEqual((len(ours), len(restore(ours))), (1, 3))
        self.assertNear(for_ours, for_plain)


class Versions(unittest.TestCase):

    def test_transformers(self):
        for version, new in ('4.57.1', False), ('5.17.0', True), ('10.0.0.dev0', True):
            with mock.patch.dict(sys.modules, transformers=types.SimpleNamespace(__version__=version)):
                self.assertEqual(finder.transformers_5() is not None, new, version)


if __name__ == '__main__':
    unittest.main()
