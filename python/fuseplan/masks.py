"""Attention masks as layers get them, in any version, to lengths."""

import functools

import torch

from .finder import Unsupported, transformers_5


def invert_padding(mask):
    """PyTorch's src_key_padding_mask, which is true or -inf at padding, as one that is true at tokens."""
    return mask == 0 if mask.is_floating_point() else ~mask


def find_odd(mask):
    """(B) whether a mask (B,S) has values other than 1 and 0, by which BLOOM counts tokens; None: it has none.  On a
    CPU these are refused."""
    odd = _find_odd_on_device(mask)
    if odd is not None and not odd.is_cuda and odd.any():
        raise Unsupported("the attention mask has values other than 1 and 0; pass 1 for each token to keep")
    return odd


def _find_odd_on_device(mask):
    if not isinstance(mask, torch.Tensor) or mask.dim() != 2 or mask.dtype == torch.bool:
        return None
    return ((mask != 0) & (mask != 1)).any(1)


def _kept(mask):
    """Whether a mask keeps a key: of its numbers 0 if they are added to scores, else 1."""
    if not isinstance(mask, torch.Tensor):
        raise Unsupported(f"the attention mask is a {type(mask).__name__}; expected a tensor: load the model with "
                          "attn_implementation='sdpa'")
    if mask.dim() not in (2, 4) or (mask.dim() == 4 and mask.shape[1] != 1):
        raise Unsupported(f"the attention mask has the shape {tuple(mask.shape)}; expected (B,S), (B,1,1,S) or "
                          "(B,1,S,S)")
    return mask == 0 if mask.is_floating_point() and mask.dim() == 4 else mask != 0


def count(mask, batch):
    """(batch) how many tokens a mask keeps that read() takes."""
    kept = _kept(mask)
    return (kept if kept.dim() == 2 else kept[:, 0, -1]).expand(batch, -1).sum(1)


def _is_added(mask):
    return mask.is_floating_point() and mask.dim() == 4


def _is_good(mask, kept):
    """(B or 1) whether a mask that is added to scores only keeps keys, or hides them."""
    return (kept | (mask <= -1e4)).flatten(1).all(1)


def read(masks, x, causal, contiguous, module):
    """(lengths, order, bad) of the masks of a call, of which at least one is given.

    x: (B,S,D).  causal: the layers' mask.  contiguous: whether layers look at how far tokens are apart, so that a
    sequence must be one run of them.  module: the library's.  lengths: (B) int32, or a mask (B,S) that layers read
    themselves.  order: (B,S) places of tokens, real ones first; None: they are already.  bad: (B or 1) bool, sequences
    whose masks no lengths stand for; None: there is none.

    On a CPU such masks are refused, as sequences without a token are.  On a GPU the host waits for nothing: layers read
    the mask or order is given, bad tells what a CPU would refuse, and a sequence without a token has the length 0."""
    if causal and x.shape[1] > 1 and transformers_5() is not None:
        rows = {mask.shape[2] for mask in masks if isinstance(mask, torch.Tensor) and mask.dim() == 4}
        if rows == {1}:  # other versions are causal beside it
            raise Unsupported("the attention mask has one row for all tokens, and with it layers of transformers 5 are "
                              "not causal: pass a mask (B,S) or (B,1,S,S)")
    if x.is_cuda and len(masks) == 1 and getattr(masks[0], "shape", None) == x.shape[:2]:
        mask = masks[0] if masks[0].dtype == torch.int64 else (masks[0] != 0).long()
        return mask, None, _has_gaps(mask != 0) if contiguous else None
    if x.is_cuda:
        return _read_on_device(masks, x, causal, contiguous)
    kept = _tokens(masks, x, causal, module)
    if tuple(kept.shape) != tuple(x.shape[:2]):
        raise Unsupported(f"the attention mask is for {tuple(kept.shape)} tokens; the input has {tuple(x.shape[:2])}")
    lengths, right = module._count_tokens(kept)
    if right:
        return lengths, None, None
    if contiguous and _has_gaps(kept).any():
        raise Unsupported("the attention mask has gaps between tokens; layers that look at how far tokens are apart "
                          "take one run of tokens in each sequence")
    return lengths, _sort(kept), None


def _sort(kept):
    return kept.int().argsort(dim=1, descending=True, stable=True)


def _has_gaps(tokens):
    """(B) whether tokens (B,S) are more than one run."""
    return (tokens[:, 1:] & ~tokens[:, :-1]).sum(1) + tokens[:, 0] > 1


def _tokens(masks, x, causal, module):
    """(B,S) on the CPU, where tokens are."""
    if not causal:
        kept = [module._read_mask(mask) for mask in masks]
        return kept[0] if len(kept) == 1 else torch.stack(kept).all(0)
    batch, seq_len = x.shape[:2]
    triangle = torch.ones(seq_len, seq_len, dtype=torch.bool).tril()
    found = [_kept(mask) for mask in masks]
    if not all(_is_good(mask, kept).all() for mask, kept in zip(masks, found) if _is_added(mask)):
        raise Unsupported("the attention mask has values other than 0 and those of at most -10000; the library adds "
                          "none to scores: pass a mask (B,S) of 1 and 0")
    found = [mask[:, None, :] if mask.dim() == 2 else mask[:, 0] for mask in found]  # (B or 1, S or 1, S)
    kept = torch.ones(batch, seq_len, seq_len, dtype=torch.bool)
    for mask in found if any(mask.shape[1] == seq_len > 1 for mask in found) else [triangle, *found]:
        kept = kept & mask
    tokens = kept[:, -1]
    if _is_not_causal(kept, tokens).any():
        raise Unsupported("the attention mask is not causal, as the model's layers are: pass a mask (B,S)")
    return tokens


def _is_not_causal(kept, tokens):
    """(B) whether rows of kept (B,S,S) see others than tokens (B,S) up to themselves; those of padding may see all, or
    none."""
    wrong = (kept != tokens[:, None, :].expand_as(kept).tril()).any(2)
    return (wrong & (tokens | kept.any(2) & ~kept.all(2))).any(1)


def _read_on_device(masks, x, causal, contiguous):
    found = [_kept(mask) for mask in masks]
    bad = [~_is_good(mask, kept) for mask, kept in zip(masks, found) if _is_added(mask)]
    found = [kept[:, None, :] if kept.dim() == 2 else kept[:, 0] for kept in found]  # (B or 1, S or 1, S)
    kept = functools.reduce(torch.logical_and, found)
    batch, seq_len = x.shape[:2]
    if kept.shape[2] != seq_len or kept.shape[0] not in (1, batch):
        raise Unsupported(f"the attention mask is for {kept.shape[0], kept.shape[2]} tokens; the input has "
                          f"{batch, seq_len}")
    tokens = kept[:, -1]
    if kept.shape[1] > 1:
        bad.append(_is_not_causal(kept, tokens) if causal else (kept != tokens[:, None, :]).flatten(1).any(1))
    tokens = tokens.expand(batch, seq_len)
    if contiguous:
        bad.append(_has_gaps(tokens))
    return (tokens.sum(1, dtype=torch.int32), _sort(tokens),
            functools.reduce(torch.logical_or, bad) if bad else None)
