"""Times fuseplan beside PyTorch on one CUDA GPU and prints a table.  FILE.csv gets PyTorch's times, a
line each.

    peers.py [OPTION...] -o FILE.csv BATCHxSEQ_LEN...

What is timed (--op):
  layer       the encoder layer, in microseconds a layer: the best plan that the database knows beside
              eager PyTorch, PyTorch with scaled_dot_product_attention (sdpa), the same under
              torch.compile (compile, compile-max: mode max-autotune), and FlexAttention (flex).
              With --avg-seq-len fuseplan and one more variant run on packed tokens: PyTorch under
              torch.compile (varlen: varlen_attn, of the mask full alone).
  attention   attention alone, in microseconds: fuseplan's from the packed q, k and v to merged heads,
              with bias; PyTorch's (sdpa, flex) on q, k and v that are split already.

All variants of a point run in this process from CUDA graphs, a replay of each in a round, in an order
that is drawn anew.  fuseplan's plan of a layer is among them, as `fuseplan export` writes it for
PyTorch; nvcc builds it.  It computes the same inputs and weights, and the outputs are compared.
fuseplan times attention itself, right before the variants.  Every program computes with the same bits
of the mask, which `fuseplan mask --npy` writes.  A figure is the median of the replays, the ratio the
median over the rounds, with its 95 % interval.  A variant that fails leaves out its line and says why.
"""

import argparse
import concurrent.futures
import csv
import importlib
import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile

HEADER = ['variant', 'dtype', 'batch', 'seq_len', 'mask', 'us']
LAYER_VARIANTS = ['eager', 'sdpa', 'compile', 'compile-max', 'flex']
VARLEN = 'varlen'
ATTENTION_VARIANTS = ['sdpa', 'flex']
CALLS = 32  # of attention in a graph: its launch is then small beside them
OURS = 'fuseplan'
SAME = 1e-2  # how much outputs may differ, over the norm of the output


def fail(message):
    print(f'peers: {message}', file=sys.stderr)
    sys.exit(1)


def one_line(text, which, otherwise):
    """A line of what a program or an exception says; `otherwise` if it says nothing."""
    lines = text.strip().splitlines()
    return lines[which] if lines else otherwise


def parse_arguments():
    def shape(text):
        batch, by, seq_len = text.partition('x')
        if not (batch.isdigit() and by and seq_len.isdigit()):
            raise argparse.ArgumentTypeError(f"'{text}' is no BATCHxSEQ_LEN, as in 8x512")
        return int(batch), int(seq_len)

    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('shapes', nargs='+', type=shape, metavar='BATCHxSEQ_LEN')
    p.add_argument('-o', '--output', required=True, metavar='FILE.csv')
    p.add_argument('-m', '--mask', default='full,causal,strided', metavar='MASK,...',
                   help='masks, as `fuseplan mask` names them, separated by commas (%(default)s)')
    p.add_argument('--avg-seq-len', type=int, metavar='N',
                   help='draw lengths with this average, as fuseplan does; the rest is padding')
    p.add_argument('--op', choices=['layer', 'attention'], default='layer')
    p.add_argument('--variants', metavar='NAME,...', help="some of PyTorch's variants (all)")
    p.add_argument('--dtype', choices=['fp16', 'bf16'], default='fp16')
    p.add_argument('-H', '--heads', type=int, default=12)
    p.add_argument('-W', '--head-size', type=int, default=64)
    p.add_argument('-L', '--layers', type=int, default=12)
    p.add_argument('--rounds', type=int, default=100, help='replays of each graph (%(default)s)')
    p.add_argument('--fuseplan', default='fuseplan', metavar='PATH', help='the program')
    a = p.parse_args()
    known = LAYER_VARIANTS if a.op == 'layer' else ATTENTION_VARIANTS
    if a.avg_seq_len:
        if a.op == 'attention':
            p.error('--avg-seq-len is of layers; leave out --op attention')
        known = known + [VARLEN]
    a.variants = a.variants.split(',') if a.variants else known
    for name in a.variants:
        if name not in known:
            p.error(f"'{name}' is no variant of --op {a.op}; those are {', '.join(known)}")
    return a


def import_torch():
    try:
        import torch
    except ImportError:
        fail('there is no PyTorch; install it for the python3 on PATH')
    if not torch.cuda.is_available():
        fail('PyTorch finds no CUDA GPU')
    return torch


# ---- fuseplan ------------------------------------------------------------------------------------


def split_masks(text):
    """'full,sliding:w=4,n=2' names two masks: a part with '=' and no ':' belongs to the one before."""
    masks = []
    for part in text.split(','):
        if masks and '=' in part and ':' not in part:
            masks[-1] += ',' + part
        else:
            masks.append(part)
    return masks


def run_fuseplan(a, *arguments):
    """Runs the program; its standard output, or null after a line that says what failed."""
    done = subprocess.run([a.fuseplan, *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    print(one_line(done.stderr, -1, f'peers: fuseplan {arguments[0]}: exit status {done.returncode}'),
          file=sys.stderr)
    return None


def lengths_options(a):
    return ['--avg-seq-len', str(a.avg_seq_len)] if a.avg_seq_len else []


def load_mask(a, torch, batch, seq_len, mask):
    """Pairs to keep, (S,S), or (B,S,S) with lengths."""
    import numpy
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, 'mask.npy')
        if run_fuseplan(a, 'mask', mask, '-b', str(batch), '-s', str(seq_len), '--npy', path, '-q',
                        *lengths_options(a)) is None:
            fail(f"fuseplan wrote no mask '{mask}'")
        return torch.from_numpy(numpy.load(path)).bool().cuda()


def workload_options(a, batch, seq_len, mask):
    return ['-b', str(batch), '-s', str(seq_len), '-m', mask, '--dtype', a.dtype, '--heads',
            str(a.heads), '--head-size', str(a.head_size), '--target', 'cuda', '-q',
            *lengths_options(a)]


def time_attention(a, batch, seq_len, mask):
    """Microseconds by fuseplan; null if it fails."""
    text = run_fuseplan(a, 'bench', '--op', 'attention', '--format', 'json',
                        *workload_options(a, batch, seq_len, mask))
    return None if text is None else json.loads(text)[0]['median_us']


def plan_name(batch, seq_len, mask):
    return 'plan_' + ''.join(c if c.isalnum() else '_' for c in f'{batch}_{seq_len}_{mask}')


def export_plan(a, directory, name, options):
    """Makes a module that runs the best plan known of a workload, which `options` name.  Its name, or
    null after a line that says what failed."""
    where = tempfile.mkdtemp(dir=directory)
    if run_fuseplan(a, 'export', 'best', '--layers', str(a.layers), '--name', name, '--output', where,
                    '--force', *options) is None:
        return None
    made = subprocess.run(['make', '-s', '-j', '4', '-C', where, f'lib{name}.so'], capture_output=True,
                          text=True, check=False)
    if made.returncode != 0:
        why = one_line(made.stderr, -1, f'exit status {made.returncode}')
        print(f'peers: {name}: {why}', file=sys.stderr)
        return None
    sys.path.insert(0, where)
    return name


# ---- PyTorch -------------------------------------------------------------------------------------


class Weights:
    """Of one layer; GEMM weights are (in, out)."""

    def __init__(self, torch, dtype, hidden):
        def uniform(*shape):
            return torch.empty(*shape, device='cuda').uniform_(-0.05, 0.05).to(dtype)

        self.qkv, self.qkv_bias = uniform(hidden, 3 * hidden), uniform(3 * hidden)
        self.out, self.out_bias = uniform(hidden, hidden), uniform(hidden)
        self.up, self.up_bias = uniform(hidden, 4 * hidden), uniform(4 * hidden)
        self.down, self.down_bias = uniform(4 * hidden, hidden), uniform(hidden)
        self.gamma1, self.beta1 = uniform(hidden) + 1, uniform(hidden)
        self.gamma2, self.beta2 = uniform(hidden) + 1, uniform(hidden)

    def by_name(self):
        """As an exported library takes them."""
        return {'wqkv': self.qkv, 'bqkv': self.qkv_bias, 'wo': self.out, 'bo': self.out_bias,
                'gamma1': self.gamma1, 'beta1': self.beta1, 'w1': self.up, 'b1': self.up_bias,
                'w2': self.down, 'b2': self.down_bias, 'gamma2': self.gamma2, 'beta2': self.beta2}


def make_attentions(a, torch, batch, keep, mask):
    """Functions of q, k and v, each (B,H,S,W), by the name of the variant that uses them."""
    sdpa = torch.nn.functional.scaled_dot_product_attention
    root = math.sqrt(a.head_size)
    padded = keep.dim() == 3
    if padded:  # a row of padding sees the real keys, as in HuggingFace's models: else it would be NaN
        keep = keep | (~keep.any(-1, keepdim=True) & keep.any(-2, keepdim=True))
    per_head = keep.unsqueeze(1) if padded else keep

    def eager(q, k, v):
        scores = q @ k.transpose(-2, -1) / root
        return torch.softmax(scores.masked_fill(~per_head, -10000.0), -1) @ v

    def with_sdpa(q, k, v):
        if mask == 'full' and not padded:
            return sdpa(q, k, v)
        if mask == 'causal' and not padded:
            return sdpa(q, k, v, is_causal=True)
        return sdpa(q, k, v, attn_mask=per_head)

    made = {'eager': eager, 'sdpa': with_sdpa, 'compile': with_sdpa, 'compile-max': with_sdpa}
    if 'flex' in a.variants:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        seq_len = keep.shape[-1]
        bit = (lambda b, h, i, j: keep[b, i, j]) if padded else (lambda b, h, i, j: keep[i, j])
        blocks = create_block_mask(bit, batch if padded else None, None, seq_len, seq_len,
                                   device='cuda')
        made['flex'] = lambda q, k, v: flex_attention(q, k, v, block_mask=blocks)
    return made


def find_lengths(keep):
    """Real tokens of each sequence; a real token sees at least itself."""
    return keep.any(-1).sum(-1).tolist()


def make_varlen(torch, lengths):
    """A function of q, k and v, each (T,H,W), sequence after sequence."""
    from torch.nn.attention.varlen import varlen_attn
    ends = [0, *itertools.accumulate(lengths)]
    ends, longest = torch.tensor(ends, dtype=torch.int32, device='cuda'), max(lengths)
    return lambda q, k, v: varlen_attn(q, k, v, ends, ends, longest, longest)


def make_layer(a, torch, attention):
    """A function of x, (B,S,D) or packed (T,D), and weights."""
    functional = torch.nn.functional
    hidden = a.heads * a.head_size

    def attend(*qkv):
        split = [t.unflatten(-1, (a.heads, a.head_size)) for t in qkv]
        if qkv[0].dim() == 2:
            return attention(*split).flatten(-2)
        return attention(*(t.transpose(1, 2) for t in split)).transpose(1, 2).flatten(-2)

    def layer(x, w):
        h = attend(*(x @ w.qkv + w.qkv_bias).chunk(3, -1)) @ w.out + w.out_bias + x
        h = functional.layer_norm(h, (hidden,), w.gamma1, w.beta1)
        y = functional.gelu(h @ w.up + w.up_bias) @ w.down + w.down_bias + h
        return functional.layer_norm(y, (hidden,), w.gamma2, w.beta2)

    return layer


def make_inputs(a, torch, dtype, batch, seq_len):
    """The first layer's input, and the weights of all layers."""
    hidden = a.heads * a.head_size
    x = torch.empty(batch, seq_len, hidden, device='cuda').uniform_(-0.4, 0.4).to(dtype)
    return x, [Weights(torch, dtype, hidden) for _ in range(a.layers)]


def layers_of(plan, x, weights, lengths=None):
    """A function without arguments that runs the layers of a module of export_plan()."""
    layers = importlib.import_module(plan).Layers([w.by_name() for w in weights])
    return lambda: layers(x, lengths)


def make_variants(a, torch, dtype, batch, seq_len, mask, plan):
    """Functions without arguments that run `per` layers or attentions, by their names."""
    keep = load_mask(a, torch, batch, seq_len, mask)
    attentions = make_attentions(a, torch, batch, keep, mask)
    names = a.variants
    if mask != 'full':
        names = [n for n in names if n != VARLEN]
    torch._dynamo.reset()

    def compiled(name, function):
        if name in ('compile', 'flex', VARLEN):
            return torch.compile(function, dynamic=False)
        if name == 'compile-max':
            return torch.compile(function, dynamic=False, mode='max-autotune-no-cudagraphs')
        return function

    if a.op == 'attention':
        q, k, v = (torch.empty(batch, a.heads, seq_len, a.head_size, device='cuda')
                   .uniform_(-0.4, 0.4).to(dtype) for _ in range(3))

        def repeat(attention):
            return lambda: [attention(q, k, v) for _ in range(CALLS)]

        return {n: repeat(compiled(n, attentions[n])) for n in names}, CALLS

    x, weights = make_inputs(a, torch, dtype, batch, seq_len)
    packed, lengths = None, find_lengths(keep) if a.avg_seq_len else None
    if VARLEN in names:
        attentions[VARLEN] = make_varlen(torch, lengths)
        packed = torch.cat([sequence[:n] for sequence, n in zip(x, lengths)])

    def chain(layer, first):
        def run():
            y = first
            for w in weights:
                y = layer(y, w)
            return y
        return run

    variants = {n: chain(compiled(n, make_layer(a, torch, attentions[n])),
                         packed if n == VARLEN else x) for n in names}
    if plan is not None:
        given = None if lengths is None else torch.tensor(lengths, dtype=torch.int32)
        variants[OURS] = layers_of(plan, x, weights, given)
    return variants, a.layers


def capture(torch, run):
    """A CUDA graph of run(), which ran before: compilers are done then; and what it gives."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), torch.no_grad():
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        result = run()
    return graph, result


def time_graphs(torch, graphs, rounds):
    """Milliseconds of the replays of each graph, in the same rounds.  All are requested at once, so
    the GPU waits for the host before the first one alone."""
    draw, marks = random.Random(0), []
    for _ in range(rounds + 5):
        marks.append({})
        for name in draw.sample(list(graphs), len(graphs)):
            start, end = marks[-1][name] = torch.cuda.Event(True), torch.cuda.Event(True)
            start.record()
            graphs[name].replay()
            end.record()
    torch.cuda.synchronize()
    return {name: [m[name][0].elapsed_time(m[name][1]) for m in marks[5:]]  # the first ones warm up
            for name in graphs}


def differ_by(result, other):
    """As a share of the result's norm."""
    return float((result.float() - other.float()).norm() / result.float().norm())


def same_results(results, point):
    """Whether PyTorch gives what fuseplan gives; says what does not."""
    ours, same = results.get(OURS), True
    for name, theirs in results.items():
        if ours is None or name in (OURS, VARLEN):
            continue
        difference = differ_by(theirs, ours)
        if not difference <= SAME:
            print(f'peers: {point}: the result of {name} differs from that of {OURS} by '
                  f'{difference:.2g} of its norm; expected {SAME} at most', file=sys.stderr)
            same = False
    return same


def time_variants(a, torch, dtype, batch, seq_len, mask, plan):
    """Microseconds of a layer or of attention in each round, by variant; whether results agree."""
    point = f'{batch}x{seq_len} {mask}'
    variants, per = make_variants(a, torch, dtype, batch, seq_len, mask, plan)
    graphs, results = {}, {}
    for name, run in variants.items():
        try:
            graphs[name], results[name] = capture(torch, run)
        except Exception as e:  # a variant that PyTorch cannot run is left out, whatever it raised
            print(f'peers: {name} {point}: {one_line(str(e), 0, repr(e))}', file=sys.stderr)
    times = time_graphs(torch, graphs, a.rounds)
    same = bool(a.avg_seq_len) or same_results(results, point)  # padding may hold anything
    return {n: [1e3 * ms / per for ms in t] for n, t in times.items()}, same


# ---- the table -----------------------------------------------------------------------------------


def median(values):
    return sorted(values)[len(values) // 2]


def interval(values):
    """Of 95 %, for the median, by order statistics; of few values all of them."""
    half = 0.98 * math.sqrt(len(values))
    low, high = math.floor(len(values) / 2 - half), math.ceil(len(values) / 2 + half)
    values = sorted(values)
    return values[max(low, 0)], values[min(high, len(values) - 1)]


def ratio_text(times, others, digits):
    """Of times that were taken in the same rounds: 'median (low to high)'."""
    ratios = [t / other for t, other in zip(times, others)]
    low, high = (f'{r:.{digits}f}' for r in interval(ratios))
    middle = f'{median(ratios):.{digits}f}'
    return middle if low == high else f'{middle} ({low} to {high})'


def compare(times):
    """The fastest variant of PyTorch over fuseplan, of the same rounds: 'median (low to high)'."""
    peers = {n: t for n, t in times.items() if n != OURS}
    if OURS not in times or not peers:
        return '-'
    return ratio_text(min(peers.values(), key=median), times[OURS], 2)


def print_row(cells):
    print(f'{cells[0]:>12}  {cells[1]:24}' + ''.join(f'{c:>13}' for c in cells[2:-1]) +
          f'  {cells[-1]}', flush=True)


def time_points(a, torch, dtype, plans, out):
    """Prints a row for each point, and writes its times to a file of CSV.  Whether results agree."""
    names, all_same = [OURS, *a.variants], True
    for (batch, seq_len, mask), plan in plans:
        own = time_attention(a, batch, seq_len, mask) if a.op == 'attention' else None
        times, same = time_variants(a, torch, dtype, batch, seq_len, mask, plan)
        all_same = all_same and same
        for name, us in times.items():
            out.writerow([name, a.dtype, batch, seq_len, mask, f'{median(us):.3f}'])
        if own is not None:
            times[OURS] = [own] * a.rounds
        print_row([f'({batch},{seq_len})', mask,
                   *(f'{median(times[n]):.2f}' if n in times else '-' for n in names),
                   compare(times)])
    return all_same


def main():
    a = parse_arguments()
    torch = import_torch()
    dtype = {'fp16': torch.float16, 'bf16': torch.bfloat16}[a.dtype]
    torch.manual_seed(0)
    points = [(*shape, mask) for shape in a.shapes for mask in split_masks(a.mask)]
    with (tempfile.TemporaryDirectory() as scratch,
          open(a.output, 'w', newline='', encoding='utf-8', buffering=1) as file):
        out = csv.writer(file, lineterminator='\n')
        out.writerow(HEADER)
        modules = [None] * len(points)
        if a.op == 'layer':
            with concurrent.futures.ThreadPoolExecutor(max(os.cpu_count() // 4, 1)) as pool:
                modules = list(pool.map(
                    lambda p: export_plan(a, scratch, plan_name(*p), workload_options(a, *p)), points))
        print(f'microseconds, {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {a.dtype}, '
              f'{a.heads} heads of {a.head_size}')
        print_row(['shape', 'mask', OURS, *a.variants, 'ratio'])
        if not time_points(a, torch, dtype, zip(points, modules), out):
            sys.exit(1)


if __name__ == '__main__':
    main()
