"""Attention masks of all forms to lengths, with checks as on a CPU and without waiting as on a GPU."""

import copy
import unittest

import torch

import common
import models
from common import SHAPES
from fuseplan import finder, library, masks, optimize

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
        lengths, order, bad = found
        self.assertFalse(bad is not None and bad.any())
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
                        self.assertReads(masks._read_on_device(form, self.x, causal, False), tokens)
                        more = form + [torch.ones(3, 5)]
                        self.assertReads(masks._read_on_device(more, self.x, causal, False), tokens)

    def test_two(self):  # CLIP's text model, in transformers 4
        padding, causal = forms(RIGHT, False)[4][0], forms(torch.ones(1, 5), True)[4][0]
        self.assertReads(masks.read([padding, causal], self.x, True, True, self.module), RIGHT)
        self.assertReads(masks._read_on_device([padding, causal], self.x, True, True), RIGHT)

    def test_right_padding_has_no_order(self):
        self.assertIsNone(masks.read([RIGHT], self.x, False, True, self.module)[1])

    def test_gaps_where_distances_count(self):
        self.assertRefused('gaps', masks.read, [GAPS], self.x, False, True, self.module)
        self.assertEqual(self.find_bad(GAPS, False, True), [True, False, True])
        self.assertEqual(self.find_bad(LEFT, False, True), [False] * 3)

    def find_bad(self, mask, causal, contiguous=False):
        _, _, bad = masks._read_on_device([mask], self.x, causal, contiguous)
        return bad.expand(3).tolist()

    def test_refused(self):
        for causal, text, mask in ((False, 'is for (3, 4) tokens', RIGHT[:, :4]), (False, 'BlockMask', _block_mask()),
                                   (True, 'BlockMask', _block_mask()), (True, 'the shape (3,)', torch.ones(3))):
            self.assertRefused(text, masks.read, [mask], self.x, causal, False, self.module, kind=ValueError)
            self.assertRefused(text, masks._read_on_device, [mask], self.x, causal, False)

    def test_refused_or_bad(self):
        full, causal = (forms(RIGHT, causal)[3][0].clone() for causal in (False, True))
        full[0, 0, 1, 2] = False
        causal[2, 0, 3, 1] = False
        packed = torch.block_diag(torch.ones(3, 3), torch.ones(2, 2)).tril().bool().expand(3, 1, 5, 5).clone()
        packed[1] = forms(LEFT, True)[3][0][1]
        small = torch.zeros(3, 1, 5, 5)
        small[1, 0, :, 2] = -3.0
        for is_causal, text, mask, bad in ((False, 'differs between heads or queries', full, [1, 0, 0]),
                                           (False, 'differs between heads or queries', causal, [1, 1, 1]),
                                           (True, 'is not causal', causal, [0, 0, 1]),
                                           (True, 'is not causal', forms(RIGHT, False)[3][0], [1, 1, 1]),
                                           (True, 'is not causal', packed, [1, 0, 1]),
                                           (False, 'values other than 0', small, [0, 1, 0]),
                                           (True, 'values other than 0',
                                            small + forms(torch.ones(1, 5), True)[4][0], [0, 1, 0])):
            with self.subTest(text, causal=is_causal):
                self.assertRefused(text, masks.read, [mask], self.x, is_causal, False, self.module, kind=ValueError)
                self.assertEqual(self.find_bad(mask, is_causal), [bool(one) for one in bad])

    @unittest.skipIf(finder.transformers_5() is None, 'layers of this version are causal beside their masks')
    def test_one_row(self):
        for mask in (form[0][:, :, :1] for form in forms(RIGHT, False)[3:]):
            self.assertRefused('one row', masks.read, [mask], self.x, True, True, self.module)
            self.assertReads(masks.read([mask], self.x, False, True, self.module), RIGHT)

    def test_rows_of_padding(self):  # see all, in some versions of transformers
        for mask in forms(LEFT, True)[3:]:
            mask = mask[0].clone()
            mask[LEFT[:, None, :] == 0] = mask[0, 0, -1, 0]
            self.assertReads(masks.read([mask], self.x, True, True, self.module), LEFT)
            self.assertReads(masks._read_on_device([mask], self.x, True, True), LEFT)

    def test_no_token(self):
        mask = RIGHT.clone()
        mask[1] = 0
        lengths, _, bad = masks._read_on_device([mask], self.x, False, True)
        self.assertEqual((lengths.tolist(), bad.any().item()), ([5, 0, 4], False))

    def test_bad_sequences_are_no_numbers(self):
        if not models.has('eurobert'):
            self.skipTest('this version of transformers has no layers with rope')
        plain = models.draw('eurobert')
        ours, read = optimize(copy.deepcopy(plain), SHAPES), masks.read
        mask, tokens = GAPS.clone(), torch.randint(10, 64, (3, 5))
        mask[2] = LEFT[2]
        try:
            masks.read = lambda found, x, causal, contiguous, _: masks._read_on_device(found, x, causal, contiguous)
            got = ours(input_ids=tokens, attention_mask=mask).last_hidden_state
        finally:
            masks.read = read
        self.assertTrue(got[0].isnan().all())
        want = plain(input_ids=tokens, attention_mask=mask).last_hidden_state
        self.assertNear(got[1:][mask[1:].bool()], want[1:][mask[1:].bool()])

    def test_pytorch(self):
        for padding in RIGHT == 0, torch.zeros(3, 5).masked_fill(RIGHT == 0, -torch.inf):
            self.assertReads(masks.read([masks.invert_padding(padding)], self.x, False, False, self.module), RIGHT)


def _block_mask():
    return type('BlockMask', (), {})()


if __name__ == '__main__':
    unittest.main()
