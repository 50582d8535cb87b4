"""Batches of sentences of all lengths through fuseplan.optimize(), beside PyTorch, by the host's clock.

    traffic.py [--search SECONDS] [MODEL...]

MODEL: bert-base, minilm-l6, modernbert-base (all), with weights that are drawn, fp16.  For each: optimize() from an
empty cache, and again in a second process; batches of 32 sentences with natural lengths, padded to the longest, over
the same by torch.compile(dynamic=True), and over the best full shape, a real token; the first call of a shape that was
never seen; what a call adds to its layers' own time.
"""

import argparse
import copy
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

SHAPES = [(1, 128), (32, 64), (32, 128)]
FULL = [(8, 128), (32, 64), (32, 128), (64, 128)]
MODELS = {
    'bert-base': lambda: transformers.BertModel(transformers.BertConfig()),
    'minilm-l6': lambda: transformers.BertModel(transformers.BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)),
    'modernbert-base': lambda: transformers.ModernBertModel(transformers.ModernBertConfig(
        attn_implementation='sdpa')),
}


def draw(name):
    torch.manual_seed(0)
    with torch.device('cuda'):
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


def draw_batches(count):
    """Batches of 32 sentences with 4 to 122 tokens, padded to the longest; all real tokens."""
    generator = torch.Generator().manual_seed(1)
    out, tokens = [], 0
    for _ in range(count):
        lengths = torch.exp(3.0 + 0.7 * torch.randn(32, generator=generator)).clamp(2, 120).int() + 2
        longest = int(lengths.max())
        ids = torch.randint(1000, 30000, (32, longest), generator=generator).cuda()
        mask = (torch.arange(longest) < lengths[:, None]).long().cuda()
        out.append({'input_ids': ids, 'attention_mask': mask})
        tokens += int(lengths.sum())
    return out, tokens


def each(model, batches):
    for batch in batches:
        model(**batch)


def second_process(name, search):
    """Seconds of optimize() in another process, whose cache has the library."""
    again = subprocess.run([sys.executable, __file__, '--again', name, *(['--search', str(search)] if search else [])],
                           capture_output=True, text=True, check=False)
    return again.stdout.strip().splitlines()[-1] if again.returncode == 0 else f'FAILED: {again.stderr[-300:]}'


def measure(name, search):
    plain = draw(name)
    begin = time.perf_counter()
    ours = fuseplan.optimize(copy.deepcopy(plain), SHAPES, search)
    print(f'{name}: optimize for {len(SHAPES)} shapes {time.perf_counter() - begin:.1f} s, '
          f'second process {second_process(name, search)} s', flush=True)
    tokens = torch.randint(1000, 30000, (5, 77), device='cuda')
    first = timed(lambda: ours(input_ids=tokens)) * 1e3
    print(f'{name}: first call of (5,77) {first:.1f} ms, later {median_us(lambda: ours(input_ids=tokens)):.0f} us')
    batches, real = draw_batches(30)
    compiled = torch.compile(plain, dynamic=True)
    for model in ours, plain, compiled:
        for _ in range(3):
            each(model, batches)
    runs = {what: statistics.median(timed(lambda m=model: each(m, batches)) for _ in range(5)) for what, model in
            (('ours', ours), ('plain', plain), ('torch.compile', compiled))}
    print(f'{name}: 30 batches of 32, {real} tokens: ' +
          ', '.join(f'{what} {s * 1e3:.1f} ms' for what, s in runs.items()) +
          f'; {min(runs["plain"], runs["torch.compile"]) / runs["ours"]:.2f} times as fast', flush=True)
    full = {}
    for batch, seq_len in FULL:
        ids = torch.randint(1000, 30000, (batch, seq_len), device='cuda')
        full[(batch, seq_len)] = median_us(lambda i=ids: ours(input_ids=i)) * 1e3 / (batch * seq_len)
    best = min(full, key=full.get)
    print(f'{name}: {runs["ours"] * 1e9 / real:.1f} ns a real token, {full[best]:.1f} at {best} full: '
          f'{runs["ours"] * 1e9 / real / full[best]:.2f}', flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--search', type=float, metavar='SECONDS')
    p.add_argument('--again', action='store_true', help=argparse.SUPPRESS)
    p.add_argument('models', nargs='*', metavar='MODEL')
    a = p.parse_args()
    torch.set_grad_enabled(False)
    transformers.utils.logging.set_verbosity_error()
    if a.again:
        model = draw(a.models[0])
        torch.cuda.synchronize()
        begin = time.perf_counter()
        fuseplan.optimize(model, SHAPES, a.search)
        print(f'{time.perf_counter() - begin:.2f}')
        return
    print(f'PyTorch {torch.__version__}, transformers {transformers.__version__}, {torch.cuda.get_device_name()}')
    with tempfile.TemporaryDirectory() as cache:
        os.environ['FUSEPLAN_PYTHON_CACHE'] = cache
        for name in a.models or MODELS:
            measure(name, a.search)


if __name__ == '__main__':
    main()
