"""Writes the golden files of the families of encoders: families.py says what they hold, and then checks them.

    families_write.py [NAME...]    (all of FAMILIES by default; needs PyTorch and transformers)

PyTorch 2.11 and transformers 5.17 wrote the files, and on the same kind of CPU write the same bytes again."""
import gzip
import json
import math
import os
import shutil
import sys
import tempfile
import zlib

import torch
import transformers
from safetensors.numpy import load, save
from torch.nn import functional

from families import FAMILIES, HERE, W, check, modules


def draw(generator, name, shape):
    """Multiples of 1/16 or, of vectors and of T5's small query weights, of 1/64."""
    value = torch.randn(shape, generator=generator)
    if name.endswith('lambda1'):
        value = 0.1 + 0.9 * torch.rand(shape, generator=generator)
    elif len(shape) == 1 and name.endswith('weight'):
        value = 1 + 0.3 * value
    elif name.endswith('SelfAttention.q.weight'):
        value = 0.2 * W**-0.5 * value  # as T5 itself draws it: its scores have no scale
    elif name != 'x':
        value = (0.5 if len(shape) == 1 or 'relative_attention_bias' in name else 0.2) * value
    steps = 16 if len(shape) > 1 and 'Attention.q' not in name else 64
    return torch.round(value * steps) / steps


def draw_lengths(family):
    """All, 1 and some; models of images and of Whisper take no mask."""
    seq_len = family.seq_len
    if family.call in ('ids', 'hidden') and family.batch == 3:
        return torch.tensor([seq_len, 1, seq_len * 2 // 3])
    return torch.full((family.batch,), seq_len)


def compute(family, generator, directory):
    """Runs HuggingFace's model; its layers get x in place of its embeddings.  Returns tensors and golden values."""
    config_class = getattr(transformers, family.model).config_class
    config = config_class(**family.config)
    config._attn_implementation = family.double or 'eager'
    model = getattr(transformers, family.model)(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(draw(generator, name, parameter.shape))
    model.save_pretrained(directory)
    with open(os.path.join(directory, 'model.safetensors'), 'rb') as file:
        stem = family.names.stem()
        keep = (stem, family.bias_table or stem, family.final + '.' if family.final else stem)
        tensors = {name: t for name, t in load(file.read()).items() if name.startswith(keep)}
    if family.double:
        model = model.double()
    dtype = torch.float64 if family.double else torch.float32
    batch, seq_len = family.batch, family.seq_len
    lengths = draw_lengths(family)
    mask = torch.arange(seq_len) < lengths[:, None]
    seen = {}

    def feed(_, args, kwargs):
        if 'x' not in seen:
            hidden = args[0] if args else kwargs['hidden_states']
            seen['x'] = draw(generator, 'x', hidden.shape)
            x = seen['x'].to(dtype)
            return ((x, *args[1:]), kwargs) if args else (args, {**kwargs, 'hidden_states': x})
        return None

    def fetch(_, __, output):
        seen['y'] = output[0] if isinstance(output, tuple) else output

    layers = model.get_submodule(family.module or stem[:-1])
    layers[0].register_forward_pre_hook(feed, with_kwargs=True)
    layers[-1].register_forward_hook(fetch)
    with torch.no_grad():
        output = {
            'ids': lambda: model(input_ids=torch.full((batch, seq_len), 5), attention_mask=mask.long()),
            'pixels': lambda: model(torch.zeros(batch, 3, config.image_size, config.image_size, dtype=dtype)),
            'mel': lambda: model.encoder(torch.zeros(batch, config.num_mel_bins, 2 * seq_len, dtype=dtype)),
            'hidden': lambda: model.encoder(torch.zeros(batch, seq_len, config.hidden_size, dtype=dtype),
                                            attention_mask=mask),
        }[family.call]().last_hidden_state
        golden = {**seen, 'lengths': lengths}
        if family.final:
            golden['yn'] = model.get_submodule(family.final)(seen['y'])
    last = golden['yn' if family.final and not family.raw else 'y']
    assert torch.equal(output[mask], last[mask]), 'last_hidden_state is something else'
    return tensors, golden


def compute_written(family, generator, directory):
    """As compute(), for gte and jina v2, which no version of transformers holds: written after their remote code."""
    config, names = family.config, family.names
    with open(os.path.join(directory, 'config.json'), 'w', encoding='utf-8') as file:
        file.write(json.dumps(config, indent=2, sort_keys=True) + '\n')
    lengths, D, F = draw_lengths(family), config['hidden_size'], config['intermediate_size']
    qkv = modules(names.qkv)
    shapes = {**dict.fromkeys(qkv, (3 * D // len(qkv), D)), names.out: (D, D), names.ffn1: (2 * F, D),
              names.ffn2: (D, F), names.norm1: (D,), names.norm2: (D,)}
    t = {}
    for layer in range(config['num_hidden_layers']):
        for module, shape in shapes.items():
            name = names.prefix.format(layer) + module
            t[name + '.weight'] = draw(generator, name + '.weight', shape)
            if module != names.ffn1:
                t[name + '.bias'] = draw(generator, name + '.bias', shape[:1])
    x = draw(generator, 'x', (family.batch, family.seq_len, D))
    return {name: tensor.numpy() for name, tensor in t.items()}, {
        'x': x, 'y': run_written(family, {name: tensor.double() for name, tensor in t.items()}, x.double(), lengths),
        'lengths': lengths}


def run_written(family, t, x, lengths):
    """y, in float64."""
    config, names = family.config, family.names
    places = torch.arange(x.shape[1])
    bias = torch.zeros(len(x), 1, 1, x.shape[1]).double().masked_fill(places >= lengths[:, None, None, None], -math.inf)
    if family.model == 'jina v2':  # slopes of 3 heads: those of 2, then the first of 4
        slopes = torch.tensor([2.0**-4, 2.0**-8, 2.0**-2], dtype=torch.float64)[:, None, None]
        bias = bias - slopes * (places - places[:, None]).abs()

    def linear(module, a):
        return functional.linear(a, t[prefix + module + '.weight'], t.get(prefix + module + '.bias'))

    def norm(module, a):
        return functional.layer_norm(a, a.shape[-1:], t[prefix + module + '.weight'], t[prefix + module + '.bias'],
                                     config['layer_norm_eps'])

    def rotate(a):
        if family.model != 'gte':
            return a
        factor = config['rope_scaling']['factor']
        inverse = (config['rope_theta'] * factor)**-(torch.arange(0, W, 2).double() / W) / factor**(2 / W)
        angles = torch.outer(places.double(), inverse).repeat(1, 2)
        half = torch.cat([-a[..., W // 2:], a[..., :W // 2]], -1)
        return a * angles.cos() + half * angles.sin()

    for layer in range(config['num_hidden_layers']):
        prefix = names.prefix.format(layer)
        packed = torch.cat([linear(module, x) for module in modules(names.qkv)], -1)
        q, k, v = packed.unflatten(-1, (3, -1, W)).permute(2, 0, 3, 1, 4)
        context = functional.scaled_dot_product_attention(rotate(q), rotate(k), v, attn_mask=bias)
        x = norm(names.norm1, x + linear(names.out, context.transpose(1, 2).flatten(2)))
        first, second = linear(names.ffn1, x).chunk(2, -1)
        gate, up = (second, first) if family.model == 'gte' else (first, second)
        x = norm(names.norm2, x + linear(names.ffn2, functional.gelu(gate) * up))
    return x


def write(directory, name, tensors):
    data = save({key: tensors[key] for key in sorted(tensors)})
    with open(os.path.join(directory, name + '.safetensors.gz'), 'wb') as file:
        file.write(gzip.compress(data, 9, mtime=0))


def make(name, directory):
    """The three files of a model."""
    family = FAMILIES[name]
    os.makedirs(directory, exist_ok=True)
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    compute_any = compute if hasattr(transformers, family.model) else compute_written
    with tempfile.TemporaryDirectory() as scratch:
        tensors, golden = compute_any(family, generator, scratch)
        shutil.copyfile(os.path.join(scratch, 'config.json'), os.path.join(directory, 'config.json'))
    write(directory, 'model', tensors)
    write(directory, 'golden', {name: (t if name == 'lengths' else t.float()).contiguous().numpy()
                                for name, t in golden.items()})


if __name__ == '__main__':
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)  # sums in one order
    right = []
    for model_name in sys.argv[1:] or FAMILIES:
        make(model_name, os.path.join(HERE, model_name))
        right.append(check(model_name, os.path.join(HERE, model_name)))
    sys.exit(0 if all(right) else 1)
