"""What each family of encoders computes, and a check of the golden files that HuggingFace computed of it.

    families.py [NAME...]    (all of FAMILIES by default; needs NumPy and safetensors)

families/NAME/, written by families_write.py, holds a stack of a few small layers of one model:
    config.json             of the model, as its save_pretrained() writes it
    model.safetensors.gz    parameters of the layers, the final norm and the table of relative positions, by names and
                            shapes of its checkpoints.  Embeddings and heads are left out.
    golden.safetensors.gz   x (B,S,D), the hidden state that enters the first layer; lengths (B); y (B,S,D), the stream
                            after the last layer, before a final norm; yn (B,S,D), y under the final norm if there is
                            one.  Rows of y and yn from lengths[b] on hold anything.
All tensors are F32, except lengths, which are I64.  Whatever HuggingFace initialises to 0 or 1 was drawn, too, and
epsilon is 0.01 where a config has a field for it, so that no part can be missing or swapped unnoticed.

FAMILIES says what each family computes and how its checkpoints name it.  Below it, Stack computes the layers from
that, in float64 and by the 15 operators of a chain, with nothing but the files."""
import gzip
import json
import math
import os
import sys
from dataclasses import dataclass, replace

import numpy as np
from safetensors.numpy import load

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'families')
ERROR_MAX = 1e-5  # of HuggingFace, in float32 or float64, against float64
IDENTITY_MAX = 1e-12
W = 16  # head size of all models


# The families

@dataclass
class Names:
    """Of one layer's modules on disk, behind `prefix`, where {} is the layer.  'a.:b c' are the modules a.b and a.c."""
    prefix: str
    qkv: str  # three modules, or one whose output is (3,H,W)
    out: str
    norm1: str  # post: after attention; pre: before it
    ffn1: str  # with a gate: two modules, the activated one first, or one of 2F outputs
    ffn2: str
    norm2: str  # post: after ffn; pre: before it
    scale: str = ''  # LayerScale of attention and of ffn

    def stem(self):
        return self.prefix.split('{')[0]


def modules(names):
    before, _, behind = names.rpartition(':')
    return [before + name for name in behind.split()]


@dataclass
class Family:
    model: str  # class of transformers; gte and jina v2: families_write.py has them
    config: dict
    names: Names
    call: str = 'ids'  # what the model is given: ids, pixels, mel or hidden states
    module: str = ''  # list of layers in memory, if another than names.prefix says
    double: str = ''  # attn_implementation under which HuggingFace's float64 is float64 throughout
    batch: int = 3
    seq_len: int = 13
    final: str = ''  # final norm, for pre only
    raw: bool = False  # last_hidden_state is y although there is a final norm
    pre: bool = False
    rms: bool = False
    eps: str | float = 'layer_norm_eps'  # field of the config, or a constant of the code
    activation: str = 'gelu'
    gate: str = ''  # which half of ffn1's output is activated: first or second
    rope: bool = False
    score_bias: str = ''  # buckets, alibi (slope * j) or alibi_abs (-slope * |i-j|)
    bias_table: str = ''  # of buckets: name of the tensor
    causal: bool = False
    score_scale: float = W**-0.5
    heads_outside: bool = False  # packed qkv is (H,3,W)
    conv1d: bool = False  # weights are (in,out)


SIZES = {'hidden_size': 48, 'num_attention_heads': 3, 'intermediate_size': 64, 'num_hidden_layers': 2}
LN = {**SIZES, 'layer_norm_eps': 0.01}
TEXT = {**LN, 'vocab_size': 64, 'max_position_embeddings': 256}
TOKENS = {'vocab_size': 64, 'pad_token_id': 0, 'bos_token_id': 1, 'eos_token_id': 2}
IMAGE = {**LN, 'image_size': 24, 'patch_size': 8}
DINO = {'hidden_size': 48, 'num_attention_heads': 3, 'mlp_ratio': 2, 'num_hidden_layers': 2, 'layer_norm_eps': 0.01,
        'image_size': 24, 'patch_size': 8}
SPEECH = {**LN, 'conv_dim': (8,), 'conv_stride': (2,), 'conv_kernel': (3,), 'num_feat_extract_layers': 1,
          'num_conv_pos_embeddings': 4, 'num_conv_pos_embedding_groups': 2}
OPT_SIZES = {**TOKENS, 'hidden_size': 48, 'num_attention_heads': 3, 'ffn_dim': 64, 'num_hidden_layers': 2,
             'word_embed_proj_dim': 48, 'max_position_embeddings': 64}
WHISPER_SIZES = {**TOKENS, 'd_model': 48, 'encoder_attention_heads': 3, 'encoder_ffn_dim': 64, 'encoder_layers': 2,
                 'decoder_layers': 1, 'num_mel_bins': 8, 'max_source_positions': 13}
T5_SIZES = {'vocab_size': 64, 'd_kv': W, 'num_heads': 3, 'd_ff': 64, 'num_layers': 2, 'layer_norm_epsilon': 0.01}
THETA = {'rope_type': 'default', 'rope_theta': 100.0}
ROPE = {'rope_parameters': THETA}

BERT = Names('encoder.layer.{}.', 'attention.self.:query key value', 'attention.output.dense',
             'attention.output.LayerNorm', 'intermediate.dense', 'output.dense', 'output.LayerNorm')
DISTILBERT = Names('transformer.layer.{}.', 'attention.:q_lin k_lin v_lin', 'attention.out_lin', 'sa_layer_norm',
                   'ffn.lin1', 'ffn.lin2', 'output_layer_norm')
ALBERT = Names('encoder.albert_layer_groups.{}.albert_layers.0.', 'attention.:query key value', 'attention.dense',
               'attention.LayerNorm', 'ffn', 'ffn_output', 'full_layer_layer_norm')
MPNET = replace(BERT, qkv='attention.attn.:q k v', out='attention.attn.o', norm1='attention.LayerNorm')
JINA_V2 = replace(BERT, ffn1='mlp.gated_layers', ffn2='mlp.wo', norm2='mlp.layernorm')
JINA_V3 = Names('encoder.layers.{}.', 'mixer.Wqkv', 'mixer.out_proj', 'norm1', 'mlp.fc1', 'mlp.fc2', 'norm2')
NOMIC = Names('encoder.layers.{}.', 'attn.Wqkv', 'attn.out_proj', 'norm1', 'mlp.:fc12 fc11', 'mlp.fc2', 'norm2')
GTE = Names('encoder.layer.{}.', 'attention.qkv_proj', 'attention.o_proj', 'attn_ln', 'mlp.up_gate_proj',
            'mlp.down_proj', 'mlp_ln')
VIT = replace(BERT, qkv='attention.attention.:query key value', norm1='layernorm_before', norm2='layernorm_after')
DINOV2 = replace(VIT, norm1='norm1', ffn1='mlp.fc1', ffn2='mlp.fc2', norm2='norm2',
                 scale='layer_scale1.lambda1 layer_scale2.lambda1')
SWIGLU = replace(DINOV2, ffn1='mlp.weights_in', ffn2='mlp.weights_out')
CLIP = Names('encoder.layers.{}.', 'self_attn.:q_proj k_proj v_proj', 'self_attn.out_proj', 'layer_norm1', 'mlp.fc1',
             'mlp.fc2', 'layer_norm2')
WHISPER = replace(CLIP, norm1='self_attn_layer_norm', ffn1='fc1', ffn2='fc2', norm2='final_layer_norm')
OPT = replace(WHISPER, prefix='decoder.layers.{}.')
WAV2VEC2 = Names('encoder.layers.{}.', 'attention.:q_proj k_proj v_proj', 'attention.out_proj', 'layer_norm',
                 'feed_forward.intermediate_dense', 'feed_forward.output_dense', 'final_layer_norm')
MODERNBERT = Names('layers.{}.', 'attn.Wqkv', 'attn.Wo', 'attn_norm', 'mlp.Wi', 'mlp.Wo', 'mlp_norm')
EUROBERT = Names('layers.{}.', CLIP.qkv, 'self_attn.o_proj', 'input_layernorm', 'mlp.:gate_proj up_proj',
                 'mlp.down_proj', 'post_attention_layernorm')
T5_RELU = Names('encoder.block.{}.layer.', '0.SelfAttention.:q k v', '0.SelfAttention.o', '0.layer_norm',
                '1.DenseReluDense.wi', '1.DenseReluDense.wo', '1.layer_norm')
T5_GATED = replace(T5_RELU, ffn1='1.DenseReluDense.:wi_0 wi_1')
GPT2 = Names('h.{}.', 'attn.c_attn', 'attn.c_proj', 'ln_1', 'mlp.c_fc', 'mlp.c_proj', 'ln_2')
BLOOM = Names('h.{}.', 'self_attention.query_key_value', 'self_attention.dense', 'input_layernorm',
              'mlp.dense_h_to_4h', 'mlp.dense_4h_to_h', 'post_attention_layernorm')

PIXELS = {'call': 'pixels', 'double': 'sdpa', 'pre': True}
T5_CHAIN = {'pre': True, 'rms': True, 'final': 'encoder.final_layer_norm', 'eps': 'layer_norm_epsilon',
            'score_bias': 'buckets', 'score_scale': 1.0,
            'bias_table': 'encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight'}
FAMILIES = {
    'bert': Family('BertModel', TEXT, BERT, double='eager'),
    'roberta': Family('RobertaModel', TEXT, BERT, double='eager'),
    'electra': Family('ElectraModel', {**TEXT, 'embedding_size': 16}, BERT, double='eager'),
    'distilbert': Family('DistilBertModel', {'dim': 48, 'n_heads': 3, 'hidden_dim': 64, 'n_layers': 2},
                         DISTILBERT, double='eager', eps=1e-12),
    'albert': Family('AlbertModel', {**TEXT, 'embedding_size': 16, 'num_hidden_layers': 4, 'num_hidden_groups': 2},
                     ALBERT, module='encoder.albert_layer_groups', double='eager', activation='gelu_tanh'),
    'mpnet': Family('MPNetModel', TEXT, MPNET, double='eager', batch=1, seq_len=136, score_bias='buckets',
                    bias_table='encoder.relative_attention_bias.weight'),
    'jina-v2': Family('jina v2', {**TEXT, 'model_type': 'bert', 'architectures': ['JinaBertModel'],
                                  'hidden_act': 'gelu', 'position_embedding_type': 'alibi',
                                  'feed_forward_type': 'geglu'}, JINA_V2, gate='first', score_bias='alibi_abs'),
    'jina-v3': Family('JinaEmbeddingsV3Model', {**TEXT, **ROPE}, JINA_V3, module='layers', rope=True),
    'nomic': Family('NomicBertModel', {**TEXT, **ROPE}, NOMIC, module='layers', activation='silu', gate='first',
                    rope=True),
    'gte': Family('gte', {**TEXT, 'model_type': 'new', 'architectures': ['NewModel'], 'hidden_act': 'gelu',
                          'layer_norm_type': 'layer_norm', 'logn_attention_scale': False, 'pack_qkv': True,
                          'position_embedding_type': 'rope', 'rope_theta': 100.0,
                          'rope_scaling': {'type': 'ntk', 'factor': 2.0}}, GTE, gate='second', rope=True),
    'wav2vec2': Family('Wav2Vec2Model', SPEECH, WAV2VEC2, call='hidden', double='sdpa'),
    'wav2vec2-stable': Family('Wav2Vec2Model', {**SPEECH, 'do_stable_layer_norm': True, 'feat_extract_norm': 'layer'},
                              WAV2VEC2, call='hidden', double='sdpa', pre=True, final='encoder.layer_norm'),
    'vit': Family('ViTModel', IMAGE, VIT, module='layers', seq_len=10, final='layernorm', **PIXELS),
    'deit': Family('DeiTModel', IMAGE, VIT, module='layers', seq_len=11, final='layernorm', **PIXELS),
    'dinov2': Family('Dinov2Model', DINO, DINOV2, seq_len=10, final='layernorm', **PIXELS),
    'dinov2-swiglu': Family('Dinov2Model', {**DINO, 'use_swiglu_ffn': True}, SWIGLU, seq_len=10,
                            final='layernorm', activation='silu', gate='first', **PIXELS),
    'siglip-vision': Family('SiglipVisionModel', IMAGE, CLIP, seq_len=9, final='post_layernorm', activation='gelu_tanh',
                            **PIXELS),
    'clip-vision': Family('CLIPVisionModel', IMAGE, CLIP, seq_len=10, final='post_layernorm', raw=True,
                          activation='quick_gelu', **PIXELS),
    'clip-text': Family('CLIPTextModel', {**TEXT, **TOKENS}, CLIP, double='sdpa', pre=True, final='final_layer_norm',
                        activation='quick_gelu', causal=True),
    'whisper': Family('WhisperModel', WHISPER_SIZES, WHISPER, call='mel', double='eager', pre=True,
                      final='encoder.layer_norm', eps=1e-5),
    'modernbert': Family('ModernBertModel',
                         {**SIZES, **TOKENS, 'num_hidden_layers': 4, 'norm_eps': 0.01, 'local_attention': 16,
                          'cls_token_id': 1, 'sep_token_id': 2, 'rope_parameters': {
                              'full_attention': THETA, 'sliding_attention': {**THETA, 'rope_theta': 50.0}}},
                         MODERNBERT, seq_len=30, pre=True, final='final_norm', eps='norm_eps', gate='first', rope=True),
    'eurobert': Family('EuroBertModel', {**SIZES, **TOKENS, **ROPE, 'hidden_size': 64, 'num_attention_heads': 4,
                                         'num_key_value_heads': 2, 'mask_token_id': 3, 'rms_norm_eps': 0.01}, EUROBERT,
                       pre=True, rms=True, final='norm', eps='rms_norm_eps', activation='silu', gate='first',
                       rope=True),
    't5-relu': Family('T5EncoderModel', {**T5_SIZES, 'd_model': 48, 'feed_forward_proj': 'relu'}, T5_RELU, batch=1,
                      seq_len=136, activation='relu', **T5_CHAIN),
    't5-gated': Family('T5EncoderModel', {**T5_SIZES, 'd_model': 64, 'feed_forward_proj': 'gated-gelu'}, T5_GATED,
                       activation='gelu_tanh', gate='first', **T5_CHAIN),  # heads x head size is not the hidden size
    'gpt2': Family('GPT2Model', {'vocab_size': 64, 'n_embd': 48, 'n_head': 3, 'n_layer': 2, 'n_inner': 64,
                                 'layer_norm_epsilon': 0.01, 'bos_token_id': 1, 'eos_token_id': 2}, GPT2,
                   double='eager', pre=True, final='ln_f', eps='layer_norm_epsilon', activation='gelu_tanh',
                   causal=True, conv1d=True),
    'bloom': Family('BloomModel', {'vocab_size': 64, 'hidden_size': 48, 'n_head': 3, 'n_layer': 2,
                                   'layer_norm_epsilon': 0.01}, BLOOM, pre=True, final='ln_f', eps='layer_norm_epsilon',
                    activation='gelu_tanh', score_bias='alibi', causal=True, heads_outside=True),
    'opt': Family('OPTModel', OPT_SIZES, OPT, double='sdpa', pre=True, final='decoder.final_layer_norm', eps=1e-5,
                  activation='relu', causal=True),
    'opt-post': Family('OPTModel', {**OPT_SIZES, 'do_layer_norm_before': False}, OPT, double='sdpa', eps=1e-5,
                       activation='relu', causal=True),
}


# The reference: a chain of 15 operators, in float64

ACTIVATIONS = {
    'gelu': lambda u: u / 2 * (1 + np.vectorize(math.erf)(u / math.sqrt(2))),
    'gelu_tanh': lambda u: u / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3))),
    'quick_gelu': lambda u: u / (1 + np.exp(-1.702 * u)),
    'relu': lambda u: np.maximum(u, 0),
    'silu': lambda u: u / (1 + np.exp(-u)),
}


def bucket(distance):
    """Of j - i: 32 buckets, exact below 8, logarithmic up to 128."""
    n = abs(distance)
    if n >= 8:
        n = min(15, 8 + int(math.log(n / 8) / math.log(16) * 8 + 1e-9))
    return n + (16 if distance > 0 else 0)


def alibi_slopes(heads):
    power = 2**int(math.log2(heads))
    return [2**(-8 * (h + 1) / power) if h < power else 2**(-8 * (2 * (h - power) + 1) / (2 * power))
            for h in range(heads)]


def read(directory, name):
    with gzip.open(os.path.join(directory, name + '.safetensors.gz')) as file:
        return load(file.read())


class Stack:
    """The layers of a family, by the files of its directory.

    folded: score scale, LayerScale and the repetition of key heads lie in the weights, as a library packs them;
    otherwise they are operations.  head_size: that of the packed weights, W or padded by zeros."""

    def __init__(self, family, directory, folded=True, head_size=W):
        with open(os.path.join(directory, 'config.json'), encoding='utf-8') as file:
            self.config = json.load(file)
        self.family, self.folded, self.head_size = family, folded, head_size
        self.tensors = {name: t.astype(np.float64) for name, t in read(directory, 'model').items()}
        self.eps = family.eps if isinstance(family.eps, float) else self.config[family.eps]
        stem = family.names.stem()
        groups = len({name[len(stem):].split('.')[0] for name in self.tensors if name.startswith(stem)})
        count = self.config['num_hidden_layers'] if 'num_hidden_groups' in self.config else groups
        self.layers = [self.pack(layer * groups // count) for layer in range(count)]

    def linear(self, prefix, names):
        """(in,out) and bias, of several modules side by side."""
        names = [prefix + name for name in modules(names)]
        weights = [self.tensors[name + '.weight'] for name in names]
        weights = weights if self.family.conv1d else [weight.T for weight in weights]
        biases = [self.tensors.get(name + '.bias', np.zeros(w.shape[1])) for name, w in zip(names, weights)]
        return np.concatenate(weights, axis=1), np.concatenate(biases)

    def pack(self, layer):
        """Parameters by the names of a chain: weights (in,out), qkv (3,H,W), the activated half of ffn1 first."""
        family, names = self.family, self.family.names
        prefix = names.prefix.format(layer)
        p = {'norm1': prefix + names.norm1, 'norm2': prefix + names.norm2}
        wqkv, bqkv = self.linear(prefix, names.qkv)
        wo, bo = self.linear(prefix, names.out)
        w1, b1 = self.linear(prefix, names.ffn1)
        w2, b2 = self.linear(prefix, names.ffn2)
        heads = wo.shape[0] // W
        qkv = np.concatenate([wqkv, bqkv[None]]).reshape(wqkv.shape[0] + 1, -1, W)  # the bias as a last row
        if family.heads_outside:
            qkv = qkv.reshape(-1, heads, 3, W).swapaxes(1, 2).reshape(-1, 3 * heads, W)
        q, k, v = np.split(qkv, [heads, (heads + qkv.shape[1]) // 2], axis=1)
        lambdas = [self.tensors[prefix + name] for name in names.scale.split()] or [1.0, 1.0]
        p['score_scale'] = family.score_scale
        if self.folded:
            k, v = (np.repeat(t, heads // k.shape[1], axis=1) for t in (k, v))
            p['score_scale'] = self.head_size**-0.5
            q = q * (family.score_scale / p['score_scale'])
            wo, bo, w2, b2 = wo * lambdas[0], bo * lambdas[0], w2 * lambdas[1], b2 * lambdas[1]
            lambdas = [1.0, 1.0]
        spare = self.head_size - W
        p['qkv'] = [np.pad(t, ((0, 0), (0, 0), (0, spare))) for t in (q, k, v)]
        p['wo'] = np.pad(wo.reshape(heads, W, -1), ((0, 0), (0, spare), (0, 0))).reshape(heads * self.head_size, -1)
        if family.gate == 'second':
            w1, b1 = np.roll(w1, w1.shape[1] // 2, axis=1), np.roll(b1, len(b1) // 2)
        p.update(bo=bo, w1=w1, b1=b1, w2=w2, b2=b2, lambdas=lambdas)
        return p

    def norm(self, x, module):
        """Layer 0 of ModernBERT has no first norm, and norms may lack beta."""
        if module + '.weight' not in self.tensors:
            return x
        if not self.family.rms:
            x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        return x * self.tensors[module + '.weight'] + self.tensors.get(module + '.bias', 0.0)

    def sliding(self, layer):
        return self.config.get('layer_types', ['full_attention'] * len(self.layers))[layer] == 'sliding_attention'

    def mask(self, layer, lengths, seq_len):
        """(B,1,S,S): query i reads key j."""
        i, j = np.ogrid[:seq_len, :seq_len]
        allowed = np.ones((seq_len, seq_len), bool)
        if self.family.causal:
            allowed = j <= i
        elif self.sliding(layer):
            allowed = abs(i - j) <= self.config['local_attention'] // 2
        return (allowed & (j < lengths[:, None, None]))[:, None]

    def rope(self, layer, positions):
        """cos and sin (S,W/2)."""
        parameters = self.config.get('rope_parameters', self.config)
        parameters = parameters.get('sliding_attention' if self.sliding(layer) else 'full_attention', parameters)
        factor = (self.config.get('rope_scaling') or {'factor': 1.0})['factor']
        inverse = (parameters['rope_theta'] * factor)**(-2 * np.arange(W // 2) / W) / factor**(2 / W)
        angles = positions[:, None] * inverse
        return np.cos(angles), np.sin(angles)

    def score_bias(self, heads, seq_len):
        """(H,S,S), from the one table (H,2S-1) over j - i that a chain reads."""
        distances = range(1 - seq_len, seq_len)
        if self.family.score_bias == 'buckets':
            table = self.tensors[self.family.bias_table][[bucket(d) for d in distances]].T
        else:
            d = np.array(distances, np.float64)
            table = np.outer(alibi_slopes(heads), -abs(d) if self.family.score_bias == 'alibi_abs' else d)
        i, j = np.ogrid[:seq_len, :seq_len]
        return table[:, j - i + seq_len - 1]

    def attention(self, layer, n, mask, positions, bias):
        """Operators 0 to 7 (the product with Wo)."""
        p = self.layers[layer]
        batch, seq_len = n.shape[:2]
        q, k, v = (np.einsum('bsd,dhw->bhsw', n, t[:-1]) + t[-1][:, None] for t in p['qkv'])  # 0, 1
        if self.family.rope:
            cos, sin = self.rope(layer, positions)
            q, k = (np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)
                    for a, b in (np.split(t, 2, axis=-1) for t in (q, k)))
        k, v = (np.repeat(t, q.shape[1] // t.shape[1], axis=1) for t in (k, v))
        scores = np.where(mask, q @ k.swapaxes(2, 3) * p['score_scale'] + bias, -1e30)  # 2, 3
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)  # 4
        return (scores @ v).swapaxes(1, 2).reshape(batch, seq_len, -1) @ p['wo']  # 5, 6, 7

    def run(self, x, lengths, offset=0, bias=None):
        """y and, for pre, yn.  offset: added to all positions.  bias (H,S,S): in place of the family's own."""
        family, seq_len = self.family, x.shape[1]
        if bias is None:
            heads = self.layers[0]['qkv'][0].shape[1]
            bias = self.score_bias(heads, seq_len) if family.score_bias else 0.0
        n = self.norm(x, self.layers[0]['norm1']) if family.pre else x
        for layer, p in enumerate(self.layers):
            attended = self.attention(layer, n, self.mask(layer, lengths, seq_len), np.arange(seq_len) + offset, bias)
            s = (attended + p['bo']) * p['lambdas'][0] + x  # 8
            h = self.norm(s, p['norm2' if family.pre else 'norm1'])  # 9
            u = h @ p['w1'] + p['b1']  # 10, 11
            activated, *linear = np.split(u, 2, axis=-1) if family.gate else [u]
            u = ACTIVATIONS[family.activation](activated) * (linear[0] if linear else 1.0)
            x = (u @ p['w2'] + p['b2']) * p['lambdas'][1] + (s if family.pre else h)  # 12, 13
            if family.pre:  # 14: the first norm of the next layer, or the final one
                n = self.norm(x, self.layers[layer + 1]['norm1'] if layer + 1 < len(self.layers) else family.final)
            else:
                n = x = self.norm(x, p['norm2'])
        return x, n


def difference(lengths, a, b):
    """Largest, over real rows, relative to the largest value."""
    real = np.arange(a.shape[1]) < lengths[:, None]
    return abs(a[real] - b[real]).max() / abs(b[real]).max()


def check(name, directory):
    """Golden values against the reference, then forms of the reference that must agree."""
    family = FAMILIES[name]
    golden = read(directory, 'golden')
    x, lengths = golden['x'].astype(np.float64), golden['lengths']
    stack = Stack(family, directory)
    y, yn = stack.run(x, lengths)
    errors = {'y': difference(lengths, golden['y'], y)}
    if family.final:
        errors['yn'] = difference(lengths, golden['yn'], yn)
    same = {'unfolded': Stack(family, directory, folded=False).run(x, lengths)[0]}
    if family.rope:
        same['positions + 5'] = stack.run(x, lengths, offset=5)[0]
    else:
        same['padded heads'] = Stack(family, directory, head_size=24).run(x, lengths)[0]
    if family.score_bias:
        bias = stack.score_bias(stack.layers[0]['qkv'][0].shape[1], x.shape[1])
        same['bias + 1'] = stack.run(x, lengths, bias=bias + 1)[0]
    if family.score_bias == 'alibi':
        by_key = np.multiply.outer(alibi_slopes(len(bias)), np.arange(x.shape[1]))[:, None]
        same['bias of keys alone'] = stack.run(x, lengths, bias=by_key)[0]
    print(f'{name}: ' + ', '.join(f'{key} {error:.1e}' for key, error in errors.items()), flush=True)
    for form, value in same.items():
        errors[form] = difference(lengths, value, y) / IDENTITY_MAX * ERROR_MAX
    wrong = [key for key, error in errors.items() if not error <= ERROR_MAX]
    if wrong:
        print(f'{name}: WRONG: {", ".join(wrong)}', flush=True)
    return not wrong


if __name__ == '__main__':
    right = [check(name, os.path.join(HERE, name)) for name in sys.argv[1:] or FAMILIES]
    sys.exit(0 if all(right) else 1)
