"""Attention by PyTorch and by others, for peers.py: make_attention() gives a function of q, k and v, each (B,H,S,W), or
(T,H,W) of packed tokens, sequence after sequence.

  eager       softmax(q k^T / sqrt(W) + what is added) v
  sdpa        scaled_dot_product_attention, which chooses among its kernels
  flash2      the same with the kernels of FlashAttention-2 alone
  cudnn       the same with cuDNN's alone
  flex        FlexAttention by Triton
  flex-flash  FlexAttention by FlashAttention-4, of the package flash-attn-4
  fa4         FlashAttention-4's own calls: of bands without a bias (full, causal and sliding masks); of packed tokens
              of the mask full
  varlen      PyTorch's varlen_attn, of packed tokens of the mask full
"""

import importlib.metadata
import itertools
import math

import torch
import torch_layers
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {'flash2': SDPBackend.FLASH_ATTENTION, 'cudnn': SDPBackend.CUDNN_ATTENTION}
PACKAGES = {'flex-flash': ['flash-attn-4', 'nvidia-cutlass-dsl'], 'fa4': ['flash-attn-4', 'nvidia-cutlass-dsl'],
            'torchao': ['torchao'], 'hf': ['transformers']}


class Unable(Exception):
    """Says why a variant does not run a point."""


def version_of(package):
    try:
        return f'{package} {importlib.metadata.version(package)}'
    except importlib.metadata.PackageNotFoundError:
        return f'no {package}'


def versions(names):
    """What beside PyTorch variants need, in words."""
    packages = dict.fromkeys(itertools.chain(*(PACKAGES.get(name, []) for name in names)))
    return ', '.join([f'cuDNN {torch.backends.cudnn.version()}', *map(version_of, packages)])


def keep_keys(dump):
    """The mask's bits; a row of padding sees the real keys, as in HuggingFace's models: else it would be
    NaN."""
    keep = dump.keep
    if keep.dim() == 3:
        keep = keep | (~keep.any(-1, keepdim=True) & keep.any(-2, keepdim=True))
    return keep


def make_added(dump, bias=None):
    """What is added to scores, of (B,H,S,S) or what can be expanded to that."""
    keep = torch_layers.per_head(keep_keys(dump))
    bias = torch.zeros(1, dtype=dump.dtype, device=dump.device) if bias is None else bias
    added = bias.where(keep, -torch.inf)
    seq_len = keep.shape[-1]  # kernels take strides of whole 16 bytes
    return torch.nn.functional.pad(added, (0, -seq_len % 8))[..., :seq_len]


def bias_table(dump):
    return dump.read('score_bias') if dump.chain['score_bias'] else None


def make_added_of(dump):
    table = bias_table(dump)
    return make_added(dump, None if table is None else torch_layers.spread_bias(table).to(dump.dtype))


def band(dump):
    """How many keys before and after its own each query sees, if the mask is such a band; null for all of them."""
    if dump.keep.dim() == 3 or bias_table(dump) is not None:
        raise Unable('takes neither padding nor a bias')
    place = torch.arange(dump.workload['seq_len'], device=dump.device)
    distance = place[None, :] - place[:, None]
    before, after = (int((sign * distance)[dump.keep].max()) for sign in (-1, 1))
    if not torch.equal(dump.keep, (distance >= -before) & (distance <= after)):
        raise Unable(f'takes bands alone, as full, causal and sliding are; not {dump.mask()}')
    return tuple(None if keys == len(place) - 1 else keys for keys in (before, after))


def make_eager(dump):
    added, root = make_added_of(dump), math.sqrt(dump.workload['head_size'])
    return lambda q, k, v: torch.softmax(q @ k.transpose(-2, -1) / root + added, -1) @ v


def make_sdpa(dump):
    sdpa = torch.nn.functional.scaled_dot_product_attention
    if dump.keep.dim() == 2 and bias_table(dump) is None and dump.mask() in ('full', 'causal'):
        causal = dump.mask() == 'causal'
        return lambda q, k, v: sdpa(q, k, v, is_causal=causal)
    added = make_added_of(dump)
    return lambda q, k, v: sdpa(q, k, v, attn_mask=added)


def make_backend(dump, backend):
    sdpa = make_sdpa(dump)

    def attention(q, k, v):
        with sdpa_kernel(backend):
            return sdpa(q, k, v)

    return attention


def make_flex(dump, options=None):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    keep, seq_len, table = keep_keys(dump), dump.workload['seq_len'], bias_table(dump)
    padded, blocks, change = keep.dim() == 3, None, None
    if not keep.all():
        bit = (lambda b, h, i, j: keep[b, i, j]) if padded else (lambda b, h, i, j: keep[i, j])
        if not padded and dump.mask() == 'causal':
            bit = lambda b, h, i, j: i >= j
        blocks = create_block_mask(bit, keep.shape[0] if padded else None, None, seq_len, seq_len,
                                   device=dump.device)
    if table is not None:
        change = lambda score, b, h, i, j: score + table[h, j - i + seq_len - 1]
    return lambda q, k, v: flex_attention(q, k, v, score_mod=change, block_mask=blocks, kernel_options=options)


def make_flash4(dump):
    from flash_attn.cute import flash_attn_func
    before, after = band(dump)
    options = {'causal': True} if (before, after) == (None, 0) else {'window_size': (before, after)}

    @torch.compiler.disable  # no graph of PyTorch's compiler holds it
    def attention(q, k, v):
        return flash_attn_func(*(t.transpose(1, 2) for t in (q, k, v)), **options)[0].transpose(1, 2)

    return attention


def ends_of(dump):
    """Where sequences of packed tokens begin and end, and the length of the longest."""
    if dump.mask() != 'full' or bias_table(dump) is not None:
        raise Unable('takes packed tokens of the mask full alone, without a bias')
    lengths = dump.workload['lengths']
    return torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32, device=dump.device), max(lengths)


def make_packed_flash4(dump):
    from flash_attn.cute import flash_attn_varlen_func
    ends, longest = ends_of(dump)

    @torch.compiler.disable
    def attention(q, k, v):
        return flash_attn_varlen_func(q, k, v, cu_seqlens_q=ends, cu_seqlens_k=ends, max_seqlen_q=longest,
                                      max_seqlen_k=longest)[0]

    return attention


def make_varlen(dump):
    from torch.nn.attention.varlen import varlen_attn
    ends, longest = ends_of(dump)
    return lambda q, k, v: varlen_attn(q, k, v, ends, ends, longest, longest)


def make_attention(name, dump):
    """Raises Unable, or what importing a package raises."""
    if name in BACKENDS:
        return make_backend(dump, BACKENDS[name])
    if name == 'flex-flash':
        return make_flex(dump, {'BACKEND': 'FLASH'})
    if name == 'fa4':
        return (make_packed_flash4 if dump.workload['lengths'] else make_flash4)(dump)
    makers = {'eager': make_eager, 'flex': make_flex, 'varlen': make_varlen}
    return makers.get(name, make_sdpa)(dump)
