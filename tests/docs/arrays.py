"""arrays.py CODE: runs the code of a page on a model of random weights, and compares with BERT's formulas."""

import math
import sys

import numpy

HEADS, W, FFN, LAYERS, EPS = 2, 8, 40, 3, 1e-12
D = HEADS * W
SHAPES = {'attention.self.query': (D, D), 'attention.self.key': (D, D), 'attention.self.value': (D, D),
          'attention.output.dense': (D, D), 'attention.output.LayerNorm': (D,), 'intermediate.dense': (FFN, D),
          'output.dense': (D, FFN), 'output.LayerNorm': (D,)}
random = numpy.random.default_rng(1)


def draw(*shape):
    return random.uniform(-1, 1, shape).astype('float32')


def attend(q, k, v, length):
    scores = numpy.exp(q @ k[:length].T / math.sqrt(W))
    return scores / scores.sum(1, keepdims=True) @ v[:length]


def run_layer(model, at, x, length):
    """x (S,D), of which `length` tokens are real."""

    def linear(name, x):
        return x @ model[f'{at}.{name}.weight'].T.astype('float64') + model[f'{at}.{name}.bias']

    def norm(name, x):
        x = (x - x.mean(1, keepdims=True)) / numpy.sqrt(x.var(1, keepdims=True) + EPS)
        return x * model[f'{at}.{name}.weight'] + model[f'{at}.{name}.bias']

    q, k, v = (linear(f'attention.self.{name}', x) for name in ('query', 'key', 'value'))
    heads = [slice(h * W, h * W + W) for h in range(HEADS)]
    c = numpy.concatenate([attend(q[:, h], k[:, h], v[:, h], length) for h in heads], axis=1)
    x = norm('attention.output.LayerNorm', linear('attention.output.dense', c) + x)
    hidden = linear('intermediate.dense', x)
    hidden = hidden * 0.5 * (1 + numpy.vectorize(math.erf)(hidden / math.sqrt(2)))
    return norm('output.LayerNorm', linear('output.dense', hidden) + x)


model = {f'encoder.layer.{i}.{name}.{part}': draw(*(shape if part == 'weight' else shape[:1]))
         for i in range(LAYERS) for name, shape in SHAPES.items() for part in ('weight', 'bias')}
numpy.savez('model.npz', **model)
given = {'x': draw(8, 128, D), 'lengths': random.integers(1, 129, 8).astype('int32')}
with open(sys.argv[1], encoding='utf-8') as code:
    exec(code.read(), given)
for i, length in enumerate(given['lengths']):
    y = given['x'][i].astype('float64')
    for layer in range(LAYERS):
        y = run_layer(model, f'encoder.layer.{layer}', y, length)
    found = given['y'][i]
    assert abs(found[:length] - y[:length]).max() < 1e-3, (i, abs(found[:length] - y[:length]).max())
    assert not found[length:].any(), i
assert 'torch' not in sys.modules
