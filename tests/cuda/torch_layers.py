"""The layers that fuseplan computes, in PyTorch, and what `fuseplan bench --dump DIR` wrote of them.  Shared by
recompute.py and peers.py."""

import copy
import json
import os

import numpy
import torch
from torch.nn import functional

ACTIVATIONS = {
    'gelu': functional.gelu,
    'gelu_tanh': lambda y: functional.gelu(y, approximate='tanh'),
    'quick_gelu': lambda y: y * torch.sigmoid(1.702 * y),
    'relu': functional.relu,
    'silu': functional.silu,
}


class Dump:
    """Arrays of a directory, on a device in a type; the mask's bits, (S,S) or (B,S,S).  Of layers of two kinds
    those of kind 0, and of_kind() gives what layers of a kind have; kinds: of each layer."""

    def __init__(self, directory, device, dtype):
        self.directory, self.device, self.dtype = directory, device, dtype
        with open(os.path.join(directory, 'workload.json'), encoding='utf-8') as file:
            self.workload = json.load(file)
        self.chain, self.kinds = self.workload['chain'], self.workload['chain']['kinds']
        self._set_kind(0)

    def _set_kind(self, kind):
        self.suffix, self.kind = str(kind) if 'local' in self.chain else '', kind
        self.keep = self.read('mask' + self.suffix).bool()

    def of_kind(self, kind):
        other = copy.copy(self)
        other._set_kind(kind)
        return other

    def mask(self):
        """Its name."""
        return (self.workload if self.kind == 0 else self.chain['local'])['mask']

    def has(self, name):
        return os.path.exists(os.path.join(self.directory, name + '.npy'))

    def read(self, name):
        return torch.from_numpy(numpy.load(os.path.join(self.directory, name + '.npy'))).to(self.device)

    def load(self, name):
        """Null if the layer has none."""
        return self.read(name).to(self.dtype) if self.has(name) else None

    def rope(self):
        """Cosines and sines, each (S,W/2), or null."""
        names = ('rope_cos' + self.suffix, 'rope_sin' + self.suffix)
        return tuple(self.load(name) for name in names) if self.chain['rope'] else None

    def weights(self):
        """Of each layer, by name; those of GEMMs are (in, out)."""
        names = ('wqkv', 'bqkv', 'wo', 'bo', 'gamma1', 'beta1', 'w1', 'b1', 'w2', 'b2', 'gamma2', 'beta2')
        return [{name: self.load(f'layer{l}.{name}') for name in names}
                for l in range(self.workload['layers'])]

    def real(self):
        """Which rows are no padding, (B,S)."""
        batch, seq_len = self.workload['batch'], self.workload['seq_len']
        lengths = torch.tensor(self.workload['lengths'] or [seq_len] * batch, device=self.device)
        return torch.arange(seq_len, device=self.device) < lengths[:, None]


def per_head(keep):
    """A mask's bits as (S,S) or (B,1,S,S), which scores (B,H,S,S) take."""
    return keep.unsqueeze(-3) if keep.dim() == 3 else keep


def spread_bias(table):
    """(H,S,S) of a table (H,2S-1): what is added to the score of query i and key j stands in column j-i+S-1."""
    places = torch.arange((table.shape[1] + 1) // 2, device=table.device)
    return table[:, places[None, :] - places[:, None] + len(places) - 1]


def attend(q, k, v, keep, bias=None):
    """softmax(q k^T / sqrt(W) + bias) v over kept keys; a row without one is 0."""
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    scores = (scores if bias is None else scores + bias).masked_fill(~per_head(keep), -torch.inf)
    return torch.nan_to_num(torch.softmax(scores, -1)) @ v


def split_heads(qkv, workload):
    """q, k and v, each (B,H,S,W), of (B,S,3D); of packed tokens (T,H,W), of (T,3D)."""
    heads = [t.unflatten(-1, (workload['heads'], -1)) for t in qkv.chunk(3, -1)]
    return [t.transpose(1, 2) for t in heads] if qkv.dim() == 3 else heads


def merge_heads(x):
    return (x.transpose(1, 2) if x.dim() == 4 else x).flatten(-2)


def turn(x, rope):
    """Columns c and c + W/2 of each head by an angle of the row's place and c."""
    (first, second), (cosine, sine) = x.chunk(2, -1), rope
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)


def multiply(x, weight, bias):
    return x @ weight + bias


def make_layer(workload, attention, rope=None, linear=multiply):
    """A function of x, of n if norms stand before (else of null), and of weights, that gives the next layer's x and
    n.  Both are (B,S,D), or packed (T,D).  attention: a function of q, k and v.  rope: what turns q and k.  linear: a
    function of x, of a weight and of its bias."""
    chain, size = workload['chain'], (workload['hidden'],)
    activate, pre = ACTIVATIONS[chain['activation']], chain['norm'] == 'pre'

    def norm(x, gamma, beta):
        if chain['norm_kind'] == 'rms':
            return functional.rms_norm(x, size, gamma, workload['eps'])
        return functional.layer_norm(x, size, gamma, beta, workload['eps'])

    def feed(h, w):
        u = linear(h, w['w1'], w['b1'])
        if chain['gate']:
            activated, factor = u.chunk(2, -1)
            return linear(activate(activated) * factor, w['w2'], w['b2'])
        return linear(activate(u), w['w2'], w['b2'])

    def layer(x, n, w):
        q, k, v = split_heads(linear(n if pre else x, w['wqkv'], w['bqkv']), workload)
        if rope is not None:
            q, k = turn(q, rope), turn(k, rope)
        s = linear(merge_heads(attention(q, k, v)), w['wo'], w['bo']) + x
        h = norm(s, w['gamma1'], w['beta1'])
        t = feed(h, w) + (s if pre else h)
        y = norm(t, w['gamma2'], w['beta2'])
        return (t, y) if pre else (y, None)

    return layer


def run_layers(layers, kinds, x, n, weights):
    """The last layer's outputs.  layers: by kind; kinds: of each layer."""
    for kind, w in zip(kinds, weights):
        x, n = layers[kind](x, n, w)
    return x, n


def relative_error(got, want):
    """The norm of the difference over that of `want`."""
    return float((got - want).norm() / want.norm())


def attend_fused(q, k, v, keep, bias=None):
    """attend() by PyTorch's scaled_dot_product_attention."""
    added = per_head(keep) if bias is None else bias.masked_fill(~per_head(keep), -torch.inf)
    return torch.nan_to_num(functional.scaled_dot_product_attention(q, k, v, attn_mask=added))


def compute_layers(dump, attention=attend, linear=multiply):
    """What the layers of a dump give, the last x and n, in the dump's type."""
    bias = dump.load('score_bias')
    bias = None if bias is None else spread_bias(bias)

    def layer_of(kind):
        return make_layer(dump.workload, lambda q, k, v: attention(q, k, v, kind.keep, bias), kind.rope(), linear)

    layers = [layer_of(dump.of_kind(kind)) for kind in sorted(set(dump.kinds))]
    with torch.no_grad():
        return run_layers(layers, dump.kinds, dump.load('x'), dump.load('n'), dump.weights())


def layers_error(dump, given, wanted):
    """The larger error of x and n; padding does not count."""
    real = dump.real()
    errors = [relative_error(g[real].to(w.dtype), w[real]) for g, w in zip(given, wanted) if w is not None]
    return float(torch.tensor(errors).max())  # NaN if one is


def recompute_layers(dump):
    """The error of what the dump says that its layers gave, against the same computed again in the dump's type."""
    return layers_error(dump, (dump.load('y'), dump.load('yn')), compute_layers(dump))
