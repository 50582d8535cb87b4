"""Uses the Python files of two exported libraries, with the PyTorch beside this file.

    use.py DIR OTHER_DIR LINE

DIR holds the library `sizes`, OTHER_DIR one of the name `encoder`.  Writes to the file LINE the command that
would export a library for longer sequences.
"""

import importlib.util
import random
import sys
import types

import torch


def load(path, name):
    """As docs/ship-a-plan.md says."""
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.path.insert(0, sys.argv[1])
import sizes

# The operator is there at once where PyTorch is, and else from the first use.
assert 'run' in vars(sizes)
del sys.modules['torch']
late = load(sys.argv[1] + '/sizes.py', 'late')
sys.modules['torch'] = torch
assert 'run' not in vars(late) and late.run is sizes.run and late._dtype is torch.float32

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
encoder.layers, encoder.run, encoder.handle = layers, layers.run, layers.handle
encoder.check_mask, encoder.lengths, encoder._config = True, None, types.SimpleNamespace()
encoder._fields = vars(encoder._config)
encoder._place, encoder._head, encoder._unpooled = torch.device('cpu'), None, None
x = draw(2, 8, HIDDEN)
y = list(encoder.forward(x, return_dict=False)[0].values)
assert any(y) and torch.ops.called == 0
assert list(layers(x).values) == y and torch.ops.called == 1
torch._C.modes = 1  # a mode that traces or counts sees the operator
assert list(encoder.forward(x, return_dict=False)[0].values) == y and torch.ops.called == 2

# A sequence of 5 tokens is the same behind other padding.
encoder.lengths = torch.Tensor((2,), torch.int32, [8, 5])
padded = list(encoder.forward(x, return_dict=False)[0].values)
x.values[13 * HIDDEN:] = [float('nan')] * (3 * HIDDEN)
again = list(encoder.forward(x, return_dict=False)[0].values)
assert padded[:8 * HIDDEN] == y[:8 * HIDDEN] and padded[8 * HIDDEN:13 * HIDDEN] != y[8 * HIDDEN:13 * HIDDEN]
assert padded == again and padded[13 * HIDDEN:] == [0] * (3 * HIDDEN)

run = sizes.run
assert 'expected torch.int32 (2,)' in refused(run, x, torch.Tensor((3,), torch.int32), encoder.handle)
wide = draw(2, 8, HIDDEN + 1)
assert 'expected (B,S,' in refused(encoder.forward, wide)
assert 'expected (B,S,' in refused(run, wide, None, encoder.handle)

wrong = draw_weights()
wrong['bo'] = draw(HIDDEN + 1)
assert f'bo of layer 1 is float32 ({HIDDEN + 1},)' in refused(sizes.Layers, [draw_weights(), wrong])

# transformers 4 hands the layers a head mask, a list of None where there is none.
x = draw(2, 8, HIDDEN)
encoder.lengths = None
y = list(encoder.forward(x, return_dict=False)[0].values)
again = list(encoder.forward(x, head_mask=[None] * 2, return_dict=False)[0].values)
assert again == y == list(encoder.forward(x, None, None, return_dict=False)[0].values)

# What the layers cannot do, arguments of transformers 4 and 5.
encoder._config._attn_implementation = 'flash_attention_2'
one = draw(1, 8, HIDDEN)
CALLS = [
    (x, dict(head_mask=[None, one]), 'head_mask is given; the library\'s layers have none'),
    (x, dict(output_attentions=True), 'output_attentions is set; the library keeps neither'),
    (x, dict(output_hidden_states=[1]), 'output_hidden_states is set; the library keeps neither'),
    (x, dict(use_cache=True), 'use_cache is given; the library keeps no keys and values'),
    (x, dict(past_key_values=one), 'past_key_values is given; the library keeps no keys and values'),
    (x, dict(encoder_hidden_states=one), 'encoder_hidden_states is given; the library\'s layers have none'),
    (x, dict(new=0.5), 'new is given; the library\'s layers have none'),
    (one, dict(cu_seq_lens_q=one), 'several sequences without padding (cu_seq_lens_q)'),
    (one, dict(seq_idx=one), 'several sequences without padding (seq_idx)'),
    (one, dict(position_ids=one), 'several sequences without padding (position_ids)'),
    (x, dict(is_causal=True), "is_causal is True; the library was exported with the mask 'full'"),
    (x, dict(position_ids=one, is_causal=False, use_cache=False, past_key_values=None), 'nothing'),
]
for of, named, expected in CALLS:
    said = refused(encoder.forward, of, return_dict=False, **named)
    assert expected in said, (named, said)
for last in one, [None, one]:
    assert 'a third argument by position' in refused(encoder.forward, x, None, last, return_dict=False)
encoder.training = True
assert 'call model.eval()' in refused(encoder.forward, x)
encoder.training = False

# Weights that no layer of the library computes with.
for value in float('nan'), float('inf'):
    wrong = draw_weights()
    wrong['b2'].values[-1] = value
    said = refused(sizes.Layers, [draw_weights(), wrong])
    assert 'b2 of layer 1 has values that are NaN or infinite in float32' in said, said

# Models.
CONFIGS = [
    (dict(hidden_act='gelu_new'), "config.hidden_act is 'gelu_new'; the library runs 'gelu'"),
    (dict(hidden_act=print), 'config.hidden_act is <built-in function print>'),
    (dict(position_embedding_type='relative_key'), "is 'relative_key'; the library runs 'absolute'"),
    (dict(is_decoder=True), 'config.is_decoder is True; the library runs False: run this model in PyTorch'),
    (dict(add_cross_attention=True), 'config.add_cross_attention is True'),
    (dict(is_causal=True), 'config.is_causal is True'),
    (dict(pruned_heads={1: [0]}), 'config.pruned_heads is {1: [0]}'),
    (dict(num_attention_heads=2), 'is 2; the library runs 1: export one of the model\'s sizes'),
    (dict(hidden_size=HIDDEN, position_embedding_type=None, is_decoder=False, pruned_heads={}), 'nothing'),
]
for fields, expected in CONFIGS:
    said = refused(sizes._check_config, types.SimpleNamespace(**fields))
    assert expected in said, (fields, said)


def make(name, where, **fields):
    module = type(name, (torch.nn.Module,), {'__module__': where})()
    vars(module).update(fields)
    return module


BERT, LINEAR = 'transformers.models.bert.modeling_bert', 'torch.nn.modules.linear'
LAYERS = [
    ({}, 'nothing'),
    (dict(query=make('Linear', 'peft.tuners.lora.layer')), 'layer 3: query is a peft.tuners.lora.layer.Linear'),
    (dict(query=make('Linear', LINEAR, weight=torch.Tensor((4,), torch.int8))),
     'layer 3: query.weight is int8 in a Tensor'),
    (dict(query=make('Linear', LINEAR, weight=type('Quantized', (torch.Tensor,), {})((4,)))),
     'layer 3: query.weight is float32 in a Quantized'),
    (dict(self=make('BertSelfAttention', 'nezha')), 'layer 3: self is a nezha.BertSelfAttention'),
    (dict(dense=make('Linear', LINEAR, _forward_hooks={0: refused})), 'layer 3: dense has a hook'),
    (dict(LayerNorm=make('Norm', LINEAR)), 'nothing'),
]
for parts, expected in LAYERS:
    said = refused(sizes._check_layer, 3, make('BertLayer', BERT, **parts), torch.device('cpu'), 1e-12)
    assert expected in said, (parts, said)
assert 'layer 3 is a NezhaLayer' in refused(sizes._check_layer, 3, make('NezhaLayer', BERT), None, 1e-12)
norm = make('BertLayer', BERT, LayerNorm=torch.nn.LayerNorm())
assert 'LayerNorm has eps 1e-12; config.layer_norm_eps is 1e-05' in refused(sizes._check_layer, 3, norm, None, 1e-5)
far = make('BertLayer', BERT, query=make('Linear', LINEAR, weight=draw(4)))
assert 'is on cpu, and the model on meta' in refused(sizes._check_layer, 3, far, torch.device('meta'), 1e-12)

# Another attention mask than BERT's must be named.
assert "the attention mask 'full', which is not 'causal'" in refused(sizes.sizes_from, None, mask='causal')
assert "call sizes_from(model, mask='strided:t=8')" in refused(sizes._check_plan_mask, 'strided:t=8', 'full')
assert refused(sizes._check_plan_mask, 'strided:t=8', 'strided') == 'nothing'
assert refused(sizes._check_plan_mask, 'strided:t=8', 'strided:t=8') == 'nothing'
assert 'strided:t=8' in refused(sizes._check_plan_mask, 'strided:t=8', 'strided:t=4')

# A larger batch than any plan's runs in pieces, and gives the same.
encoder.lengths = None
for seq_len in 4, 7:
    x, real = draw(5, seq_len, HIDDEN), [seq_len, 1, 2, seq_len, 3]
    lengths = torch.Tensor((5,), torch.int32, real)
    for of in None, lengths:
        parts = [list(sizes._run(part, of and torch.Tensor((1,), torch.int32, [n]), encoder.handle).values)
                 for part, n in zip(x.split(1), real)]
        whole = sizes.run(x, of, encoder.handle).values
        far = max(abs(got - want) for got, want in zip(whole, sum(parts, []), strict=True))
        assert far < 1e-5, (seq_len, of, far)
    assert 'expected torch.int32 (5,)' in refused(run, x, torch.Tensor((6,), torch.int32), encoder.handle)
    wrong = torch.Tensor((5,), torch.int32, [1, 1, 1, 1, 9])
    assert f'length 4 is 9; expected 1 to the sequence length {seq_len}' in refused(run, x, wrong, encoder.handle)
assert 'expected at least one sequence' in refused(run, torch.Tensor((0, 4, HIDDEN)), None, encoder.handle)

# Longer sequences need another library.
said = refused(run, draw(3, 9, HIDDEN), None, encoder.handle)
assert said.startswith("the sequences have 9 tokens; the library's plans have at most 8"), said
with open(sys.argv[3], 'w') as line:
    line.write(said.split(" with '")[1][:-1])

# Three libraries in a process: this one, a second one, and this one again, of any names.
other, again = load(sys.argv[2] + '/encoder.py', 'other'), load(sys.argv[1] + '/sizes.py', 'encoder')
assert len({sizes._space, other._space, again._space}) == 2 and again.run is sizes.run is not other.run
width = other.info.heads * other.info.head_size
layers_of = {sizes: layers, again: again.Layers([draw_weights()]), other: other.Layers(
    [{name: draw(*shape) for name, shape in zip(other._NAMES, other._shapes())}])}
for library, of in layers_of.items():
    size = library.info.heads * library.info.head_size
    assert any(of(draw(1, 4, size)).values) and f'expected (B,S,{size})' in refused(of, draw(1, 4, size + 1))
assert ' -s 4,9,16 -m strided -H 2 ' in other._export_line(16), other._export_line(16)  # t is 2 and 3
