"""Attention masks as layers get them, in any version, to lengths."""

import torch

from .finder import Unsupported


def invert_padding(mask):
    """PyTorch's src_key_padding_mask, which is true or -inf at padding, as one that is true at tokens."""
    return mask == 0 if mask.is_floating_point() else ~mask


def _kept(mask):
    """Whether a mask keeps a key: of its numbers 0 if they are added to scores, else 1."""
    if not isinstance(mask, torch.Tensor):
        raise Unsupported(f"the attention mask is a {type(mask).__name__}; expected a tensor: load the model with "
                          "attn_implementation='sdpa'")
    if mask.dim() not in (2, 4) or (mask.dim() == 4 and mask.shape[1] != 1):
        raise Unsupported(f"the attention mask has the shape {tuple(mask.shape)}; expected (B,S), (B,1,1,S) or "
                          "(B,1,S,S)")
    return mask == 0 if mask.is_floating_point() and mask.dim() == 4 else mask != 0


def read(masks, x, causal, contiguous, module):
    """(lengths, order) of the masks of a call, of which at least one is given.

    lengths: (B) int32.  order: (B,S) places of tokens, real ones first; None: they are already.  contiguous: whether
    layers look at how far tokens are apart, so that a sequence must be one run of them.  On a GPU nothing waits for
    it: order is always given, and where a mask cannot be, lengths are 0, so that all of the sequence's results are.
    module: the library's."""
    if x.is_cuda:
        return _read_on_device(masks, x, contiguous)
    kept = _tokens(masks, x, causal, module)
    if tuple(kept.shape) != tuple(x.shape[:2]):
        raise Unsupported(f"the attention mask is for {tuple(kept.shape)} tokens; the input has {tuple(x.shape[:2])}")
    lengths, right = module._count_tokens(kept)
    if right:
        return lengths, None
    if contiguous and (kept[:, 1:] & ~kept[:, :-1]).sum(1).add(kept[:, 0].int()).max() > 1:
        raise Unsupported("the attention mask has gaps between tokens; layers that look at how far tokens are apart "
                          "take one run of tokens in each sequence")
    return lengths, _sort(kept)


def _sort(kept):
    return kept.int().argsort(dim=1, descending=True, stable=True)


def _tokens(masks, x, causal, module):
    """(B,S) on the CPU, where tokens are."""
    if not causal:
        kept = [module._read_mask(mask) for mask in masks]
        return kept[0] if len(kept) == 1 else torch.stack(kept).all(0)
    batch, seq_len = x.shape[:2]
    triangle = torch.ones(seq_len, seq_len, dtype=torch.bool).tril()
    found = [_kept(mask) for mask in masks]
    found = [mask[:, None, :] if mask.dim() == 2 else mask[:, 0] for mask in found]  # (B or 1, S or 1, S)
    kept = torch.ones(batch, seq_len, seq_len, dtype=torch.bool)
    for mask in found if any(mask.shape[1] == seq_len > 1 for mask in found) else [triangle, *found]:
        kept = kept & mask
    tokens = kept[:, -1]
    if not torch.equal(kept[tokens], (triangle & tokens[:, None, :])[tokens]):
        raise Unsupported("the attention mask is not causal, as the model's layers are: pass a mask (B,S)")
    return tokens


def _read_on_device(masks, x, contiguous):
    tokens = None
    for mask in masks:
        kept = _kept(mask)
        kept = kept if kept.dim() == 2 else kept[:, 0, -1]
        tokens = kept if tokens is None else tokens & kept
    tokens = tokens.expand(x.shape[:2])
    lengths = tokens.sum(1, dtype=torch.int32)
    if contiguous:
        runs = (tokens[:, 1:] & ~tokens[:, :-1]).sum(1) + tokens[:, 0]
        lengths = lengths.masked_fill(runs > 1, 0)
    return lengths, _sort(tokens)
