"""What `fuseplan bench --dump DIR` wrote, computed again by PyTorch in float64, on a GPU if there is one.

    recompute.py DIR...

Of a plan: its layers, whatever chain they are.  Of attention, written with `--op attention`: its result.  Prints for
each DIR the error of the result, the norm of its difference to float64 over the norm of that one, and beside it that
of PyTorch on the same numbers in the same type, with scaled_dot_product_attention.  Padding does not count.  Exits 1
where an error is above the type's tolerance, that of three layers, or above LIMIT times PyTorch's; tf32 has the
tolerance alone, as PyTorch computes in fp32."""

import sys

import torch

import torch_layers
from torch_layers import merge_heads, relative_error, spread_bias, turn

TOLERANCE = {'fp16': 2e-3, 'bf16': 1e-2, 'tf32': 2e-3, 'fp32': 1e-5}
TYPE = {'fp16': torch.float16, 'bf16': torch.bfloat16, 'tf32': torch.float32, 'fp32': torch.float32}
LIMIT = {'layers': 1.5, 'attention': 2}


def judge(dump, what, ours, theirs):
    """Whether the error is small enough, and what is said of it."""
    dtype = dump.workload['dtype']
    tolerance = TOLERANCE[dtype] * max(1, dump.workload['layers'] / 3)
    right = ours <= tolerance and (dtype == 'tf32' or ours <= LIMIT[what] * theirs)
    return right, f"error {ours:.2e}, PyTorch's {theirs:.2e}, {ours / theirs:.2f} times"


def check_layers(dump):
    wanted = torch_layers.compute_layers(dump)
    same = torch_layers.Dump(dump.directory, dump.device, TYPE[dump.workload['dtype']])
    theirs = torch_layers.compute_layers(same, torch_layers.attend_fused)
    right, said = judge(dump, 'layers', *(torch_layers.layers_error(dump, given, wanted) for given in
                                          ((dump.load('y'), dump.load('yn')), theirs)))
    return right, f'{dump.workload["layers"]} layers: {said}'


def check_attention(dump):
    rope, bias = dump.rope(), dump.load('score_bias')
    q, k, v = torch_layers.split_heads(dump.load('qkv_gemm') + dump.load('layer0.bqkv'), dump.workload)
    if rope is not None:
        q, k = turn(q, rope), turn(k, rope)
    bias = None if bias is None else spread_bias(bias)
    want, real = merge_heads(torch_layers.attend(q, k, v, dump.keep, bias)), dump.real()
    ours = relative_error(dump.load('merge_heads')[real], want[real])
    q, k, v = (t.to(TYPE[dump.workload['dtype']]) for t in (q, k, v))
    theirs = torch_layers.attend_fused(q, k, v, dump.keep, None if bias is None else bias.to(q.dtype))
    right, said = judge(dump, 'attention', ours, relative_error(merge_heads(theirs).double()[real], want[real]))
    return right, f'attention: {said}'


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
