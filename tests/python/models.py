"""Small models of each family that fuseplan knows, with weights that all differ from those of a new model."""

import torch
import transformers

TEXT = dict(hidden_size=32, num_attention_heads=2, intermediate_size=64, num_hidden_layers=3, vocab_size=64,
            max_position_embeddings=130)
IMAGE = dict(hidden_size=32, num_attention_heads=2, intermediate_size=64, num_hidden_layers=3, image_size=32,
             patch_size=8)
DINO = dict(hidden_size=32, num_attention_heads=2, num_hidden_layers=3, mlp_ratio=2, image_size=32, patch_size=8)
SOUND = dict(hidden_size=32, num_attention_heads=2, intermediate_size=64, num_hidden_layers=3, conv_dim=(8, 8),
             conv_stride=(5, 32), conv_kernel=(10, 32), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
             num_feat_extract_layers=2)
WHISPER = dict(d_model=32, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=64, vocab_size=64,
               decoder_ffn_dim=64, encoder_layers=3, decoder_layers=1, num_mel_bins=8, max_source_positions=20,
               pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
T5 = dict(vocab_size=64, d_model=32, d_kv=16, num_heads=2, d_ff=64, num_layers=3)
ROPE = dict(rope_parameters={'rope_type': 'default', 'rope_theta': 100.0})

# name: (chain, mask, class, fields of its config)
MODELS = {
    'bert': ('post', 'full', 'BertModel', TEXT),
    'roberta': ('post', 'full', 'RobertaModel', TEXT),
    'xlm-roberta': ('post', 'full', 'XLMRobertaModel', TEXT),
    'camembert': ('post', 'full', 'CamembertModel', TEXT),
    'electra': ('post', 'full', 'ElectraModel', dict(TEXT, embedding_size=16)),
    'distilbert': ('post', 'full', 'DistilBertModel', dict(dim=32, n_heads=2, hidden_dim=64, n_layers=3, vocab_size=64,
                                                         max_position_embeddings=130)),
    'distilbert, relu': ('post+relu', 'full', 'DistilBertModel', dict(dim=32, n_heads=2, hidden_dim=64, n_layers=3,
                                                                    vocab_size=64, activation='relu')),
    'mpnet': ('post+bias', 'full', 'MPNetModel', TEXT),
    'vit': ('pre', 'full', 'ViTModel', IMAGE),
    'deit': ('pre', 'full', 'DeiTModel', IMAGE),
    'dinov2': ('pre', 'full', 'Dinov2Model', DINO),
    'dinov2, gated': ('pre+silu+gate', 'full', 'Dinov2Model', dict(DINO, use_swiglu_ffn=True)),
    'clip text': ('pre+quick_gelu', 'causal', 'CLIPTextModel', TEXT),
    'clip vision': ('pre+quick_gelu', 'full', 'CLIPVisionModel', IMAGE),
    'siglip text': ('pre+gelu_tanh', 'full', 'SiglipTextModel', dict(TEXT, pad_token_id=0, bos_token_id=1,
                                                                    eos_token_id=2)),
    'siglip vision': ('pre+gelu_tanh', 'full', 'SiglipVisionModel', IMAGE),
    'whisper': ('pre', 'full', 'WhisperModel', WHISPER),
    'wav2vec2': ('post', 'full', 'Wav2Vec2Model', SOUND),
    'wav2vec2, stable': ('pre', 'full', 'Wav2Vec2Model', dict(SOUND, do_stable_layer_norm=True,
                                                            feat_extract_norm='layer')),
    'hubert': ('post', 'full', 'HubertModel', SOUND),
    'gpt2': ('pre+gelu_tanh', 'causal', 'GPT2Model', dict(n_embd=32, n_head=2, n_layer=3, vocab_size=64,
                                                         n_positions=128)),
    'opt': ('pre+relu', 'causal', 'OPTModel', dict(hidden_size=32, num_attention_heads=2, ffn_dim=64, vocab_size=64,
                                                 num_hidden_layers=3, word_embed_proj_dim=32)),
    'opt, norms behind': ('post+relu', 'causal', 'OPTModel', dict(
        hidden_size=32, num_attention_heads=2, ffn_dim=64, vocab_size=64, num_hidden_layers=3,
        word_embed_proj_dim=32, do_layer_norm_before=False)),
    'bloom': ('pre+gelu_tanh+bias', 'causal', 'BloomModel', dict(hidden_size=48, n_head=3, n_layer=3, vocab_size=64)),
    't5': ('pre+rms+relu+bias', 'full', 'T5EncoderModel', T5),
    't5, gated': ('pre+rms+gelu_tanh+gate+bias', 'full', 'T5EncoderModel', dict(T5, feed_forward_proj='gated-gelu')),
    't5, more columns of heads': ('pre+rms+relu+bias', 'full', 'T5EncoderModel', dict(T5, d_kv=32)),
    'eurobert': ('pre+rms+silu+gate+rope', 'full', 'EuroBertModel', dict(
        TEXT, num_key_value_heads=1, pad_token_id=0, bos_token_id=1, eos_token_id=2, **ROPE)),
    'modernbert': ('pre+gate+rope', 'full', 'ModernBertModel', dict(
        TEXT, num_hidden_layers=5, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
        local_attention=8, global_attn_every_n_layers=3)),
    'nomic': ('post+silu+gate+rope', 'full', 'NomicBertModel', dict(TEXT, **ROPE)),
    'jina v3': ('post+rope', 'full', 'JinaEmbeddingsV3Model', dict(TEXT, **ROPE)),
}


def has(name):
    """Whether this version of transformers has the model."""
    return hasattr(transformers, MODELS[name][2])


def draw(name='bert', head=None, **fields):
    _, _, kind, config = MODELS[name]
    made = getattr(transformers, kind)
    config = made.config_class(**{**config, **fields})
    torch.manual_seed(0)
    return shake((getattr(transformers, head) if head else made)(config).eval())


def draw_bare(kind):
    """One layer of a model of transformers, without weights."""
    made = getattr(transformers, f'{kind}Model')
    with torch.device('meta'):
        return made(made.config_class(num_hidden_layers=1)).eval()


def shake(model):
    """Biases of 0 and norms of 1 would hide parts that are swapped."""
    with torch.no_grad():
        for t in model.parameters():
            t.add_(torch.randn_like(t) * 0.1)
    return model
