"""What `fuseplan bench --dump DIR` wrote, computed again by PyTorch in float64, on a GPU if there is one.

    recompute.py DIR...

Of a plan: its layers, whatever chain they are.  Of attention, written with `--op attention`: its result, and beside it
PyTorch's scaled_dot_product_attention on the same numbers in the same type.  Prints for each DIR the error of the
result, the norm of its difference to float64 over the norm of that one.  Padding does not count.  Exits 1 where an
error is above the type's tolerance, or above twice that of PyTorch's attention."""

import sys

import torch

import torch_layers
from torch_layers import merge_heads, relative_error, spread_bias, turn

TOLERANCE = {'fp16': 2e-3, 'bf16': 1e-2, 'tf32': 2e-3, 'fp32': 1e-5}
TYPE = {'fp16': torch.float16, 'bf16': torch.bfloat16, 'tf32': torch.float32, 'fp32': torch.float32}


def check_layers(dump):
    ours = torch_layers.recompute_layers(dump)
    return ours <= TOLERANCE[dump.workload['dtype']], f'{dump.workload["layers"]} layers: error {ours:.2e}'


def check_attention(dump):
    keep, rope, bias = torch_layers.per_head(dump.keep), dump.rope(), dump.load('score_bias')
    q, k, v = torch_layers.split_heads(dump.load('qkv_gemm') + dump.load('layer0.bqkv'), dump.workload)
    if rope is not None:
        q, k = turn(q, rope), turn(k, rope)
    bias = None if bias is None else spread_bias(bias)
    want, real = merge_heads(torch_layers.attend(q, k, v, dump.keep, bias)), dump.real()
    ours = relative_error(dump.load('merge_heads')[real], want[real])
    q, k, v = (t.to(TYPE[dump.workload['dtype']]) for t in (q, k, v))
    added = keep if bias is None else bias.to(q.dtype).masked_fill(~keep, -torch.inf)
    sdpa = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=added)
    theirs = relative_error(merge_heads(torch.nan_to_num(sdpa)).double()[real], want[real])
    right = ours <= TOLERANCE[dump.workload['dtype']] and ours <= 2 * theirs
    return right, f"attention: error {ours:.2e}, PyTorch's {theirs:.2e}"


def check(directory):
    dump = torch_layers.Dump(directory, 'cuda' if torch.cuda.is_available() else 'cpu', torch.float64)
    workload = dump.workload
    right, said = (check_layers if dump.has('y') else check_attention)(dump)
    print(f"{workload['dtype']} ({workload['batch']},{workload['seq_len']}) {workload['mask']} "
          f"{dump.chain['name']} W={workload['head_size']}{' lengths' if workload['lengths'] else ''}, "
          f"{said}{'' if right else '  FAILED'}", flush=True)
    return right


if __name__ == '__main__':
    # every directory is reported before the verdict
    sys.exit(0 if all([check(directory) for directory in sys.argv[1:]]) else 1)
