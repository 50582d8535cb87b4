"""The weights of a stack as a library takes them: see Layers in encoder.py."""

import torch

from .finder import Unsupported, find_part, matrix_of, read_qkv, score_scale
from .families import PRE


def pack_layers(stack, dtype):
    """The weights of each layer by name: matrices (in, out), of the type, on the stack's device."""
    norms = [(stack.part(i, stack.family.norm1), stack.part(i, stack.family.norm2)) for i in range(len(stack.layers))]
    layers = []
    for i, layer in enumerate(stack.layers):
        tensors = {**_pack_attention(stack, layer), **_pack_ffn(stack, layer)}
        first, second = norms[i]
        if stack.norm == PRE:  # the second is that in front of the next layer, of which the last has none
            first, second = second, norms[min(i + 1, len(norms) - 1)][0]
        tensors.update(gamma1=first.weight, gamma2=second.weight)
        if not stack.rms:
            tensors.update(beta1=_bias(first, first.weight), beta2=_bias(second, second.weight))
        layers.append({name: t.detach().to(dtype) for name, t in tensors.items()})
    return layers


def _bias(module, like):
    bias = getattr(module, "bias", None)
    return like.new_zeros(like.shape[0]) if bias is None else bias


def _pack_attention(stack, layer):
    """With what scales scores and branches multiplied into the matrices, in fp32."""
    factor = score_scale(layer, stack.family, stack.head_size) * stack.head_size ** 0.5
    weights, biases = [], []
    for name, weight, bias in read_qkv(stack.family, layer):
        bias = weight.new_zeros(weight.shape[0]) if bias is None else bias
        if name == "q" and abs(factor - 1) > 1e-6:
            weight, bias = weight.float() * factor, bias.float() * factor
        weights.append(_repeat_heads(stack, weight))
        biases.append(_repeat_heads(stack, bias))
    wo, bo = _scaled(stack, layer, find_part(layer, stack.family.out), 0)
    return {"wqkv": torch.cat(weights).t(), "bqkv": torch.cat(biases), "wo": wo, "bo": bo}


def _repeat_heads(stack, t):
    """Of t (columns, ...) each head of keys as often as queries share it."""
    columns = stack.heads * stack.head_size
    times = columns // t.shape[0]
    if times == 1:
        return t
    heads = t.reshape(-1, stack.head_size, *t.shape[1:])
    return heads.repeat_interleave(times, dim=0).reshape(columns, *t.shape[1:])


def _scaled(stack, layer, module, number):
    """A product's matrix (in, out) and bias, times the branch's LayerScale if there is one."""
    weight = matrix_of(module)
    bias = _bias(module, weight)
    scales = find_part(layer, stack.family.scales)
    if isinstance(scales, list):
        scale = scales[number].float()
        weight, bias = weight.float() * scale[:, None], bias.float() * scale
    return weight.t(), bias


def _pack_ffn(stack, layer):
    w2, b2 = _scaled(stack, layer, find_part(layer, stack.family.down), 1)
    up = find_part(layer, stack.family.up)
    if not stack.gate:
        weight = matrix_of(up)
        return {"w1": weight.t(), "b1": _bias(up, weight), "w2": w2, "b2": b2}
    if isinstance(up, list):
        weights, biases = [matrix_of(m) for m in up], [_bias(m, matrix_of(m)) for m in up]
    else:
        weights, biases = matrix_of(up).chunk(2), _bias(up, matrix_of(up)).chunk(2)
        if stack.family.gate == "second":
            weights, biases = weights[::-1], biases[::-1]
    # columns alternate: activated ones, and their factors
    w1 = torch.stack([w.t() for w in weights], dim=2).flatten(1)
    return {"w1": w1, "b1": torch.stack(list(biases), dim=1).flatten(), "w2": w2, "b2": b2}


# ---- what layers share -----------------------------------------------------------------------------


def pack_shared(stack, model, dtype, seq_len):
    """The first norm, and the tables of sequences of seq_len tokens, for Layers of encoder.py."""
    shared = {}
    if stack.norm == PRE:
        norm = stack.part(0, stack.family.norm1)
        if not isinstance(norm, torch.nn.Identity):
            shared["first_gamma"] = norm.weight.detach().to(dtype)
            if not stack.rms:
                shared["first_beta"] = _bias(norm, norm.weight).detach().to(dtype)
    with torch.no_grad():
        if stack.family.rope:
            shared["rope"] = _rope(stack, model, seq_len, 0)
        if stack.window:
            shared["local_rope"] = _rope(stack, model, seq_len, 1)
        if stack.family.bias:
            shared["score_bias"] = _BIASES[stack.family.bias](stack, seq_len).float().to(stack.place[0])
    return shared


def _rope(stack, model, seq_len, layer):
    """(S,W) of this layer: cos and sin of place s and pair c at s, 2c and s, 2c+1."""
    within = stack.layers[layer] if stack.window else model  # layers of transformers 4 have one each
    module = getattr(stack.owner, "rotary_emb", None) or next(
        (m for name, m in within.named_modules() if name.endswith(("rotary_emb", "rotary_emb.rotary"))), None)
    if module is None:
        raise Unsupported(f"{stack.path}: no rotary_emb says how heads turn: it is of another version")
    kind = getattr(module, "rope_type", "default")
    of = getattr(stack.layers[layer], "attention_type", "")  # of transformers 5: a table for each type
    kind = kind[of] if isinstance(kind, dict) else kind
    if kind in ("dynamic", "longrope"):
        raise Unsupported(f"{stack.path}: its rotary embeddings ({kind}) change with the length of a call: run it in "
                          "PyTorch")
    device = stack.place[0]
    frequencies = getattr(module, f"{of}_inv_freq", getattr(module, "inv_freq", None))
    if frequencies is not None and frequencies.numel() * 2 == stack.head_size:
        angles = torch.arange(seq_len, device=device)[:, None].double() * frequencies.to(device).double()
        scale = getattr(module, f"{of}_attention_scaling", getattr(module, "attention_scaling", 1.0))
        return torch.stack([angles.cos() * scale, angles.sin() * scale], dim=2).flatten(1).float()
    raise Unsupported(f"{stack.path}: its rotary embeddings turn a part of a head: run it in PyTorch")


def _by_distance(row_of_first, row_of_last):
    """(H,2S-1) of the biases (H,S) of the first query's keys and the last one's."""
    return torch.cat([row_of_last[:, :-1], row_of_first], dim=1)


def _mpnet_bias(stack, seq_len):
    bias = stack.owner.compute_position_bias(stack.layers[0].output.dense.weight.new_zeros(1, seq_len, 1))[0]
    return _by_distance(bias[:, 0], bias[:, -1])


def _t5_bias(stack, seq_len):
    bias = stack.layers[0].layer[0].SelfAttention.compute_bias(seq_len, seq_len)[0]
    return _by_distance(bias[:, 0], bias[:, -1])


def _slopes(heads):
    """Of ALiBi, as models with any number of heads have them."""
    power = 2 ** (heads.bit_length() - 1)
    slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    further = [2 ** (-4 * (h + 1) / power) for h in range(0, 2 * (heads - power), 2)]
    return torch.tensor(slopes + further, dtype=torch.float64)[:, None]


def _bloom_bias(stack, seq_len):
    return _slopes(stack.heads) * torch.arange(1 - seq_len, seq_len)


def _jina_bias(stack, seq_len):
    return -_slopes(stack.heads) * torch.arange(1 - seq_len, seq_len).abs()


_BIASES = {"mpnet": _mpnet_bias, "t5": _t5_bias, "bloom": _bloom_bias, "jina": _jina_bias}
