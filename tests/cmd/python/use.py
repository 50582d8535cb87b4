"""Uses the Python file of an exported library, of the name sizes, with the PyTorch beside this file."""

import copy
import pickle
import random
import sys

import torch

sys.path.insert(0, sys.argv[1])
import sizes

HIDDEN = sizes.info.heads * sizes.info.head_size


def draw(*shape):
    t = torch.Tensor(shape)
    t.values[:] = [random.uniform(-1, 1) for _ in t.values]
    return t


def draw_weights():
    return {name: draw(*shape) for name, shape in zip(sizes._NAMES, sizes._shapes())}


def refused(function, *arguments, **named):
    try:
        function(*arguments, **named)
    except (RuntimeError, ValueError, TypeError) as error:
        return str(error)
    return 'nothing'


random.seed(1)
plan = sizes._lib.sizes_plan_at(0).contents
assert (plan.batch, plan.seq_len, plan.packed, plan.mask, plan.measured_on) == (1, 4, 0, b'full', None)
assert plan.workload.startswith(b'b=1 '), plan.workload
assert sizes.sizes() == [(1, 4), (1, 8), (2, 4), (2, 8)]

encoder = sizes.Encoder.__new__(sizes.Encoder)
layers = sizes.Layers([draw_weights()], eps=1e-12)
encoder.layers, encoder.handle, encoder.check_mask, encoder.lengths = layers, layers.handle, True, None
x = draw(2, 8, HIDDEN)
y = list(encoder.forward(x, return_dict=False)[0].values)
assert any(y) and torch.ops.sizes.called == 0
assert list(layers(x).values) == y and torch.ops.sizes.called == 1
torch._C.modes = 1  # a mode that traces or counts sees the operator
assert list(encoder.forward(x, return_dict=False)[0].values) == y and torch.ops.sizes.called == 2

# A sequence of 5 tokens is the same behind other padding.
encoder.lengths = torch.Tensor((2,), torch.int32, [8, 5])
padded = list(encoder.forward(x, return_dict=False)[0].values)
x.values[13 * HIDDEN:] = [float('nan')] * (3 * HIDDEN)
again = list(encoder.forward(x, return_dict=False)[0].values)
assert padded[:8 * HIDDEN] == y[:8 * HIDDEN] and padded[8 * HIDDEN:13 * HIDDEN] != y[8 * HIDDEN:13 * HIDDEN]
assert padded == again and padded[13 * HIDDEN:] == [0] * (3 * HIDDEN)

run = torch.ops.sizes.run
assert 'no plan is as large as batch 3' in refused(run, draw(3, 8, HIDDEN), None, encoder.handle)
assert 'expected torch.int32 (2,)' in refused(run, x, torch.Tensor((3,), torch.int32), encoder.handle)
wide = draw(2, 8, HIDDEN + 1)
assert 'expected (B,S,' in refused(encoder.forward, wide)
assert 'expected (B,S,' in refused(run, wide, None, encoder.handle)

# A thread's calls in a default stream share a workspace, of the largest so far.
kept = sizes._thread.workspaces[-1]
encoder.lengths = None
encoder.forward(draw(1, 4, HIDDEN), return_dict=False)
assert sizes._thread.workspaces == {-1: kept}
sizes._thread.workspaces[-1] = small = sizes._new_workspace(x, 1, -1, 0)
encoder.forward(x, return_dict=False)
assert sizes._thread.workspaces[-1][0] == kept[0] > small[0]
# Others are not kept: the stream may be captured.
assert sizes._new_workspace(x, 64, 0, 7)[2].shape == (64,) and 0 not in sizes._thread.workspaces

wrong = draw_weights()
wrong['bo'] = draw(HIDDEN + 1)
assert f'bo of layer 1 is float32 ({HIDDEN + 1},)' in refused(sizes.Layers, [draw_weights(), wrong])

# A copy would hold a handle that ends with the layers it was copied from.
for of in layers, encoder:
    for function in copy.deepcopy, pickle.dumps:
        assert 'make them anew from the model' in refused(function, of), (of, function)

# transformers 4 hands the layers a head mask, a list of None where there is none.
x = draw(2, 8, HIDDEN)
y = list(encoder.forward(x, return_dict=False)[0].values)
again = list(encoder.forward(x, head_mask=[None] * 2, return_dict=False)[0].values)
assert again == y == list(encoder.forward(x, None, None, return_dict=False)[0].values)
for masks in [None, draw(1)], [draw(1)]:
    assert 'has no head mask' in refused(encoder.forward, x, head_mask=masks, return_dict=False)
    assert 'has no head mask' in refused(encoder.forward, x, None, masks, return_dict=False)

# Another attention mask than BERT's must be named.
assert "the attention mask 'full', which is not 'causal'" in refused(sizes.sizes_from, None, mask='causal')
assert "call sizes_from(model, mask='strided:t=8')" in refused(sizes._check_plan_mask, 'strided:t=8', 'full')
assert refused(sizes._check_plan_mask, 'strided:t=8', 'strided') == 'nothing'
assert refused(sizes._check_plan_mask, 'strided:t=8', 'strided:t=8') == 'nothing'
assert 'strided:t=8' in refused(sizes._check_plan_mask, 'strided:t=8', 'strided:t=4')
