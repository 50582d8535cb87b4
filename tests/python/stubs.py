"""Layers of models that come with code of their own: as much of it as fuseplan looks at, in plain PyTorch."""

import torch
from torch import nn


def attend(q, k, v, heads, mask, bias=0):
    """(B,S,D) each."""
    q, k, v = (t.unflatten(2, (heads, -1)).transpose(1, 2) for t in (q, k, v))
    scores = q @ k.transpose(2, 3) * q.shape[-1] ** -0.5 + bias
    scores = scores if mask is None else scores + mask
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def turn(t, cos, sin, heads):
    t = t.unflatten(2, (heads, -1))
    half = t.shape[-1] // 2
    turned = torch.cat([-t[..., half:], t[..., :half]], dim=-1)
    return (t * cos[:, None, :] + turned * sin[:, None, :]).flatten(2)


def turns(inv_freq, seq_len):
    angles = torch.arange(seq_len)[:, None] * inv_freq
    angles = torch.cat([angles, angles], dim=1)
    return angles.cos(), angles.sin()


def alibi(heads, seq_len):
    slopes = torch.tensor([2.0 ** (-8 * (h + 1) / heads) for h in range(heads)])
    places = torch.arange(seq_len)
    return -slopes[:, None, None] * (places[None, :] - places[:, None]).abs()


class JinaBertLayer(nn.Module):

    def __init__(self, d, heads, f):
        super().__init__()
        self.attention, self.mlp = nn.Module(), nn.Module()
        self.attention.self, self.attention.output = nn.Module(), nn.Module()
        a = self.attention.self
        a.query, a.key, a.value = (nn.Linear(d, d) for _ in range(3))
        a.num_attention_heads, a.attention_head_size = heads, d // heads
        self.attention.output.dense, self.attention.output.LayerNorm = nn.Linear(d, d), nn.LayerNorm(d, 1e-12)
        self.mlp.gated_layers, self.mlp.wo = nn.Linear(d, 2 * f, bias=False), nn.Linear(f, d)
        self.mlp.act, self.mlp.layernorm = nn.GELU(), nn.LayerNorm(d, 1e-12)

    def forward(self, hidden_states, attention_mask=None, head_mask=None, encoder_hidden_states=None,
                encoder_attention_mask=None, bias=None, past_key_value=None, output_attentions=False):
        x, a = hidden_states, self.attention.self
        c = attend(a.query(x), a.key(x), a.value(x), a.num_attention_heads, attention_mask, bias)
        h = self.attention.output.LayerNorm(self.attention.output.dense(c) + x)
        gate, up = self.mlp.gated_layers(h).chunk(2, dim=-1)
        return (self.mlp.layernorm(self.mlp.wo(self.mlp.act(gate) * up) + h),)


class NewLayer(nn.Module):

    def __init__(self, d, heads, f):
        super().__init__()
        self.attention, self.mlp = nn.Module(), nn.Module()
        self.attention.num_attention_heads, self.attention.attention_head_size = heads, d // heads
        self.attention.qkv_proj, self.attention.o_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp.up_gate_proj, self.mlp.down_proj = nn.Linear(d, 2 * f, bias=False), nn.Linear(f, d)
        self.mlp.act_fn = nn.GELU()
        self.attn_ln, self.mlp_ln = nn.LayerNorm(d, 1e-12), nn.LayerNorm(d, 1e-12)

    def forward(self, hidden_states, attention_bias, rope_embeds=None, padding_inputs=None, attention_scale=None,
                subset_indices=None, head_mask=None, output_attentions=False, qkv_inputs=None):
        x, heads = hidden_states, self.attention.num_attention_heads
        q, k, v = self.attention.qkv_proj(x).chunk(3, dim=-1)
        q, k = (turn(t, *rope_embeds, heads) for t in (q, k))
        h = self.attn_ln(self.attention.o_proj(attend(q, k, v, heads, attention_bias)) + x)
        up, gate = self.mlp.up_gate_proj(h).chunk(2, dim=-1)
        return (self.mlp_ln(self.mlp.down_proj(up * self.mlp.act_fn(gate)) + h),)


class NomicBertBlock(nn.Module):

    def __init__(self, d, heads, f):
        super().__init__()
        self.attn, self.mlp = nn.Module(), nn.Module()
        self.attn.num_heads, self.attn.head_dim = heads, d // heads
        self.attn.Wqkv, self.attn.out_proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.mlp.fc11, self.mlp.fc12 = nn.Linear(d, f, bias=False), nn.Linear(d, f, bias=False)
        self.mlp.fc2, self.mlp.activation = nn.Linear(f, d, bias=False), nn.functional.silu
        self.norm1, self.norm2 = nn.LayerNorm(d, 1e-12), nn.LayerNorm(d, 1e-12)
        self.attn.rotary_emb = nn.Module()
        self.attn.rotary_emb.register_buffer('inv_freq', 100.0 ** (-torch.arange(0, d // heads, 2) * heads / d))

    def forward(self, hidden_states, hidden_states2=None, residual=None, attention_mask=None, position_ids=None):
        x, heads = hidden_states, self.attn.num_heads
        q, k, v = self.attn.Wqkv(x).chunk(3, dim=-1)
        q, k = (turn(t, *turns(self.attn.rotary_emb.inv_freq, x.shape[1]), heads) for t in (q, k))
        h = self.norm1(self.attn.out_proj(attend(q, k, v, heads, attention_mask)) + x)
        return (self.norm2(self.mlp.fc2(self.mlp.fc11(h) * self.mlp.activation(self.mlp.fc12(h))) + h), None, None)


class Encoder(nn.Module):
    """Calls layers as the model's own code does; answers a bare tensor."""

    def __init__(self, kind, d=32, heads=2, f=64, layers=3):
        super().__init__()
        self.layer = nn.ModuleList([kind(d, heads, f) for _ in range(layers)])
        if kind is NewLayer:
            self.rotary_emb = nn.Module()
            self.rotary_emb.register_buffer('inv_freq', 100.0 ** (-torch.arange(0, d // heads, 2) * heads / d))

    def forward(self, x, mask=None):
        added = None if mask is None else (1.0 - mask[:, None, None, :]) * torch.finfo(x.dtype).min
        for layer in self.layer:
            if isinstance(getattr(layer, 'plain', [layer])[0], JinaBertLayer):
                x = layer(x, added, None, None, None, alibi(2, x.shape[1]), None, False)[0]
            elif hasattr(self, 'rotary_emb'):
                rope = turns(self.rotary_emb.inv_freq, x.shape[1])
                x = layer(x, added, rope, None, None, None, None, False)[0]
            else:
                x = layer(x, attention_mask=added)[0]
        return x


KINDS = {'jina v2': (JinaBertLayer, 'post+gate+bias'), 'GTE': (NewLayer, 'post+gate+rope'),
         'nomic': (NomicBertBlock, 'post+silu+gate+rope')}


def draw(name):
    import models
    torch.manual_seed(0)
    return models.shake(Encoder(KINDS[name][0]).eval())
