"""What `fuseplan bench --dump DIR` wrote, computed again by PyTorch in float64.

    recompute.py DIR...

Of a plan: its layers.  Of attention, written with `--op attention`: its result, and beside it PyTorch's
scaled_dot_product_attention on the same numbers in the same type.  Prints for each DIR the error of the result, the norm of its difference to float64 over the norm of
that one.  Padding does not count.  Exits 1 where an error is above the type's tolerance, or above twice that of
PyTorch's attention."""

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


def layer(x, w, heads, eps, keep):
    """A layer of the chain; w: its weights by name, (rows, columns)."""
    size = x.shape[-1:]
    qkv = x @ w['wqkv'] + w['bqkv']
    out = merge_heads(attention(*split_heads(qkv, heads), keep)) @ w['wo'] + w['bo']
    x = torch.nn.functional.layer_norm(out + x, size, w['gamma1'], w['beta1'], eps)
    hidden = torch.nn.functional.gelu(x @ w['w1'] + w['b1'])
    return torch.nn.functional.layer_norm(hidden @ w['w2'] + w['b2'] + x, size, w['gamma2'], w['beta2'], eps)


def relative_error(got, want, real):
    return float((got.double() - want)[real].norm() / want[real].norm())


def check_layers(directory, workload, keep, real):
    x = load(directory, 'x').double()
    names = ('wqkv', 'bqkv', 'wo', 'bo', 'gamma1', 'beta1', 'w1', 'b1', 'w2', 'b2', 'gamma2', 'beta2')
    with torch.no_grad():
        for l in range(workload['layers']):
            w = {name: load(directory, f'layer{l}.{name}').double() for name in names}
            w = {name: t.flatten() if t.shape[0] == 1 else t for name, t in w.items()}
            x = layer(x, w, workload['heads'], workload['eps'], keep)
    ours = relative_error(load(directory, 'y'), x, real)
    return ours <= TOLERANCE[workload['dtype']], f'{workload["layers"]} layers: error {ours:.2e}'


def check_attention(directory, workload, keep, real):
    qkv, bias = load(directory, 'qkv_gemm').double(), load(directory, 'layer0.bqkv').double()
    want = merge_heads(attention(*split_heads(qkv + bias, workload['heads']), keep))
    ours = relative_error(load(directory, 'merge_heads'), want, real)
    q, k, v = (t.to(TYPE[workload['dtype']])
               for t in split_heads(qkv + bias, workload['heads']))
    sdpa = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=keep)
    theirs = relative_error(merge_heads(torch.nan_to_num(sdpa)), want, real)
    right = ours <= TOLERANCE[workload['dtype']] and ours <= 2 * theirs
    return right, f"attention: error {ours:.2e}, PyTorch's {theirs:.2e}"


def check(directory):
    with open(os.path.join(directory, 'workload.json'), encoding='utf-8') as file:
        workload = json.load(file)
    keep = load(directory, 'mask').bool()
    keep = keep.view(-1, 1, *keep.shape[-2:])  # of all heads
    batch, seq_len = workload['batch'], workload['seq_len']
    lengths = workload['lengths'] or [seq_len] * batch
    real = (torch.arange(seq_len)[None, :] < torch.tensor(lengths)[:, None]).cuda()
    whole = os.path.exists(os.path.join(directory, 'y.npy'))
    right, said = (check_layers if whole else check_attention)(directory, workload, keep, real)
    print(f"{workload['dtype']} ({batch},{seq_len}) {workload['mask']} W={workload['head_size']}"
          f"{' lengths' if workload['lengths'] else ''}, {said}{'' if right else '  FAILED'}", flush=True)
    return right


if __name__ == '__main__':
    # every directory is reported before the verdict
    sys.exit(0 if all([check(directory) for directory in sys.argv[1:]]) else 1)
