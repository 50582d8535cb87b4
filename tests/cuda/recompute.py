"""Attention computed again by PyTorch in float64, from what `fuseplan bench --op attention --dump DIR` wrote.

    recompute.py DIR...

Prints for each DIR the error of the result, the norm of its difference to float64 over the norm of that
one, and beside it the error of PyTorch's scaled_dot_product_attention on the same numbers in the same
type.  Padding does not count.  Exits 1 where an error is above the type's tolerance, or above twice
PyTorch's."""

import json
import os
import sys

import numpy
import torch

TOLERANCE = {'fp16': 2e-3, 'bf16': 1e-2}
TYPE = {'fp16': torch.float16, 'bf16': torch.bfloat16}


def load(directory, name):
    return torch.from_numpy(numpy.load(os.path.join(directory, name + '.npy'))).cuda()


def split_heads(qkv, heads):
    """q, k and v, each (B,H,S,W), of (B,S,3D)."""
    batch, seq_len, _ = qkv.shape
    return (t.view(batch, seq_len, heads, -1).transpose(1, 2) for t in qkv.chunk(3, -1))


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)


def attention(q, k, v, keep):
    """softmax(q k^T / sqrt(W)) v over kept keys; a row without one is 0."""
    scores = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(~keep, -torch.inf)
    return torch.nan_to_num(torch.softmax(scores, -1)) @ v


def relative_error(got, want, real):
    return float((got.double() - want)[real].norm() / want[real].norm())


def check(directory):
    with open(os.path.join(directory, 'workload.json'), encoding='utf-8') as file:
        workload = json.load(file)
    qkv, bias = load(directory, 'qkv_gemm').double(), load(directory, 'layer0.bqkv').double()
    keep = load(directory, 'mask').bool()
    keep = keep.view(-1, 1, *keep.shape[-2:])  # of all heads
    batch, seq_len = workload['batch'], workload['seq_len']
    lengths = workload['lengths'] or [seq_len] * batch
    real = torch.arange(seq_len)[None, :] < torch.tensor(lengths)[:, None]
    real = real.cuda()

    want = merge_heads(attention(*split_heads(qkv + bias, workload['heads']), keep))
    ours = relative_error(load(directory, 'merge_heads'), want, real)
    q, k, v = (t.to(TYPE[workload['dtype']])
               for t in split_heads(qkv + bias, workload['heads']))
    sdpa = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=keep)
    theirs = relative_error(merge_heads(torch.nan_to_num(sdpa)), want, real)
    right = ours <= TOLERANCE[workload['dtype']] and ours <= 2 * theirs
    print(f"{workload['dtype']} ({batch},{seq_len}) {workload['mask']} W={workload['head_size']}"
          f"{' lengths' if workload['lengths'] else ''}: error {ours:.2e}, PyTorch's {theirs:.2e}"
          f"{'' if right else '  FAILED'}")
    return right


if __name__ == '__main__':
    # every directory is reported before the verdict
    sys.exit(0 if all([check(directory) for directory in sys.argv[1:]]) else 1)
