#!/usr/bin/env python3
"""The Python package on a GPU.

    python.py [--families [NAME...] | --graphs | --calls | --e4m3] [--times [--ours] [--search SECONDS]]

Without --times: models of each family, in fp16 and bf16, beside the same in fp32, from which none may be farther than
PyTorch in the type, or DIFFERENCE_MAX; then what a user does: other streams, CUDA graphs with a mask and without one,
torch.compile, two models, a second GPU where there is one, restore; on Hopper GPUs GEMMs in e4m3, also alone by --e4m3;
CUDA graphs of whole calls, also alone by --graphs.
--calls: a minute's part: calls of BERT-base by graphs beside those without and PyTorch's, then what a call costs.
--families: models of each family alone, or of those that are named; without a GPU on the CPU, in fp32.
--times: microseconds of model(**batch) on the host's clock, of BERT-base with weights that are drawn, beside PyTorch's.
Exits 1 if anything is wrong.
"""

import argparse
import copy
import itertools
import os
import statistics
import subprocess
import sys
import threading
import time

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(_here, '../../python'), os.path.join(_here, '../python')]

import torch  # noqa: E402
import transformers  # noqa: E402

import fuseplan  # noqa: E402
import models  # noqa: E402
from fuseplan import probe  # noqa: E402
from test_calibration import TEXTS, Words  # noqa: E402

SHAPES = [(4, 64)]
TIMED = [(1, 32), (1, 128), (8, 512), (32, 128)]
DIFFERENCE_MAX = {torch.float16: 1e-2, torch.bfloat16: 8e-2, torch.float32: 1e-4}
ON_GPU = torch.cuda.is_available()
# Head size 64, ffn a multiple of 8.
WIDE = {'hidden_size': 128, 'intermediate_size': 256, 'dim': 128, 'hidden_dim': 256, 'd_model': 128, 'd_kv': 64,
        'd_ff': 256, 'encoder_ffn_dim': 256, 'decoder_ffn_dim': 256, 'ffn_dim': 256, 'n_embd': 128,
        'word_embed_proj_dim': 128}
failures = []


def expect(what, good):
    if not good:
        failures.append(what)
    print(f'{"ok" if good else "FAILED"}: {what}', flush=True)


def draw(name, device='cuda' if ON_GPU else 'cpu', **fields):
    wide = {key: value for key, value in WIDE.items() if key in models.MODELS[name][3]}
    heads = {'n_head': 2} if name == 'bloom' else {}
    return models.draw(name, **{**wide, **heads, **fields}).to(device)


def difference(got, want):
    return float((got.float() - want.float()).norm() / want.float().norm())


def hidden(model, inputs):
    return probe.run_model(model, inputs)[0]


def check_family(name, dtype):
    plain = draw(name)
    half = copy.deepcopy(plain).to(dtype)
    text = 'input_ids' in probe.draw_inputs(half, 1, 4)[0]
    inputs, _ = probe.draw_inputs(half, 4, 64)
    seq_len = hidden(half, inputs).shape[1]
    try:
        ours = fuseplan.optimize(copy.deepcopy(half), SHAPES if text else [(4, seq_len)])
    except (fuseplan.Wrong, fuseplan.ProgramError, ValueError, RuntimeError) as error:
        expect(f'{name}, {dtype}: {type(error).__name__}: {error}', False)
        return
    for batch, lengths in (4, None), (3, None), (9, None), (4, [64, 33, 7, 1]):
        inputs, real = probe.draw_inputs(half, batch, 64, lengths if text else None)
        want, theirs, got = hidden(plain, as_type(inputs, torch.float32)), hidden(half, inputs), hidden(ours, inputs)
        if real is not None:
            want, theirs, got = want[real], theirs[real], got[real]
        error, their_error = difference(got, want), difference(theirs, want)
        expect(f"{name}, {dtype}, batch {batch}{', padded' if real is not None else ''}: {error:.1e}, PyTorch "
               f'{their_error:.1e}', error <= max(DIFFERENCE_MAX[dtype], 1.25 * their_error))  # as optimize() allows
    plain_calls = [s['plain'] for s in fuseplan.stats(ours).values()]
    masked = {'attention_mask': 1} if name == 'siglip text' else {}  # its head reads the row of padding
    expect(f'{name}, {dtype}: no other call ran in PyTorch', plain_calls == [masked])


def check_families(names):
    for name in names:
        if models.has(name):
            for dtype in (torch.float16, torch.bfloat16) if ON_GPU else (torch.float32,):
                check_family(name, dtype)


def as_type(inputs, dtype):
    return {name: t.to(dtype) if torch.is_tensor(t) and t.is_floating_point() else t for name, t in inputs.items()}


# ---- what a user does ------------------------------------------------------------------------------


def check_graphs(ours, plain):
    for lengths in None, [64, 33, 7, 1]:
        inputs, real = probe.draw_inputs(ours, 4, 64, lengths)
        real = torch.ones(4, 64, dtype=torch.bool, device='cuda') if real is None else real
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                hidden(ours, inputs)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        what = 'a CUDA graph' + (' with a mask' if lengths else '')
        try:
            with torch.cuda.graph(graph):
                got = hidden(ours, inputs)
        except RuntimeError as error:
            expect(f'{what}: {error}', False)
            continue
        inputs['input_ids'].copy_(inputs['input_ids'].flip(0))
        graph.replay()
        expect(what, difference(got[real], hidden(plain, inputs)[real]) < 1e-2)


def check_bad_masks():
    """Sequences whose masks a CPU refuses: a mask with rows that differ, and gaps where layers look at distances."""
    bert = fuseplan.optimize(draw('bert').half(), SHAPES)
    rows = torch.ones(4, 1, 64, 64, dtype=torch.bool, device='cuda')
    rows[1, 0, 3, 4] = False
    found = [('rows', bert.encoder(torch.randn(4, 64, 128, device='cuda').half(), attention_mask=rows)[0])]
    if models.has('eurobert'):
        ours = fuseplan.optimize(draw('eurobert').half(), SHAPES)
        inputs, _ = probe.draw_inputs(ours, 4, 64, [64, 33, 7, 1])
        inputs['attention_mask'][1, 5] = 0
        found.append(('gaps', hidden(ours, inputs)))
    for what, y in found:
        bad = y.isnan().flatten(1).all(1).tolist()
        expect(f'{what}: NaN for a bad mask, and for no other: {bad}', bad == [False, True, False, False])


def check_use():
    half = draw('bert').half()
    ours = fuseplan.optimize(copy.deepcopy(half), SHAPES)
    inputs, real = probe.draw_inputs(half, 4, 64, [64, 33, 7, 1])
    want = hidden(half, inputs)[real]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        got = hidden(ours, inputs)[real]
    stream.synchronize()
    expect('another stream', difference(got, want) < 1e-2)
    left = {**inputs, 'attention_mask': inputs['attention_mask'].flip(1)}
    got = hidden(ours, left)
    expect('padded on the left', difference(got[real.flip(1)], hidden(half, left)[real.flip(1)]) < 1e-2)
    expect('rows of padding are 0', not got[~real.flip(1)].any())
    pooled = probe.run_model(ours, left).pooler_output.isnan().all(1)
    expect('what is pooled of padding is NaN', torch.equal(pooled, left['attention_mask'][:, 0] == 0))
    with torch.cuda.device(0):
        torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode('error')
    try:
        got, waits = hidden(ours, inputs), None
    except RuntimeError as error:
        waits = str(error).splitlines()[0]
    torch.cuda.set_sync_debug_mode('default')
    expect(f'a call with a mask waits for nothing: {waits}', waits is None)
    check_graphs(ours, half)
    compiled = torch.compile(ours)
    expect('torch.compile', difference(hidden(compiled, inputs)[real], want) < 1e-2)
    other = draw('vit').half()
    theirs = fuseplan.optimize(copy.deepcopy(other), [(4, 17)])
    images, _ = probe.draw_inputs(other, 4, 0)
    expect('a second model', difference(hidden(theirs, images), hidden(other, images)) < 1e-2)
    expect('the first one beside it', difference(hidden(ours, inputs)[real], want) < 1e-2)
    if torch.cuda.device_count() > 1:
        there = copy.deepcopy(half).to('cuda:1')
        mine = fuseplan.optimize(copy.deepcopy(there), SHAPES)
        moved = {name: t.to('cuda:1') for name, t in inputs.items()}
        expect('a second GPU', difference(hidden(mine, moved)[real.to('cuda:1')].to('cuda'), want) < 1e-2)
    half16 = fuseplan.optimize(copy.deepcopy(draw('bert')), SHAPES, dtype=torch.float16)
    expect('layers in fp16 of a model in fp32', difference(hidden(half16, inputs)[real], want) < 1e-2)
    fuseplan.restore(ours)
    expect('restore', torch.equal(hidden(ours, inputs)[real], want))


def check_e4m3():
    """optimize() itself compares with the layers, whose operands are rounded likewise."""
    for dtype in torch.float16, torch.bfloat16:
        model = draw('bert').to(dtype)
        try:
            fuseplan.optimize(model, SHAPES, precision='fp8', calibration=TEXTS, tokenizer=Words())
        except (fuseplan.Wrong, fuseplan.ProgramError, ValueError, RuntimeError) as error:
            expect(f'e4m3 beside {dtype}: {type(error).__name__}: {error}', False)
            continue
        engine = model.encoder.layer.stack.engine
        expect(f'{engine.precision}: {engine.error:.1e} from the model, which loses {engine.loss:.1e} by rounding',
               engine.loss > 1e-3 and engine.module._dtype is dtype)


# ---- CUDA graphs of whole calls --------------------------------------------------------------------


def count_replays(model):
    return sum(shape['replays'] for stack in fuseplan.stats(model).values() for shape in stack['shapes'].values())


def draw_masked(model, batch, seq_len, padding, seed):
    """A call's inputs, and (B,S) where tokens are.  padding: '', 'right' or 'left'."""
    inputs, _ = probe.draw_inputs(model, batch, seq_len)
    if 'input_ids' not in inputs:
        return {name: torch.randn_like(t) for name, t in inputs.items()}, slice(None)
    generator = torch.Generator().manual_seed(seed)
    inputs['input_ids'] = torch.randint(10, 64, (batch, seq_len), generator=generator).cuda()
    if not padding:
        return inputs, slice(None)
    lengths = torch.randint(1, seq_len + 1, (batch, 1), generator=generator)
    real = torch.arange(seq_len) < lengths
    real = (real.flip(1) if padding == 'left' else real).cuda()
    return {**inputs, 'attention_mask': real.long()}, real


def check_replays(name, paddings=('', 'right', 'left')):
    """Calls with graphs beside those without, of shapes that come again and lengths that change."""
    plain = draw(name).half()
    text = 'input_ids' in probe.draw_inputs(plain, 1, 4)[0]
    shapes = SHAPES if text else [(4, hidden(plain, probe.draw_inputs(plain, 1, 4)[0]).shape[1])]
    ours, without = (fuseplan.optimize(copy.deepcopy(plain), shapes, graphs=graphs) for graphs in (True, False))
    use = {'use_cache': False} if 'use_cache' in vars(plain.config) else {}
    worst, calls, kept = 0.0, 0, []
    for seed in range(4):
        for batch, seq_len in ((1, 32), (4, 64), (3, 17), (3, 30), (9, 50)) if text else ((1, 0), (4, 0), (9, 0)):
            for padding in paddings if text else ('',):
                inputs, real = draw_masked(plain, batch, seq_len, padding, seed)
                want, got = (m(**inputs, **use) for m in (without, ours))
                worst = max(worst, difference(got[0][real], want[0][real]))
                if got.get('pooler_output') is not None and padding != 'left':
                    worst = max(worst, difference(got.pooler_output, want.pooler_output))
                kept.append((got[0], got[0].clone()))
                calls += 1
    replays = count_replays(ours)
    what = f'graphs of {name}'
    expect(f'{what}: {replays} of {calls} calls, {worst:.1e} from those without', worst < 2e-3 and replays >= calls // 3)
    expect(f'{what}: no later call writes to results', all(torch.equal(t, then) for t, then in kept))
    print(f'  {fuseplan.explain(ours).splitlines()[-1]}', flush=True)


def check_streams(ours, without):
    """Streams in turns, none of which waits for another, then threads with a stream each."""
    inputs = [draw_masked(ours, 4, 60, 'right', seed)[0] for seed in range(24)]
    for _ in range(3):
        hidden(ours, inputs[0])
    wants = [hidden(without, one) for one in inputs]
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(3)] + [torch.cuda.default_stream()]

    def call(i):
        with torch.cuda.stream(streams[i % 4]):
            return hidden(ours, inputs[i])
    gots = [call(i) for i in range(24)]
    torch.cuda.synchronize()
    expect('graphs: streams in turns', max(map(difference, gots, wants)) < 2e-3)
    errors, gots = [], [None] * 24

    def work(k):
        try:
            with torch.no_grad():
                for i in range(k, 24, 4):
                    gots[i] = call(i)
        except Exception as error:
            errors.append(error)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    expect(f'graphs: threads: {errors}', not errors and max(map(difference, gots, wants)) < 2e-3)


def check_changes(ours, plain):
    inputs, real = draw_masked(plain, 4, 60, 'right', 0)

    def compare(what):
        for _ in range(4):
            error = difference(hidden(ours, inputs)[real], hidden(plain, inputs)[real])
        expect(f'graphs: {what}: {error:.1e}', error < 1e-2)
    for model in ours, plain:
        model.embeddings.word_embeddings.weight.mul_(0.5)
    compare('weights that were written')
    for model in ours, plain:
        model.embeddings.word_embeddings.weight.data = model.embeddings.word_embeddings.weight.data * 2
    compare('weights that were replaced')
    seen = []
    hook = ours.embeddings.register_forward_hook(lambda *a: seen.append(1))
    compare('a hook')
    hook.remove()
    expect('graphs: a hook is called', len(seen) == 4)
    before = count_replays(ours)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = hidden(ours, inputs)
    graph.replay()
    expect("graphs: none in a user's graph", count_replays(ours) == before and difference(
        got[real], hidden(plain, inputs)[real]) < 1e-2)
    with torch.inference_mode():
        compare('inference mode')
    fuseplan.optimize(ours, [(4, 64), (1, 16)])
    compare('optimized again')
    fuseplan.restore(ours)
    expect('graphs: restore', torch.equal(hidden(ours, inputs)[real], hidden(plain, inputs)[real]))


def check_failed_capture():
    """A model that waits for the GPU behind PyTorch's back: the capture fails, and all goes on."""
    plain = draw('bert').half()
    ours = fuseplan.optimize(copy.deepcopy(plain), SHAPES)
    forward = type(ours.pooler).forward
    ours.pooler.forward = lambda x: (torch.cuda.synchronize(), forward(ours.pooler, x))[1]
    inputs, _ = draw_masked(plain, 4, 60, '', 0)
    for _ in range(5):
        error = difference(ours(**inputs).pooler_output, plain(**inputs).pooler_output)
    expect(f'a capture that fails: {error:.1e}', error < 1e-2 and count_replays(ours) == 0)
    print(f'  {fuseplan.explain(ours).splitlines()[-1]}', flush=True)
    try:
        found = torch.nn.functional.dropout(torch.ones(1000, device='cuda'), 0.5, training=True).sum().item()
    except RuntimeError as error:
        found = error
    expect(f'random numbers after it: {found}', isinstance(found, float) and 500 < found < 1500)
    other = fuseplan.optimize(copy.deepcopy(plain), SHAPES)
    for _ in range(4):
        error = difference(other(**inputs).pooler_output, plain(**inputs).pooler_output)
    expect('graphs of another model after it', error < 1e-2 and count_replays(other) == 2)


def check_whole_graphs():
    for name in 'bert', 'roberta', 'mpnet', 'modernbert', 'bloom', 'clip text', 'vit':
        if models.has(name):
            check_replays(name)
    check_replays('gpt2', paddings=('',))
    plain = draw('bert').half()
    ours, without = (fuseplan.optimize(copy.deepcopy(plain), SHAPES, graphs=graphs) for graphs in (True, False))
    check_streams(ours, without)
    for batch in range(1, 90):  # more than are kept
        for _ in range(3):
            hidden(ours, draw_masked(plain, batch, 60, '', 0)[0])
    inputs, _ = draw_masked(plain, 90, 60, '', 0)
    expect('graphs: many shapes', difference(hidden(ours, inputs), hidden(plain, inputs)) < 1e-2)
    print(f'  {fuseplan.explain(ours).splitlines()[-1]}', flush=True)
    check_changes(ours, plain)
    check_failed_capture()
    if torch.cuda.device_count() > 1:
        there = plain.to('cuda:1')
        mine = fuseplan.optimize(copy.deepcopy(there), SHAPES)
        moved = {name: t.to('cuda:1') for name, t in inputs.items()}
        for _ in range(4):
            error = difference(hidden(mine, moved), hidden(there, moved))
        expect('graphs on a second GPU', error < 1e-2 and count_replays(mine) == 2)


# ---- times -----------------------------------------------------------------------------------------


def host_us(function):
    """The median of calls one after another, by the host's clock."""
    for _ in range(20):
        function()
    samples = []
    for _ in range(50):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        function()
        torch.cuda.synchronize()
        samples.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(samples)


def draw_base():
    torch.manual_seed(0)
    with torch.device('cuda'):
        return transformers.BertModel(transformers.BertConfig()).eval().half()


def capture_by_hand(model, static):
    """A call of a model in a CUDA graph, as its caller makes one: with copies of inputs, and results in place."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(**static)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = model(**static)

    def call(**inputs):
        for name, t in inputs.items():
            static[name].copy_(t)
        graph.replay()
        return result
    return call


def draw_timed(batch, seq_len, padded):
    inputs = {'input_ids': torch.randint(1000, 30000, (batch, seq_len), device='cuda')}
    if padded:
        inputs['attention_mask'] = (torch.arange(seq_len, device='cuda') <
                                    torch.linspace(0.2, 1, batch, device='cuda')[:, None] * seq_len).long()
    return inputs


def time_theirs(way, batch, seq_len, padded):
    """In a process of its own: compiles, says so, and when it is told to, how many microseconds a call takes."""
    model, inputs = draw_base(), draw_timed(batch, seq_len, padded)
    try:
        if way == 'reduce-overhead':
            model = torch.compile(model, mode=way, dynamic=False)
        else:
            model = capture_by_hand(torch.compile(model, dynamic=False), {n: t.clone() for n, t in inputs.items()})
        for _ in range(5):
            model(**inputs)
        print('ready', flush=True)
        sys.stdin.readline()
        print(f'{host_us(lambda: model(**inputs)):.0f} us', flush=True)
    except RuntimeError as error:
        print('failed', flush=True)
        print(str(error).splitlines()[0], flush=True)


WAYS = 'reduce-overhead', 'compiled, captured'


def find_theirs():
    """PyTorch's times by (way, batch, seq_len, padded): processes compile at the same time, and are timed in turns."""
    runs = {}
    for batch, seq_len in TIMED:
        for padded in False, True:
            for way in WAYS:
                runs[way, batch, seq_len, padded] = subprocess.Popen(
                    [sys.executable, os.path.abspath(__file__), '--theirs', way, str(batch), str(seq_len),
                     str(int(padded))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    text=True, env={**os.environ, 'TORCHINDUCTOR_COMPILE_THREADS': '2'})
    for run in runs.values():
        run.stdout.readline()
    times = {}
    for key, run in runs.items():
        times[key] = run.communicate('go\n')[0].strip() or f'exit status {run.returncode}'
    return times


def submit_us(function):
    """The median of the host's time until a call returns, while the GPU has nothing else to do."""
    samples = []
    for _ in range(200):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        function()
        samples.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(samples)


def busy_us(function):
    """The median of the host's time until a call returns, while the GPU has work in front of it."""
    for _ in range(20):
        function()
    samples = []
    for _ in range(5):
        torch.cuda.synchronize()
        torch.cuda._sleep(100_000_000)
        for _ in range(60):
            begin = time.perf_counter()
            function()
            samples.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(samples)


def print_overhead(ours):
    stack = fuseplan.replace.find_layers(ours)[0].stack
    x = torch.randn(1, 32, stack.description.hidden, device='cuda', dtype=stack.engine.dtype)
    drawn = [torch.randint(1000, 30000, (1, 32), device='cuda') for _ in range(4)]  # memory differs from call to call
    tokens, short = itertools.cycle(drawn), itertools.cycle([t[:, :27].contiguous() for t in drawn])
    masks = itertools.cycle([torch.ones_like(t) for t in drawn])
    calls = (('the layers alone', lambda: stack.engine.layers(x)), ('the model', lambda: ours(input_ids=next(tokens))),
             ('with a mask', lambda: ours(input_ids=next(tokens), attention_mask=next(masks))),
             ('of 27 tokens', lambda: ours(input_ids=next(short))))
    for _, call in calls:
        for _ in range(5):
            call()
    for what, measure in (('until it returns, GPU at rest', submit_us), ('until it returns, GPU busy', busy_us),
                          ('until the GPU is done', host_us)):
        turns = [[measure(call) for _, call in calls] for _ in range(5)]  # as a processor's clock changes
        found = [statistics.median(of) for of in zip(*turns)]
        print(f'(1,32) {what}: ' + ', '.join(f'{name} {us:.1f} us' for (name, _), us in zip(calls, found)) +
              f'; the model over the layers {found[1] - found[0]:.1f} us', flush=True)


def least_cosine(got, want, real):
    got, want = (t[real].float().flatten(0, -2) for t in (got, want))
    return float(torch.nn.functional.cosine_similarity(got, want, dim=-1).min())


def check_calls():
    """Results and hidden states of calls, by graphs or not, beside PyTorch's; then what a call costs."""
    plain = draw_base()
    shapes = [(1, 32), (8, 64)]
    ours, without = (fuseplan.optimize(copy.deepcopy(plain), shapes, graphs=graphs) for graphs in (True, False))
    for batch, seq_len in (1, 32), (1, 27), (8, 64), (8, 51), (11, 64):
        for padding in '', 'right', 'left':
            worst = 1.0
            for seed in range(4):
                inputs, real = draw_masked(plain, batch, seq_len, padding, seed)
                want = plain(**inputs, output_hidden_states=True)
                for model in ours, without:
                    for got in (model(**inputs), model.forward(**inputs), model(**inputs, output_hidden_states=True)):
                        pairs = zip(got.hidden_states, want.hidden_states) if got.hidden_states else [(got[0], want[0])]
                        worst = min([worst] + [least_cosine(mine, theirs, real) for mine, theirs in pairs])
            expect(f'({batch},{seq_len}){padding and ", padded " + padding}: cosine {worst:.6f}', worst >= 0.9999)
    check_embeddings(ours, without)
    counts = [s['plain'] for model in (ours, without) for s in fuseplan.stats(model).values()]
    expect(f'calls: {count_replays(ours)} replays, by PyTorch {counts}', count_replays(ours) > 90 and not any(counts))
    found = (ours(input_ids=torch.full((1, 32), i, device='cuda'))[0] for i in range(1000, 1300))
    kept = [(t, t.clone()) for t in found]
    expect('calls: results are kept', all(torch.equal(*pair) for pair in kept))
    check_streams(ours, without)
    print(f'  {fuseplan.explain(ours).splitlines()[-1]}', flush=True)
    print_overhead(ours)


def check_embeddings(ours, without):
    """The library's in all calls of check_calls() but those for hidden states, without a graph or captured; and NaN for
    an id that the table lacks."""
    by_graphs, by_calls = (s['embeddings'] for model in (ours, without) for s in fuseplan.stats(model).values())
    expect(f'embeddings: by the library in {by_calls} of 180 calls without graphs, {by_graphs} for graphs and without',
           by_calls == 120 and by_graphs > 10)
    if by_calls != 120:  # PyTorch's would end CUDA for this process
        return
    inputs, _ = draw_masked(without, 2, 20, 'right', 0)
    inputs['attention_mask'][:] = 1
    inputs['attention_mask'][0, 9:] = 0
    inputs['input_ids'][0, 9:], inputs['input_ids'][1, 3] = 1 << 40, -1
    bad = without(**inputs)[0].isnan().flatten(1).all(1).tolist()
    expect(f'embeddings: NaN for an id that is none, unless it is padding: {bad}', bad == [False, True])


def print_first_calls(ours):
    """Milliseconds of the first calls of a shape: the third captures."""
    for batch, seq_len in (1, 100), (2, 77), (17, 45):
        inputs = {'input_ids': torch.randint(1000, 30000, (batch, seq_len), device='cuda')}
        found = []
        for _ in range(5):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            ours(**inputs)
            torch.cuda.synchronize()
            found.append((time.perf_counter() - begin) * 1e3)
        print(f'the first calls of ({batch},{seq_len}): ' + ', '.join(f'{ms:.1f}' for ms in found) + ' ms', flush=True)
        expect(f'the first call of a shape never seen takes at most 50 ms: {found[0]:.1f}', found[0] <= 50)


def print_calls(plain, ours, without, theirs):
    for batch, seq_len in TIMED:
        for padded in False, True:
            inputs = draw_timed(batch, seq_len, padded)
            times = {name: f'{host_us(lambda m=model: m(**inputs)):.0f} us' for name, model in (
                ('ours', ours), ('ours without graphs', without), ('plain', plain))}
            times.update((way, theirs[way, batch, seq_len, padded]) for way in WAYS if theirs)
            print(f"{'padded ' * padded}({batch},{seq_len}): " + ', '.join(f'{n} {us}' for n, us in times.items()),
                  flush=True)
    print(fuseplan.explain(ours).splitlines()[-1], flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--times', action='store_true')
    p.add_argument('--search', type=float, metavar='SECONDS', help='with --times: for plans of the calls')
    p.add_argument('--families', nargs='*', metavar='NAME', choices=models.MODELS,
                   help='models of each family alone, or of these; on a CPU where there is no GPU')
    p.add_argument('--graphs', action='store_true', help='of the checks those of CUDA graphs of whole calls alone')
    p.add_argument('--calls', action='store_true', help='calls of BERT-base alone, and what one costs')
    p.add_argument('--e4m3', action='store_true', help='of the checks those of GEMMs in e4m3 alone')
    p.add_argument('--ours', action='store_true', help='with --times: calls of our models alone')
    p.add_argument('--theirs', nargs=4, metavar=('WAY', 'B', 'S', 'PADDED'), help=argparse.SUPPRESS)
    a = p.parse_args()
    torch.set_grad_enabled(False)
    transformers.utils.logging.set_verbosity_error()
    if a.theirs:
        time_theirs(a.theirs[0], *map(int, a.theirs[1:]))
        return
    if a.families is None and not ON_GPU:
        p.error('PyTorch finds no CUDA GPU; without one there is --families alone')
    where = torch.cuda.get_device_name() if ON_GPU else 'a CPU'
    print(f'PyTorch {torch.__version__}, transformers {transformers.__version__}, {where}', flush=True)
    if a.families is not None:
        check_families(a.families or models.MODELS)
    elif a.times:
        plain = draw_base()
        begin = time.perf_counter()
        ours = fuseplan.optimize(copy.deepcopy(plain), TIMED, a.search)
        print(f'optimize: {time.perf_counter() - begin:.1f} s')
        print(fuseplan.explain(ours))
        without = fuseplan.optimize(copy.deepcopy(plain), TIMED, a.search, graphs=False)
        print_overhead(ours)
        print_first_calls(ours)
        print_calls(plain, ours, without, {} if a.ours else find_theirs())
    elif a.graphs:
        check_whole_graphs()
    elif a.calls:
        check_calls()
    elif a.e4m3:
        check_e4m3()
    else:
        check_families(models.MODELS)
        check_bad_masks()
        check_use()
        if torch.cuda.get_device_capability() == (9, 0):
            check_e4m3()
        check_whole_graphs()
    print('\n'.join(['FAILED:', *failures]) if failures else 'all well')
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
