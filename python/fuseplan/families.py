"""Kinds of layers, by the class of a layer: where its parts are and what it computes.

A path names a part of a layer, "attention.self.query".  Versions of transformers name parts differently: of
several paths, between blanks, the first that a layer has counts.  To add a kind whose layers compute what a chain
of fuseplan does: its row.  The names of weights in files are another matter, see `fuseplan bench --weights`.
"""

import dataclasses

POST, PRE, PRE_IF = "post", "pre", "do_layer_norm_before norm_first"  # PRE_IF: an attribute of the layer says so


@dataclasses.dataclass(frozen=True)
class Family:
    """What layers of some classes have.  Matrices are those of nn.Linear, or of GPT-2's Conv1D."""

    name: str
    classes: str  # of layers, between blanks
    qkv: str  # of q, k and v, with commas between them, or of one matrix of all
    out: str
    norm1: str  # behind attention, or before it
    up: str  # with a comma: the activated half of a gate, and its factor
    down: str
    norm2: str  # behind the feed-forward network, or before it
    act: str
    norm: str = POST
    gate: str = ""  # "first" or "second": the half of a gate's one matrix that is activated
    scales: str = ""  # LayerScale behind both branches, with a comma
    heads_outside: bool = False  # rows of the one matrix are (H,3,W), not (3,H,W)
    rope: bool = False
    bias: str = ""  # of scores: "mpnet", "t5", "bloom" or "jina"
    causal: bool = False
    mask_in_layers: bool = False  # the model does nothing with its attention mask but hand it to the layers
    windows: bool = False  # of keys, in some layers: these are local
    scaled: bool = True  # scores by 1/sqrt(W), unless an attribute of attention says otherwise


FAMILIES = (
    Family("BERT", "BertLayer RobertaLayer XLMRobertaLayer CamembertLayer ElectraLayer",
           "attention.self.query,attention.self.key,attention.self.value", "attention.output.dense",
           "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm",
           "intermediate.intermediate_act_fn", mask_in_layers=True),
    Family("DistilBERT", "TransformerBlock", "attention.q_lin,attention.k_lin,attention.v_lin", "attention.out_lin",
           "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm", "ffn.activation", mask_in_layers=True),
    Family("MPNet", "MPNetLayer", "attention.attn.q,attention.attn.k,attention.attn.v", "attention.attn.o",
           "attention.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm",
           "intermediate.intermediate_act_fn", bias="mpnet", mask_in_layers=True),
    Family("jina v2", "JinaBertLayer", "attention.self.query,attention.self.key,attention.self.value",
           "attention.output.dense", "attention.output.LayerNorm", "mlp.gated_layers", "mlp.wo", "mlp.layernorm",
           "mlp.act", gate="first", bias="jina"),
    Family("jina v3", "JinaEmbeddingsV3Layer", "self_attn.q_proj,self_attn.k_proj,self_attn.v_proj",
           "self_attn.o_proj", "post_attention_layernorm", "mlp.fc1", "mlp.fc2", "post_mlp_layernorm",
           "mlp.activation_fn", rope=True, mask_in_layers=True),
    Family("nomic", "NomicBertLayer", "self_attn.q_proj,self_attn.k_proj,self_attn.v_proj", "self_attn.o_proj",
           "post_attention_layernorm", "mlp.gate_proj,mlp.up_proj", "mlp.down_proj", "post_mlp_layernorm",
           "mlp.act_fn", rope=True, mask_in_layers=True),
    Family("nomic, remote code", "NomicBertBlock", "attn.Wqkv", "attn.out_proj", "norm1", "mlp.fc12,mlp.fc11",
           "mlp.fc2", "norm2", "mlp.activation", rope=True),
    Family("GTE, remote code", "NewLayer", "attention.qkv_proj", "attention.o_proj", "attn_ln", "mlp.up_gate_proj",
           "mlp.down_proj", "mlp_ln", "mlp.act_fn", gate="second", rope=True),
    Family("ViT", "ViTLayer DeiTLayer",
           "attention.q_proj,attention.k_proj,attention.v_proj "
           "attention.attention.query,attention.attention.key,attention.attention.value",
           "attention.o_proj attention.output.dense", "layernorm_before", "mlp.fc1 intermediate.dense",
           "mlp.fc2 output.dense", "layernorm_after", "mlp.activation_fn intermediate.intermediate_act_fn", PRE),
    Family("DINOv2", "Dinov2Layer Dinov2WithRegistersLayer",
           "attention.q_proj,attention.k_proj,attention.v_proj "
           "attention.attention.query,attention.attention.key,attention.attention.value",
           "attention.o_proj attention.output.dense", "norm1", "mlp.fc1 mlp.weights_in mlp.gate_proj,mlp.up_proj",
           "mlp.fc2 mlp.weights_out mlp.down_proj", "norm2", "mlp.activation mlp.activation_fn mlp.act_fn", PRE,
           gate="first", scales="layer_scale1.lambda1,layer_scale2.lambda1"),
    Family("CLIP", "CLIPEncoderLayer SiglipEncoderLayer", "self_attn.q_proj,self_attn.k_proj,self_attn.v_proj",
           "self_attn.out_proj", "layer_norm1", "mlp.fc1", "mlp.fc2", "layer_norm2", "mlp.activation_fn", PRE),
    Family("Whisper", "WhisperEncoderLayer", "self_attn.q_proj,self_attn.k_proj,self_attn.v_proj",
           "self_attn.out_proj", "self_attn_layer_norm", "fc1", "fc2", "final_layer_norm", "activation_fn", PRE),
    Family("wav2vec2", "Wav2Vec2EncoderLayer HubertEncoderLayer",
           "attention.q_proj,attention.k_proj,attention.v_proj", "attention.out_proj", "layer_norm",
           "feed_forward.intermediate_dense", "feed_forward.output_dense", "final_layer_norm",
           "feed_forward.intermediate_act_fn"),
    Family("wav2vec2 with norms before", "Wav2Vec2EncoderLayerStableLayerNorm HubertEncoderLayerStableLayerNorm",
           "attention.q_proj,attention.k_proj,attention.v_proj", "attention.out_proj", "layer_norm",
           "feed_forward.intermediate_dense", "feed_forward.output_dense", "final_layer_norm",
           "feed_forward.intermediate_act_fn", PRE),
    Family("GPT-2", "GPT2Block", "attn.c_attn", "attn.c_proj", "ln_1", "mlp.c_fc", "mlp.c_proj", "ln_2", "mlp.act",
           PRE, causal=True),
    Family("BLOOM", "BloomBlock", "self_attention.query_key_value", "self_attention.dense", "input_layernorm",
           "mlp.dense_h_to_4h", "mlp.dense_4h_to_h", "post_attention_layernorm", "mlp.gelu_impl", PRE,
           heads_outside=True, bias="bloom", causal=True),
    Family("OPT", "OPTDecoderLayer", "self_attn.q_proj,self_attn.k_proj,self_attn.v_proj", "self_attn.out_proj",
           "self_attn_layer_norm", "fc1", "fc2", "final_layer_norm", "activation_fn", PRE_IF, causal=True),
    Family("T5", "T5Block", "layer.0.SelfAttention.q,layer.0.SelfAttention.k,layer.0.SelfAttention.v",
           "layer.0.SelfAttention.o", "layer.0.layer_norm",
           "layer.1.DenseReluDense.wi layer.1.DenseReluDense.wi_0,layer.1.DenseReluDense.wi_1",
           "layer.1.DenseReluDense.wo", "layer.1.layer_norm", "layer.1.DenseReluDense.act", PRE, bias="t5",
           scaled=False, mask_in_layers=True),
    Family("EuroBERT", "EuroBertDecoderLayer", "self_attn.q_proj,self_attn.k_proj,self_attn.v_proj",
           "self_attn.o_proj", "input_layernorm", "mlp.gate_proj,mlp.up_proj", "mlp.down_proj",
           "post_attention_layernorm", "mlp.act_fn", PRE, rope=True, mask_in_layers=True),
    Family("ModernBERT", "ModernBertEncoderLayer", "attn.Wqkv", "attn.Wo", "attn_norm", "mlp.Wi", "mlp.Wo", "mlp_norm",
           "mlp.act", PRE, gate="first", rope=True, windows=True, mask_in_layers=True),
    Family("PyTorch", "TransformerEncoderLayer", "self_attn", "self_attn.out_proj", "norm1", "linear1", "linear2",
           "norm2", "activation", PRE_IF),
)

# Activations of a chain, by the name of a function or of a module's class.
ACTIVATIONS = {
    "gelu": "gelu", "GELU": "gelu", "GELUActivation": "gelu",
    "NewGELUActivation": "gelu_tanh", "PytorchGELUTanh": "gelu_tanh", "GELUTanh": "gelu_tanh",
    "FastGELUActivation": "gelu_tanh", "AccurateGELUActivation": "gelu_tanh", "BloomGelu": "gelu_tanh",
    "QuickGELUActivation": "quick_gelu", "ReLU": "relu", "relu": "relu",
    "SiLU": "silu", "SiLUActivation": "silu", "silu": "silu",
}

# What layers of other classes have that no chain computes.
_RELATIVE = "scores that add products with relative positions"
_PARALLEL = "one input of attention and feed-forward network (a parallel residual)"
_CROSS = "attention to the encoder's output (cross-attention)"
_EXPERTS = "experts in the place of a feed-forward network"
OTHERS = {
    "DebertaLayer": _RELATIVE, "DebertaV2Layer": _RELATIVE,
    "GPTJBlock": _PARALLEL, "CodeGenBlock": _PARALLEL, "GPTNeoXLayer": _PARALLEL, "FalconDecoderLayer": _PARALLEL,
    "PhiDecoderLayer": _PARALLEL,
    "BartDecoderLayer": _CROSS, "MBartDecoderLayer": _CROSS, "MarianDecoderLayer": _CROSS,
    "MixtralDecoderLayer": _EXPERTS, "Qwen3MoeDecoderLayer": _EXPERTS,
    "Qwen3DecoderLayer": "norms of queries and keys",
    "GemmaDecoderLayer": "norms that multiply by 1 + weight", "Gemma2DecoderLayer": "branches that end in norms",
    "Gemma3DecoderLayer": "branches that end in norms", "Swinv2Layer": "branches that end in norms",
    "AlbertLayer": "weights that layers share",
    "LongformerLayer": "attention of another kind", "BigBirdLayer": "attention of another kind",
}
