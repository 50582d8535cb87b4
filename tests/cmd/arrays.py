"""Uses the Python file of an exported library with NumPy alone: arrays.py DIR, which holds the library `sizes`."""

import sys

sys.modules['torch'] = None  # whose import would raise an error

import numpy

sys.path.insert(0, sys.argv[1])
import sizes

del sys.modules['torch']
HIDDEN = sizes.info.hidden
random = numpy.random.default_rng(1)


def draw(*shape):
    return random.uniform(-1, 1, shape).astype('float32')


def draw_weights():
    return {name: draw(*shape) for name, shape in zip(sizes._NAMES, sizes._shapes())}


def expect(text, function, *arguments, **named):
    try:
        function(*arguments, **named)
        said = 'nothing'
    except (RuntimeError, ValueError, TypeError) as error:
        said = f'{type(error).__name__}: {error}'
    assert text in said, (text, said)


assert sizes.sizes() == [(1, 4), (1, 8), (2, 4), (2, 8)]
weights = draw_weights()
layers = sizes.Layers([weights], eps=1e-12)
x = draw(2, 8, HIDDEN)
y = layers(x)
assert y.shape == x.shape and y.dtype == 'float32' and y.any()

# A sequence of 5 tokens is the same behind other padding.
lengths = numpy.array([8, 5], 'int32')
padded = layers(x, lengths)
x[1, 5:] = numpy.nan
again = layers(x, lengths)
assert (padded == again).all() and (padded[0] == y[0]).all()
assert (padded[1, :5] != y[1, :5]).any() and not padded[1, 5:].any()

# Memory that the library could not read as it lies: other strides, other alignment, other order.
x = draw(5, 8, HIDDEN)
y = layers(x)  # in pieces of two sequences
for i in range(5):
    assert abs(layers(x[i:i + 1]) - y[i]).max() < 1e-5, i
wide = numpy.zeros((5, 8, 2 * HIDDEN), 'float32')
wide[:, :, ::2] = x
shifted = numpy.zeros(x.size + 1, 'float32')[1:].reshape(x.shape)
shifted[:] = x
for same in wide[:, :, ::2], shifted, numpy.asfortranarray(x):
    assert (layers(same) == y).all()
turned = {name: numpy.asfortranarray(t) for name, t in weights.items()}
assert (sizes.Layers([turned], eps=1e-12)(x) == y).all()
lengths = numpy.array([1, 2, 3, 4, 5, 6, 7, 8, 1, 1], 'int32')[::2]
some = layers(x, lengths)
for i, length in enumerate(lengths):
    assert not some[i, length:].any() and some[i, :length].any(), i
before = y.copy()
layers(draw(5, 8, HIDDEN))
assert (y == before).all()  # results have memory of their own

# What is refused.
expect('TypeError: the input is float64; expected float32', layers, x.astype('float64'))
expect('TypeError: the input is >f4; expected float32', layers, x.astype('>f4'))
expect('TypeError: the input is of type list; expected', layers, x.tolist())
expect('ValueError: the input has the shape (5, 8', layers, draw(5, 8, HIDDEN + 1))
expect(f'expected (B,S,{HIDDEN})', layers, x[0])
expect('at least one sequence and token', layers, x[:0])
expect('the sequences have 9 tokens', layers, draw(1, 9, HIDDEN))
expect('TypeError: lengths is int64; expected int32', layers, x, lengths.astype('int64'))
expect('TypeError: lengths is of type list; expected', layers, x, [1] * 5)
expect('ValueError: lengths has the shape (2,); expected (5,)', layers, x, lengths[:2])
expect('length 4 is 9; expected 1 to the sequence length 8', layers, x, numpy.array([1, 1, 1, 1, 9], 'int32'))
expect('length 0 is 0; expected 1 to the sequence length 8', layers, x, numpy.zeros(5, 'int32'))
expect('ValueError: the weights are those of no layer', sizes.Layers, [])
expect('layer 0 is a str with no names; expected a dict with wqkv, bqkv', sizes.Layers, weights)
expect('layer 0 is a dict with wo; expected a dict with wqkv', sizes.Layers, [{'wo': weights['wo']}])
for name, wrong, text in [
        ('bo', draw(HIDDEN + 1), f'bo of layer 1 is float32 ({HIDDEN + 1},) on cpu; expected float32 ({HIDDEN},)'),
        ('wo', weights['wo'].astype('float16'), 'wo of layer 1 is float16'),
        ('w1', weights['w1'] * numpy.float32('inf'), 'w1 of layer 1 has values that are NaN or infinite in float32'),
        ('b1', [0.0], 'b1 of layer 1 is of type list; expected')]:
    expect(text, sizes.Layers, [weights, {**weights, name: wrong}])
expect("rope is given; the library's layers have none", sizes.Layers, [weights], rope=draw(8, HIDDEN))

# The library of a GPU takes none.
sizes._on_gpu = True
expect('wqkv of layer 0 is an array of NumPy, and the library is for GPUs: give it tensors', sizes.Layers, [weights])

assert 'torch' not in sys.modules
