#!/usr/bin/env python3
"""Batches of sentences of all lengths through fuseplan.optimize(), beside PyTorch, by the host's clock.

    traffic.py [--search SECONDS] [--no-compile] [MODEL...]

MODEL: bert-base, minilm-l6, modernbert-base, nomic (all), with weights that are drawn, fp16.  For each: optimize() from
an empty cache, and again in a second process; batches of 32, 128 and 256 sentences with natural lengths, padded to the
longest, over the same by torch.compile(dynamic=True), and over the best full shape, a real token; the parts of a batch
of 32 and of 256; the first call of a shape that was never seen.
"""

import argparse
import copy
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

_here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(_here, '../../python'))

import torch  # noqa: E402
import transformers  # noqa: E402

import fuseplan  # noqa: E402

BATCHES = (32, 128, 256)
SHAPES = [(batch, 128) for batch in BATCHES]
MEAN = 27  # tokens of a sentence
FULL = [(8, 128), (32, 64), (32, 128)]
DEVICE = 'cuda' if torch.cuda.is_available() else 'cpu'
MODELS = {
    'bert-base': lambda: transformers.BertModel(transformers.BertConfig()),
    'minilm-l6': lambda: transformers.BertModel(transformers.BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)),
    'modernbert-base': lambda: transformers.ModernBertModel(transformers.ModernBertConfig(
        attn_implementation='sdpa')),
    'nomic': lambda: transformers.NomicBertModel(transformers.NomicBertConfig(attn_implementation='sdpa')),
}


def draw(name):
    torch.manual_seed(0)
    with torch.device(DEVICE):
        return MODELS[name]().eval().half()


def timed(function):
    """Seconds of one call, until the GPU has ended."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    function()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def median_us(function, warm=20, runs=50):
    for _ in range(warm):
        function()
    return statistics.median(timed(function) for _ in range(runs)) * 1e6


def draw_lengths(count, generator):
    """Of sentences as in natural text: 4 to 122 tokens."""
    return torch.exp(3.0 + 0.7 * torch.randn(count, generator=generator)).clamp(2, 120).int() + 2


def draw_batches(batch):
    """Batches of such sentences, padded to the longest, some 15,000 tokens at least; all real ones."""
    generator = torch.Generator().manual_seed(1)
    out, tokens = [], 0
    while tokens < 15000 or len(out) < 4:
        lengths = draw_lengths(batch, generator)
        longest = int(lengths.max())
        ids = torch.randint(1000, 30000, (batch, longest), generator=generator).cuda()
        mask = (torch.arange(longest) < lengths[:, None]).long().cuda()
        out.append({'input_ids': ids, 'attention_mask': mask})
        tokens += int(lengths.sum())
    return out, tokens


def each(model, batches):
    for batch in batches:
        model(**batch)


def seconds_of(model, batches):
    for _ in range(4):
        each(model, batches)
    return statistics.median(timed(lambda: each(model, batches)) for _ in range(7))


def second_process(name, search):
    """Seconds of optimize() in another process, whose cache has the library."""
    again = subprocess.run([sys.executable, __file__, '--again', name, *(['--search', str(search)] if search else [])],
                           capture_output=True, text=True, check=False)
    return again.stdout.strip().splitlines()[-1] if again.returncode == 0 else f'FAILED: {again.stderr[-300:]}'


def find_full(name, plain, search):
    """Nanoseconds a token at the best full shape, by plans for such shapes."""
    ours = fuseplan.optimize(copy.deepcopy(plain), FULL, search)
    found = {}
    for batch, seq_len in FULL:
        ids = torch.randint(1000, 30000, (batch, seq_len), device='cuda')
        found[batch, seq_len] = median_us(lambda i=ids: ours(input_ids=i)) * 1e3 / (batch * seq_len)
    best = min(found, key=found.get)
    print(f'{name}: {found[best]:.1f} ns a token at the best full shape {best}', flush=True)
    return found[best]


def print_parts(name, ours, batch):
    """Where the time of one batch goes: the layers alone, then the GPU's time by kernel in replays of the graph."""
    (layers,) = fuseplan.replace.find_layers(ours)
    engine, mask = layers.stack.engine, batch['attention_mask']
    x = torch.randn(*mask.shape, layers.stack.description.hidden, device='cuda', dtype=engine.dtype)
    lengths, host = mask.sum(1, dtype=torch.int32), mask.sum(1, dtype=torch.int32).cpu()
    tokens = int(host.sum())
    full = x.flatten(0, 1)[:-(-tokens // 128) * 128].view(-1, 128, x.shape[2])
    parts = {'the call': lambda: ours(**batch), 'layers, lengths on the device': lambda: engine.layers(x, lengths),
             'layers, lengths on the host': lambda: engine.layers(x, host),
             f'layers, full {tuple(full.shape[:2])}': lambda: engine.layers(full)}
    print(f'{name}: of a batch {tuple(mask.shape)} with {tokens} tokens: ' +
          ', '.join(f'{what} {median_us(call):.0f} us' for what, call in parts.items()), flush=True)
    with open(os.path.join(os.path.dirname(engine.module._path), 'manifest.json'), encoding='utf-8') as file:
        plan = next(p for p in json.load(file)['plans'] if p['workload']['batch'] == len(mask))
    print(f"{name}: plan {plan['value']}: " + '; '.join(f"{s['ops'][0]}-{s['ops'][1]} {s['implementation']} {s['schedule']}"
                                                       for s in plan['segments']), flush=True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(10):
            ours(**batch)
        torch.cuda.synchronize()
    kernels = sorted(((e.device_time_total / 10, e.count / 10, e.key) for e in profile.key_averages()), reverse=True)
    print(f'{name}: {sum(us for us, *_ in kernels):.0f} us in kernels', flush=True)
    for us, count, key in kernels[:20]:
        print(f'  {us:7.1f} us, {count:5.1f} times  {key[:100]}', flush=True)


def measure(name, search, compiles):
    plain = draw(name)
    begin = time.perf_counter()
    ours = fuseplan.optimize(copy.deepcopy(plain), SHAPES, search, mean_length=MEAN)
    print(f'{name}: optimize for {len(SHAPES)} shapes {time.perf_counter() - begin:.1f} s, '
          f'second process {second_process(name, search)} s', flush=True)
    tokens = torch.randint(1000, 30000, (5, 77), device='cuda')
    first = timed(lambda: ours(input_ids=tokens)) * 1e3
    print(f'{name}: first call of (5,77) {first:.1f} ms, later {median_us(lambda: ours(input_ids=tokens)):.0f} us')
    full = find_full(name, plain, search)
    compiled = torch.compile(plain, dynamic=True)
    for batch in BATCHES:
        batches, real = draw_batches(batch)
        runs = {'ours': seconds_of(ours, batches), 'plain': seconds_of(plain, batches)}
        if compiles:
            runs['torch.compile'] = seconds_of(compiled, batches)
        best = min(s for what, s in runs.items() if what != 'ours')
        print(f'{name}: {len(batches)} batches of {batch}, {real} tokens: ' +
              ', '.join(f'{what} {s * 1e9 / real:.0f} ns a token' for what, s in runs.items()) +
              f'; {best / runs["ours"]:.2f} times as fast as the best of the others; '
              f'{runs["ours"] * 1e9 / real / full:.2f} of the best full shape', flush=True)
    for batch in 32, 256:
        print_parts(name, ours, draw_batches(batch)[0][0])
    print(f'{name}: {fuseplan.explain(ours).splitlines()[-1]}', flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--search', type=float, metavar='SECONDS')
    p.add_argument('--no-compile', action='store_true', help='leave torch.compile out')
    p.add_argument('--again', action='store_true', help=argparse.SUPPRESS)
    p.add_argument('models', nargs='*', metavar='MODEL')
    a = p.parse_args()
    torch.set_grad_enabled(False)
    transformers.utils.logging.set_verbosity_error()
    if a.again:
        model = draw(a.models[0])
        torch.cuda.synchronize()
        begin = time.perf_counter()
        fuseplan.optimize(model, SHAPES, a.search, mean_length=MEAN)
        print(f'{time.perf_counter() - begin:.2f}')
        return
    print(f'PyTorch {torch.__version__}, transformers {transformers.__version__}, {torch.cuda.get_device_name()}')
    with tempfile.TemporaryDirectory() as cache:
        os.environ['FUSEPLAN_PYTHON_CACHE'] = cache
        for name in a.models or MODELS:
            measure(name, a.search, not a.no_compile)


if __name__ == '__main__':
    main()
