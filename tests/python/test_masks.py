"""Attention masks of all forms to lengths, with checks as on a CPU and without waiting as on a GPU."""

import unittest

import torch

import common
import models
from common import SHAPES
from fuseplan import finder, library, masks

RIGHT = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 1, 0]])
LEFT, GAPS = RIGHT.flip(1), torch.tensor([[1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 1, 0, 0, 1]])
LEAST = torch.finfo(torch.float32).min


def forms(tokens, causal):
    """The masks that versions of transformers make of (B,S)."""
    whole = tokens.bool()[:, None, None, :].expand(-1, 1, 5, 5)
    if causal:
        whole = whole & torch.ones(5, 5).tril().bool()
    added = torch.zeros(whole.shape).masked_fill(~whole, LEAST)
    return [[tokens], [tokens.bool()], [tokens.float()], [whole], [added]]


class Masks(common.Case):

    def setUp(self):
        self.module, _ = library.get(finder.find_stacks(models.draw())[0][0], 'fp32', SHAPES)
        self.x = torch.zeros(3, 5, 32)

    def assertReads(self, found, tokens):
        lengths, order = found
        self.assertEqual(lengths.dtype, torch.int32)
        self.assertEqual(lengths.tolist(), tokens.sum(1).tolist())
        places = [row.nonzero().flatten().tolist() for row in tokens]
        order = torch.arange(5).expand(3, 5) if order is None else order
        self.assertEqual([row[:n].tolist() for row, n in zip(order, lengths.tolist())], places)

    def test_forms(self):
        for causal in False, True:
            for tokens in RIGHT, LEFT, GAPS:
                for i, form in enumerate(forms(tokens, causal)):
                    with self.subTest(causal=causal, tokens=tokens, form=i):
                        self.assertReads(masks.read(form, self.x, causal, False, self.module), tokens)
                        self.assertReads(masks._read_on_device(form, self.x, False), tokens)
                        self.assertReads(masks._read_on_device(form + [torch.ones(3, 5)], self.x, False), tokens)

    def test_two(self):  # CLIP's text model, in transformers 4
        padding, causal = forms(RIGHT, False)[4][0], forms(torch.ones(1, 5), True)[4][0]
        self.assertReads(masks.read([padding, causal], self.x, True, True, self.module), RIGHT)
        self.assertReads(masks._read_on_device([padding, causal], self.x, True), RIGHT)

    def test_right_padding_has_no_order(self):
        self.assertIsNone(masks.read([RIGHT], self.x, False, True, self.module)[1])

    def test_gaps_where_distances_count(self):
        self.assertRefused('gaps', masks.read, [GAPS], self.x, False, True, self.module)
        lengths, _ = masks._read_on_device([GAPS], self.x, True)
        self.assertEqual(lengths.tolist(), [0, 5, 0])
        self.assertEqual(masks._read_on_device([LEFT], self.x, True)[0].tolist(), LEFT.sum(1).tolist())

    def test_refused(self):
        for causal, text, mask in ((False, 'is for (3, 4) tokens', RIGHT[:, :4]), (False, 'BlockMask', _block_mask()),
                                   (True, 'BlockMask', _block_mask()), (True, 'the shape (3,)', torch.ones(3)),
                                   (True, 'is not causal', forms(RIGHT, False)[3][0]),
                                   (False, 'differs between heads or queries', forms(RIGHT, True)[3][0])):
            self.assertRefused(text, masks.read, [mask], self.x, causal, False, self.module, kind=ValueError)

    def test_pytorch(self):
        for padding in RIGHT == 0, torch.zeros(3, 5).masked_fill(RIGHT == 0, -torch.inf):
            self.assertReads(masks.read([masks.invert_padding(padding)], self.x, False, False, self.module), RIGHT)


def _block_mask():
    return type('BlockMask', (), {})()


if __name__ == '__main__':
    unittest.main()
