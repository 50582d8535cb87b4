#!/usr/bin/env python3
"""Times fuseplan beside PyTorch on one CUDA GPU and prints a table.  FILE.csv gets PyTorch's times, a
line each.

    peers.py [OPTION...] -o FILE.csv [PRESET:]BATCHxSEQ_LEN[@MASK,...]...

What is timed (--op):
  layer       an encoder layer, in microseconds a layer: the best plan that the database knows beside
              eager PyTorch (eager; sdpa: with scaled_dot_product_attention), and under torch.compile
              the same (compile, compile-max: mode max-autotune), with cuDNN's attention alone (cudnn),
              with FlexAttention by Triton (flex) and by FlashAttention-4 (flex-flash), with
              FlashAttention-4's own call (fa4), with torchao's products of e4m3 (torchao, which the
              ratio leaves out), and HuggingFace's layers of the kind (hf), with weights of their own,
              compiled as a whole or, where layers are of two kinds, one by one as the others' are; and
              fuseplan's best plan that has all GEMMs in e4m3 (fuseplan-fp8, left out likewise), by scales
              of these very layers.
              With --avg-seq-len fuseplan, fa4 and one more variant run on packed tokens (varlen:
              PyTorch's varlen_attn), these two with the mask full alone.
  attention   attention alone, in microseconds: fuseplan's from the packed q, k and v to merged heads,
              with bias; the others' (sdpa, flash2, cudnn, fa4, flex, flex-flash; attentions.py says
              which) on q, k and v that are split already.

Options that say what a layer is, as --preset, go to fuseplan, and so does the preset of a point.
`fuseplan bench --dump` then gives inputs, weights, mask and result.  First PyTorch's layers must give
that result in fp32.

All variants of a point run in this process from CUDA graphs, a replay of each in a round, in an order
that is drawn anew.  Among them is fuseplan's plan of the layers, as `fuseplan export` writes it for
PyTorch; nvcc builds it.  Attention is timed by `fuseplan bench`, right before the variants.  All results but
HuggingFace's are compared with fuseplan's, those of attention alone with fp32.  With --apart each of PyTorch's
variants of each point has a process of its own with fuseplan's plan, so that one that crashes takes no other
with it.  The variants of all points build at the same time, until SECONDS after the last one began.  Then they
are timed one after another; the time of fuseplan is that beside the fastest.
A figure is the median of the replays, the ratio the median over the rounds, with its 95 % interval.  A
variant that fails leaves out its line and says why; so do packages that are not there.
"""

import argparse
import concurrent.futures
import csv
import functools
import importlib
import itertools
import json
import math
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../python'))

try:
    import torch
    from fuseplan import calibration, replace
    import attentions
    import torch_layers
except ImportError:
    torch = None

HEADER = ['variant', 'dtype', 'batch', 'seq_len', 'mask', 'us', 'preset']
HF, VARLEN, FLASH4, TORCHAO, OURS_E4M3 = 'hf', 'varlen', 'fa4', 'torchao', 'fuseplan-fp8'
LAYER_VARIANTS = ['eager', 'sdpa', 'compile', 'compile-max', 'cudnn', FLASH4, 'flex', 'flex-flash', HF, TORCHAO,
                  OURS_E4M3]
ATTENTION_VARIANTS = ['sdpa', 'flash2', 'cudnn', FLASH4, 'flex', 'flex-flash']
UNFUSED = ['eager', 'sdpa']  # of layers: without torch.compile
CALLS = 32  # of attention in a graph: its launch is then small beside them
PREPARED_AT_ONCE = 2  # points of --apart: one is computed again while fuseplan measures the next one
OURS = 'fuseplan'
SAME_E4M3 = 0.2 / 12  # how much outputs may differ, over their norm and by layers, where products' operands are e4m3
DEVICE = 'cuda'
LAYER_OPTIONS = [['--target'], ['--preset'], ['--model'], ['-H', '--heads'], ['-W', '--head-size'],
                 ['-L', '--layers'], ['--hidden'], ['--ffn'], ['--eps'], ['--norm'], ['--norm-kind'],
                 ['--activation'], ['--rope'], ['--local-mask'], ['--local-rope'], ['--global-every']]
LAYER_FLAGS = ['--gate', '--score-bias']
# by chain: the model's module of transformers, and what its names begin with
HUGGINGFACE = {'bert': ('bert', 'Bert'), 'pre': ('vit', 'ViT'), 'pre+quick_gelu': ('clip', 'CLIP'),
               'silu+gate+rope': ('nomic_bert', 'NomicBert'), 'bias': ('mpnet', 'MPNet'),
               'pre+gate+rope': ('modernbert', 'ModernBert')}


def say(message):
    """A line to standard error, in one piece: threads of time_apart() say some at the same time."""
    sys.stderr.write(f'peers: {message}\n')


def fail(message):
    say(message)
    sys.exit(1)


def one_line(text, which, otherwise):
    """A line of what a program or an exception says; `otherwise` if it says nothing."""
    lines = text.strip().splitlines()
    return lines[which] if lines else otherwise


def parse_arguments():
    def shape(text):
        point, _, masks = text.partition('@')
        preset, _, sizes = point.rpartition(':')
        batch, by, seq_len = sizes.partition('x')
        if not (batch.isdigit() and by and seq_len.isdigit()):
            raise argparse.ArgumentTypeError(f"'{text}' is no BATCHxSEQ_LEN, as in 8x512, vit-base:8x197, 8x512@causal")
        return preset, int(batch), int(seq_len), masks

    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('shapes', nargs='+', type=shape, metavar='[PRESET:]BATCHxSEQ_LEN[@MASK,...]')
    p.add_argument('-o', '--output', required=True, metavar='FILE.csv')
    p.add_argument('-m', '--mask', default='full,causal,strided', metavar='MASK,...',
                   help='masks of the points without, as `fuseplan mask` names them, separated by commas (%(default)s)')
    p.add_argument('--avg-seq-len', type=int, metavar='N',
                   help='draw lengths with this average, as fuseplan does; the rest is padding')
    p.add_argument('--op', choices=['layer', 'attention'], default='layer')
    p.add_argument('--variants', metavar='NAME,...', help="some of PyTorch's variants (all)")
    p.add_argument('--dtype', choices=['fp16', 'bf16'], default='fp16')
    p.add_argument('--rounds', type=int, default=100, help='replays of each graph (%(default)s)')
    p.add_argument('--apart', type=int, metavar='SECONDS',
                   help='a process for each variant; so long may they build once all began')
    p.add_argument('-v', '--verbose', action='store_true', help='say where variants fail')
    p.add_argument('--fuseplan', default='fuseplan', metavar='PATH', help='the program')
    layer = p.add_argument_group('of the layer, for fuseplan')
    for names in LAYER_OPTIONS:
        layer.add_argument(*names, dest='layer', action='append', default=[], metavar='X',
                           type=lambda value, name=names[-1]: [name, value])
    for name in LAYER_FLAGS:
        layer.add_argument(name, dest='layer', action='append_const', const=[name])
    a = p.parse_args()
    a.layer = list(itertools.chain(*a.layer))
    if '--target' not in a.layer:
        a.layer += ['--target', 'cuda']
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


def check_torch():
    if torch is None:
        fail('there is no PyTorch with NumPy; install them for the python3 on PATH')
    if not torch.cuda.is_available():
        fail('PyTorch finds no CUDA GPU')


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


class Point:
    """A workload: what the command line says, with the point's own preset; batch, seq_len and mask."""

    def __init__(self, a, preset, batch, seq_len, mask):
        self.a = argparse.Namespace(**{**vars(a), 'layer': a.layer + (['--preset', preset] if preset else [])})
        self.preset, self.batch, self.seq_len, self.mask = preset, batch, seq_len, mask
        self.name = f'{preset} {batch}x{seq_len} {mask}'.strip()

    def __str__(self):
        return self.name

    def options(self):
        lengths = ['--avg-seq-len', str(self.a.avg_seq_len)] if self.a.avg_seq_len else []
        return [*self.a.layer, '-b', str(self.batch), '-s', str(self.seq_len), '-m', self.mask, '--dtype',
                self.a.dtype, '-q', *lengths]


def run_fuseplan(a, *arguments):
    """Runs the program; its standard output, or null after a line that says what failed."""
    done = subprocess.run([a.fuseplan, *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    say(one_line(done.stderr, -1, f'fuseplan {arguments[0]}: exit status {done.returncode}'))
    return None


def time_fuseplan(point, directory):
    """Microseconds of a layer or of attention by fuseplan, which writes what it ran; null if it fails."""
    attention = point.a.op == 'attention'
    what = ['--op', 'attention'] if attention else ['best', '--baseline', 'none']
    text = run_fuseplan(point.a, 'bench', *what, '--format', 'json', '--dump', directory, *point.options())
    if text is None:
        return None
    row = json.loads(text)[0]
    return row['median_us' if attention else 'us_per_layer']


def export_plan(point, directory, suffix='', *options):
    """Makes a module that runs the best plan known of a point.  Its name, or null after a line that says
    what failed."""
    name = 'plan_' + ''.join(c if c.isalnum() else '_' for c in point.name + suffix)
    where = tempfile.mkdtemp(dir=directory)
    if run_fuseplan(point.a, 'export', 'best', '--name', name, '--output', where, '--force', *options,
                    *point.options()) is None:
        return None
    made = subprocess.run(['make', '-s', '-j', '4', '-C', where, f'lib{name}.so'], capture_output=True,
                          text=True, check=False)
    if made.returncode != 0:
        why = one_line(made.stderr, -1, f'exit status {made.returncode}')
        say(f'{name}: {why}')
        return None
    sys.path.insert(0, where)
    return name


def export_plans(points, directory):
    """A module or null for each point."""
    if points[0].a.op != 'layer':
        return [None] * len(points)
    with concurrent.futures.ThreadPoolExecutor(max(os.cpu_count() // 4, 1)) as pool:
        return list(pool.map(lambda p: export_plan(p, directory), points))


# ---- PyTorch -------------------------------------------------------------------------------------


def make_packed(dump, weights):
    """The weights as an exported library takes them: no beta of an RMS norm, and a gate's columns in pairs."""
    packed = [{name: t for name, t in w.items() if t is not None} for w in weights]
    if dump.chain['gate']:
        for w in packed:
            w.update({name: torch.stack(w[name].chunk(2, -1), -1).flatten(-2) for name in ('w1', 'b1')})
    return packed


def export_e4m3(point, dump, weights):
    """A module that runs the best plan with all GEMMs in e4m3, by scales that suit these layers' own inputs."""
    seen = []

    def multiply(x, weight, bias):
        seen.append(float(x.abs().max()))
        return torch_layers.multiply(x, weight, bias)

    torch_layers.compute_layers(dump, linear=multiply)
    layers = [{name: {'amax': amax, 'quantile': amax, 'rms': amax, 'scale': calibration.scale_of(amax)}
               for name, amax in zip(calibration.TENSORS, seen[at:])}
              for at in range(0, len(seen), len(calibration.TENSORS))]
    path = os.path.join(dump.directory, 'calibration.json')
    model = calibration.fingerprint(make_packed(dump, weights))
    calibration.write(path, json.dumps({'version': calibration.VERSION, 'model': model, 'layers': layers}).encode())
    plan = export_plan(point, dump.directory, '_fp8', '--precision', 'fp8', '--calibration', path)
    if plan is None:
        raise attentions.Unable('no plan in e4m3 (above)')
    return plan


def layers_of(plan, dump, weights):
    """A function without arguments that runs the layers of a module of export_plan()."""
    x, lengths, shared = dump.load('x'), dump.workload['lengths'], {}
    if dump.chain['norm'] == 'pre':  # n is x normalised
        shared['first_gamma'] = torch.ones_like(x[0, 0])
        if dump.chain['norm_kind'] == 'layer':
            shared['first_beta'] = torch.zeros_like(x[0, 0])
    if dump.chain['score_bias']:
        shared['score_bias'] = dump.read('score_bias')
    layers = importlib.import_module(plan).Layers(make_packed(dump, weights), **shared)
    given = None if lengths is None else torch.tensor(lengths, dtype=torch.int32)
    return lambda: layers(x, given)


def make_further(dump):
    """What a call of HuggingFace's layers of a kind takes beside x."""
    further = {'attention_mask': None}
    if not dump.keep.all():
        further['attention_mask'] = attentions.make_added(dump).expand(dump.workload['batch'], 1, -1, -1)
    if dump.chain['rope']:
        further['position_embeddings'] = tuple(torch.cat((t, t), -1)[None] for t in dump.rope())
    if dump.chain['score_bias']:
        further['position_bias'] = torch_layers.spread_bias(dump.load('score_bias'))[None]
    return further


def make_huggingface(a, dump):
    """One of HuggingFace's layers for each of ours, and what a call of each takes beside x."""
    workload = dump.workload
    module, prefix = HUGGINGFACE.get(dump.chain['name'], (None, None))
    heads, hidden = workload['heads'], workload['hidden']
    sizes = {'hidden_size': hidden, 'num_attention_heads': heads, 'layer_norm_eps': workload['eps'],
             'intermediate_size': workload['ffn']}
    layer, config = f'{prefix}Layer', f'{prefix}Config'
    if any(word.startswith('whisper') for word in a.layer):
        module, layer, config = 'whisper', 'WhisperEncoderLayer', 'WhisperConfig'
        sizes = {'d_model': hidden, 'encoder_attention_heads': heads, 'encoder_ffn_dim': workload['ffn']}
    elif module == 'modernbert':
        layer, sizes['num_hidden_layers'] = 'ModernBertEncoderLayer', workload['layers']
    elif module == 'clip':
        layer, config = 'CLIPEncoderLayer', 'CLIPVisionConfig'
    if module is None:
        raise attentions.Unable(f"there is no layer of the chain {dump.chain['name']}")
    classes = importlib.import_module(f'transformers.models.{module}.modeling_{module}')
    config = getattr(classes, config)(**sizes, attn_implementation='sdpa')
    with torch.device(DEVICE):
        layers = [getattr(classes, layer)(config, *([i] if module == 'modernbert' else [])).to(dump.dtype).eval()
                  for i in range(workload['layers'])]
    further = [make_further(dump.of_kind(kind)) for kind in sorted(set(dump.kinds))]
    return layers, [further[kind] for kind in dump.kinds]


def run_huggingface(layers, x, further):
    for layer, others in zip(layers, further):
        x = layer(x, **others)
        x = x[0] if isinstance(x, tuple) else x
    return x


def compiled(name, function):
    if name == 'compile-max':
        return torch.compile(function, dynamic=False, mode='max-autotune-no-cudagraphs')
    return torch.compile(function, dynamic=False)


def quantize(w):
    """The weights of a layer, those of products as torchao's, (out, in) in e4m3."""
    from torchao.quantization import Float8DynamicActivationFloat8WeightConfig, PerRow, PerTensor, quantize_
    scales = PerRow() if w['wo'].dtype == torch.bfloat16 else PerTensor()  # rows have scales in bf16 alone
    config = Float8DynamicActivationFloat8WeightConfig(granularity=scales, set_inductor_config=False)
    made = dict(w)
    for name in ('wqkv', 'wo', 'w1', 'w2'):
        linear = torch.nn.Linear(*w[name].shape, bias=False, device=DEVICE, dtype=w[name].dtype)
        linear.weight = torch.nn.Parameter(w[name].t().contiguous(), requires_grad=False)
        quantize_(linear, config)
        made[name] = linear.weight
    return made


def attention_builders(a, dump):
    """Functions that build functions that run CALLS attentions, by name; and what these should give."""
    w = dump.workload
    q, k, v = (torch.empty(w['batch'], w['heads'], w['seq_len'], w['head_size'], device=DEVICE)
               .uniform_(-0.4, 0.4).to(dump.dtype) for _ in range(3))

    def repeat(name):
        attention = attentions.make_attention(name, dump)
        attention = compiled(name, attention) if name.startswith('flex') else attention

        def run():
            for _ in range(CALLS):
                result = attention(q, k, v)
            return result

        return run

    bias = attentions.bias_table(dump)
    want = torch_layers.attend(q.float(), k.float(), v.float(), dump.keep,
                               None if bias is None else torch_layers.spread_bias(bias))
    return {n: functools.partial(repeat, n) for n in a.variants}, want


def layer_builders(a, dump, point, plan):
    """Functions that build functions that run all layers, by name."""
    views = [dump.of_kind(kind) for kind in sorted(set(dump.kinds))]
    weights, real, x, n = dump.weights(), dump.real(), dump.load('x'), dump.load('n')
    place = real.nonzero()[:, 1]

    def chain(name):
        packed = name == VARLEN or (name == FLASH4 and dump.workload['lengths'])
        linear = torch.nn.functional.linear if name == TORCHAO else torch_layers.multiply
        layers, own = [], [quantize(w) for w in weights] if name == TORCHAO else weights
        for view in views:
            rope = view.rope()
            if packed and rope is not None:
                rope = [t[place].unsqueeze(1) for t in rope]
            layer = torch_layers.make_layer(view.workload, attentions.make_attention(name, view), rope, linear)
            layers.append(layer if name in UNFUSED else compiled(name, layer))
        first = [t[real] if packed and t is not None else t for t in (x, n)]
        return lambda: torch_layers.run_layers(layers, dump.kinds, *first, own)[0]

    def huggingface():
        run, (layers, further) = run_huggingface, make_huggingface(a, dump)
        if len(views) == 1:
            run = compiled(HF, run)
        else:
            layers = [compiled(HF, layer) for layer in layers]
        return lambda: run(layers, x, further)

    builders = {n: huggingface if n == HF else functools.partial(chain, n) for n in a.variants}
    if OURS_E4M3 in builders:
        builders[OURS_E4M3] = lambda: layers_of(export_e4m3(point, dump, weights), dump, weights)
    if plan is not None:
        builders[OURS] = lambda: layers_of(plan, dump, weights)
    return builders


def capture(run):
    """A CUDA graph of run(), which ran before: compilers are done then; what it gives; and what owns its memory."""
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
    return graph, result, run


def time_graphs(graphs, rounds):
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


def same_results(dump, results, want, point):
    """Whether PyTorch gives what is wanted; says what does not."""
    real, same = dump.real(), True
    for name, given in results.items():
        if name == HF:
            continue
        if want.dim() == given.dim() == 3:
            given, expected = given[real], want[real]
        else:
            expected = want if want.dim() == 4 else want[real]  # of attention; of packed tokens
        difference = torch_layers.relative_error(given.float(), expected)
        most = SAME_E4M3 * dump.workload['layers'] if name in (TORCHAO, OURS_E4M3) else replace.BOUNDS[point.a.dtype]
        if not difference <= most:
            say(f'{point}: the result of {name} differs by {difference:.2g} of its norm; expected {most} at most')
            same = False
    return same


def same_work(directory, point):
    """Whether the layers of torch_layers.py give in fp32 what fuseplan gives; says by how much they differ."""
    dump = torch_layers.Dump(directory, DEVICE, torch.float32)
    error, most = torch_layers.recompute_layers(dump), replace.BOUNDS[point.a.dtype]
    say(f"{point}: chain {dump.chain['name']}, {dump.workload['layers']} layers: fuseplan's result is "
        f"{'right' if error <= most else 'wrong'}: {error:.2g} of its norm away from that in fp32, {most} at most are "
        'allowed')
    return error <= most


def time_variants(a, dump, point, plan, wait=lambda: None):
    """Microseconds of a layer or of attention in each round, by variant; whether results agree.  wait() is called
    before anything is timed."""
    torch._dynamo.reset()
    if a.op == 'attention':
        (builders, want), per = attention_builders(a, dump), CALLS
    else:
        builders, want, per = layer_builders(a, dump, point, plan), dump.read('y'), dump.workload['layers']
    graphs, results, owners = {}, {}, {}
    for name, build in builders.items():
        try:
            graphs[name], results[name], owners[name] = capture(build())
        except Exception as e:  # a variant that cannot run is left out, whatever it raised
            say(f'{name} {point}: {one_line(str(e), 0, repr(e))}')
            if a.verbose:
                traceback.print_exc()
    wait()
    times = time_graphs(graphs, a.rounds)
    same = same_results(dump, results, want, point)
    return {n: [1e3 * ms / per for ms in t] for n, t in times.items()}, same


def time_variant(turn, a, directory, dtype, point, plan):
    """What a process of Apart does: says that it built, and once it is its turn what it measured."""
    def wait():
        turn.send('built')
        turn.recv()

    turn.send(time_variants(a, torch_layers.Dump(directory, DEVICE, dtype), point, plan, wait))


class Apart:
    """time_variants() of a point, a process for each variant, which build from now on; what fails is left out."""

    def __init__(self, point, directory, dtype, plan):
        self.name, self.seconds, self.running = point.name, point.a.apart, {}
        context = multiprocessing.get_context('spawn')
        for name in point.a.variants:
            turn, theirs = context.Pipe()
            one = argparse.Namespace(**{**vars(point.a), 'variants': [name]})
            process = context.Process(target=time_variant, args=(theirs, one, directory, dtype, point, plan))
            process.start()
            theirs.close()
            self.running[name] = process, turn

    def hear(self, name, end):
        process, turn = self.running[name]
        try:
            if turn.poll(max(end - time.monotonic(), 0)):
                return turn.recv()
            why = f'no answer within {self.seconds} s'
        except (EOFError, ConnectionError):
            process.join()
            why = f'its process ended with status {process.exitcode}'
        say(f'{name} {self.name}: {why}')
        process.kill()
        return None

    def build(self, end):
        """Waits until all are built, until `end` at most."""
        self.built = [name for name in self.running if self.hear(name, end)]

    def time(self):
        """Microseconds of a layer in each round, by variant; whether results agree."""
        times, beside, same = {}, {}, True
        for name in self.built:
            self.running[name][1].send('your turn')
            found, right = self.hear(name, time.monotonic() + self.seconds) or ({}, True)
            beside[name] = found.pop(OURS, None)
            times.update(found)
            same = same and right
        own = beside.get(fastest(times))
        return {**times, OURS: own} if own else times, same

    def stop(self):
        for process, _ in self.running.values():
            process.kill()
            process.join()


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


def fastest(times):
    """The name of PyTorch's fastest variant of the same precision, or null."""
    return min((n for n in times if n not in (OURS, TORCHAO, OURS_E4M3)), key=lambda n: median(times[n]), default=None)


def compare(times):
    """That variant over fuseplan, of the same rounds: 'median (low to high)'."""
    name = fastest(times)
    return ratio_text(times[name], times[OURS], 2) if name and OURS in times else '-'


def print_row(cells):
    print(f'{cells[0]:>12}  {cells[1]:24}' + ''.join(f'{c:>13}' for c in cells[2:-1]) +
          f'  {cells[-1]}', flush=True)


def print_point(point, times, out):
    """The row of a point; its times go to a file of CSV."""
    a = point.a
    for name, us in times.items():
        out.writerow([name, a.dtype, point.batch, point.seq_len, point.mask, f'{median(us):.3f}', point.preset])
    print_row([f'({point.batch},{point.seq_len})', f'{point.preset} {point.mask}'.strip(),
               *(f'{median(times[n]):.2f}' if n in times else '-' for n in (OURS, *a.variants)),
               compare(times)])


def prepare(point, scratch):
    """A directory with what fuseplan computed of a point, and its time; null if it failed or is wrong."""
    directory = tempfile.mkdtemp(dir=scratch)
    own = time_fuseplan(point, directory)
    if own is None or (point.a.op == 'layer' and not same_work(directory, point)):
        return None
    torch.cuda.empty_cache()
    return directory, own


def time_together(points, plans, scratch, dtype, out):
    """The rows of points, one after another.  Whether all results are right."""
    right = True
    for point, plan in zip(points, plans):
        made = prepare(point, scratch)
        if made is None:
            right = False
            continue
        times, same = time_variants(point.a, torch_layers.Dump(made[0], DEVICE, dtype), point, plan)
        times.setdefault(OURS, [made[1]] * point.a.rounds)
        print_point(point, times, out)
        right = right and same
    return right


def time_apart(points, plans, scratch, dtype, out):
    """Likewise; all that PyTorch compiles is compiled at the same time, and timed when all is there."""
    os.environ.setdefault('TORCHINDUCTOR_COMPILE_THREADS', '2')
    right, building, own = True, {}, {}
    try:
        with concurrent.futures.ThreadPoolExecutor(PREPARED_AT_ONCE) as pool:
            prepared = pool.map(lambda p: prepare(p, scratch), points)
            for point, plan, made in zip(points, plans, prepared):
                right = right and made is not None
                if made:
                    building[point], own[point] = Apart(point, made[0], dtype, plan), made[1]
        end = time.monotonic() + points[0].a.apart
        for apart in building.values():
            apart.build(end)
        for point, apart in building.items():
            times, same = apart.time()
            times.setdefault(OURS, [own[point]] * point.a.rounds)
            print_point(point, times, out)
            right = right and same
            apart.stop()
    finally:
        for apart in building.values():
            apart.stop()
    return right


def main():
    a = parse_arguments()
    check_torch()
    dtype = {'fp16': torch.float16, 'bf16': torch.bfloat16}[a.dtype]
    torch.manual_seed(0)
    points = [Point(a, *shape, mask) for *shape, masks in a.shapes for mask in split_masks(masks or a.mask)]
    with (tempfile.TemporaryDirectory() as scratch,
          open(a.output, 'w', newline='', encoding='utf-8', buffering=1) as file):
        out = csv.writer(file, lineterminator='\n')
        out.writerow(HEADER)
        plans = export_plans(points, scratch)
        print(f'microseconds, {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, '
              f"{attentions.versions(a.variants)}, {a.dtype}, {' '.join(a.layer)}")
        print_row(['shape', 'mask', OURS, *a.variants, 'ratio'])
        right = (time_apart if a.apart else time_together)(points, plans, scratch, dtype, out)
    if not right:
        sys.exit(1)


if __name__ == '__main__':
    main()
