"""The Python package on a GPU.

    python.py [--times [--search SECONDS]]

Without --times: models of each family, in fp16 and bf16, beside the same in fp32 and beside PyTorch in the type; then
what a user does: other streams, CUDA graphs with a mask and without one, torch.compile, two models, a second GPU where
there is one, restore.  --times: microseconds of model(**batch) on the host's clock and sentences a second of encode,
of BERT-base with weights and a vocabulary that are drawn, beside PyTorch's.  Exits 1 if anything is wrong.
"""

import argparse
import copy
import json
import os
import statistics
import sys
import tempfile
import time

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(_here, '../../python'), os.path.join(_here, '../python')]

import torch  # noqa: E402
import transformers  # noqa: E402

import fuseplan  # noqa: E402
import models  # noqa: E402
from fuseplan import probe  # noqa: E402

SHAPES = [(4, 64)]
DIFFERENCE_MAX = {torch.float16: 1e-2, torch.bfloat16: 8e-2}
# Head size 64, ffn a multiple of 8.
WIDE = {'hidden_size': 128, 'intermediate_size': 256, 'dim': 128, 'hidden_dim': 256, 'd_model': 128, 'd_kv': 64,
        'd_ff': 256, 'encoder_ffn_dim': 256, 'decoder_ffn_dim': 256, 'ffn_dim': 256, 'n_embd': 128,
        'word_embed_proj_dim': 128}
failures = []


def expect(what, good):
    if not good:
        failures.append(what)
    print(f'{"ok" if good else "FAILED"}: {what}', flush=True)


def draw(name, device='cuda', **fields):
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
        error = difference(got, want)
        expect(f"{name}, {dtype}, batch {batch}{', padded' if real is not None else ''}: {error:.1e}, PyTorch "
               f'{difference(theirs, want):.1e}', error <= DIFFERENCE_MAX[dtype])
    plain_calls = [s['plain'] for s in fuseplan.stats(ours).values()]
    masked = {'attention_mask': 1} if name == 'siglip text' else {}  # its head reads the row of padding
    expect(f'{name}, {dtype}: no other call ran in PyTorch', plain_calls == [masked])


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


def print_calls(plain, ours):
    compiled = torch.compile(plain, mode='reduce-overhead')
    for batch, seq_len in (1, 32), (1, 128), (8, 512), (32, 128):
        tokens = torch.randint(1000, 30000, (batch, seq_len), device='cuda')
        padded = (torch.arange(seq_len, device='cuda') <
                  torch.linspace(0.2, 1, batch, device='cuda')[:, None] * seq_len).long()
        for what, inputs in ('', {'input_ids': tokens}), ('padded ', {'input_ids': tokens, 'attention_mask': padded}):
            times = {name: host_us(lambda m=model: m(**inputs)) for name, model in
                     (('ours', ours), ('plain', plain), ('reduce-overhead', compiled))}
            print(f'{what}({batch},{seq_len}): ' + ', '.join(f'{n} {us:.0f} us' for n, us in times.items()), flush=True)


def draw_sentences():
    """Sentences of the lengths of natural text, up to 128 words."""
    torch.manual_seed(0)
    lengths = torch.distributions.LogNormal(3.0, 0.7).sample((16384,)).clamp(2, 120).int().tolist()
    return [' '.join(f'w{i}' for i in torch.randint(0, 25000, (n,)).tolist()) for n in lengths]


def print_rates(plain_model, search):
    from sentence_transformers import SentenceTransformer
    words = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'] + [f'w{i}' for i in range(25000)]
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, 'vocab.txt'), 'w', encoding='utf-8') as file:
            file.write('\n'.join(words) + '\n')
        with open(os.path.join(directory, 'tokenizer_config.json'), 'w', encoding='utf-8') as file:
            json.dump({'tokenizer_class': 'BertTokenizer', 'model_max_length': 128}, file)
        plain_model.save_pretrained(directory)
        plain, ours = (SentenceTransformer(directory, device='cuda', model_kwargs={'dtype': torch.float16})
                       for _ in range(2))
    fuseplan.optimize(ours, [(b, s) for b in (32, 256) for s in (16, 32, 64, 128)], search)
    texts = draw_sentences()
    begin = time.perf_counter()
    plain.tokenizer(texts, truncation=True, max_length=128)
    print(f'the tokenizer alone: {len(texts) / (time.perf_counter() - begin):.0f} sentences a second', flush=True)
    runs = [(f'plain encode, batch {b}', lambda b=b: plain.encode(texts, batch_size=b)) for b in (32, 128, 256)]
    runs += [(f'encode by our layers, batch {b}', lambda b=b: ours.encode(texts, batch_size=b)) for b in (32, 256)]
    runs += [('fuseplan.encode', lambda: fuseplan.encode(ours, texts))]
    found = {}
    for what, run in runs:
        run()
        begin = time.perf_counter()
        found[what] = torch.as_tensor(run())
        print(f'{what}: {len(texts) / (time.perf_counter() - begin):.0f} sentences a second', flush=True)
    near = torch.nn.functional.cosine_similarity(found['plain encode, batch 32'].float(),
                                                 found['fuseplan.encode'].float()).min()
    expect(f'fuseplan.encode gives the embeddings of plain encode: cosine {near:.6f}', near > 0.9999)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--times', action='store_true')
    p.add_argument('--search', type=float, metavar='SECONDS')
    a = p.parse_args()
    torch.set_grad_enabled(False)
    transformers.utils.logging.set_verbosity_error()
    print(f'PyTorch {torch.__version__}, transformers {transformers.__version__}, {torch.cuda.get_device_name()}')
    if a.times:
        plain = draw_base()
        begin = time.perf_counter()
        ours = fuseplan.optimize(copy.deepcopy(plain), [(1, 32), (1, 128), (8, 512), (32, 128)], a.search)
        print(f'optimize: {time.perf_counter() - begin:.1f} s')
        print(fuseplan.explain(ours))
        print_calls(plain, ours)
        print_rates(plain, a.search)
    else:
        for name in models.MODELS:
            if models.has(name):
                for dtype in (torch.float16, torch.bfloat16):
                    check_family(name, dtype)
        check_bad_masks()
        check_use()
    print('\n'.join(['FAILED:', *failures]) if failures else 'all well')
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
