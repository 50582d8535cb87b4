"""Finds the layers of a model that a chain of fuseplan can run, and refuses by name what none can."""

import dataclasses
import functools
import re
import sys

import torch

from .families import ACTIVATIONS, FAMILIES, OTHERS, PRE, PRE_IF


class Unsupported(ValueError):
    """What a model has that fuseplan would compute otherwise: what was found, and what to do."""


@dataclasses.dataclass
class Description:
    """Layers that stand one after another in a list of a model."""

    owner: torch.nn.Module  # has the list
    attribute: str
    path: str  # of the list in the model, "encoder.layer"; its class, if it is the model
    layers: list
    family: object
    norm: str
    activation: str
    gate: bool
    rms: bool
    heads: int
    head_size: int
    hidden: int  # columns of a token, which need not be those of all heads
    ffn: int
    eps: float
    window: int  # of the keys of local layers, on either side; 0: all layers see all tokens
    every: int  # layers 0, every, 2 every, ... are not local

    @property
    def chain(self):
        """As fuseplan names it: "pre+rms+silu+gate+rope"."""
        words = [self.norm] + ["rms"] * self.rms + [self.activation] * (self.activation != "gelu")
        words += ["gate"] * self.gate + ["rope"] * self.family.rope + ["bias"] * bool(self.family.bias)
        return "+".join(words)

    @property
    def causal(self):
        config = getattr(self.owner, "config", None)
        return self.family.causal or getattr(config, "model_type", "") == "clip_text_model"

    @property
    def mask(self):
        return "causal" if self.causal else "full"

    @property
    def place(self):
        """(device, dtype) of the weights."""
        t = next(self.layers[0].parameters())
        return t.device, t.dtype

    def part(self, layer, paths):
        return find_part(self.layers[layer], paths)


def find_part(layer, paths):
    """What lies at the first of the paths that the layer has; of a path with commas a list; None: none has one."""
    for path in paths.split():
        found = [_walk(layer, one) for one in path.split(",")]
        if all(part is not None for part in found):
            return found if "," in path else found[0]
    return None


def _walk(part, path):
    for name in path.split("."):
        part = part[int(name)] if name.isdigit() else getattr(part, name, None)
        if part is None:
            return None
    return part


def _known(layer):
    name = type(layer).__name__
    return next((f for f in FAMILIES if name in f.classes.split()), None)


def transformers_5():
    """The module transformers, if the process has imported version 5 or a later one; else None."""
    module = sys.modules.get("transformers")
    return module if module is not None and int(module.__version__.split(".")[0]) >= 5 else None


def unwrap(model):
    """The model in a SentenceTransformer or a CrossEncoder; else the model itself."""
    kinds = {kind.__name__ for kind in type(model).__mro__}
    base, what = model, f"{type(model).__module__}.{type(model).__qualname__}"
    if "SentenceTransformer" in kinds:
        base = getattr(model[0], "auto_model", None)
        what = f"SentenceTransformer that begins with a {type(model[0]).__name__}"
    elif "CrossEncoder" in kinds:
        base = model.model
    if not isinstance(base, torch.nn.Module):
        raise Unsupported(f"the model is a {what}; expected a torch.nn.Module, a SentenceTransformer with a model of "
                          "transformers, or a CrossEncoder")
    return base


def check_whole(model):
    """Refuses models whose layers cannot be replaced, whatever they are."""
    name = f"{type(model).__module__}.{type(model).__qualname__}"
    if hasattr(model, "_orig_mod"):
        raise Unsupported("the model is compiled; give the model to optimize() first, then to torch.compile()")
    if type(model).__module__.startswith("peft."):
        raise Unsupported(f"the model is a {name}, with an adapter that is not merged: call merge_and_unload()")
    if model.training:
        raise Unsupported("the model is in training mode; fuseplan's layers have no dropout: call model.eval()")
    places = {str(place) for place in (getattr(model, "hf_device_map", None) or {}).values()}
    if len(places) > 1:
        raise Unsupported(f"the model's hf_device_map spreads it over {', '.join(sorted(places))}; fuseplan's layers "
                          "run on one device: load the model without device_map")


def find_stacks(model):
    """The stacks of a model that can run, and a dict of why others cannot, by their path."""
    stacks, refused = [], {}
    for path, owner, attribute, layers in _find_lists(model):
        try:
            stacks.append(_describe(path, owner, attribute, layers))
        except Unsupported as error:
            refused[path] = str(error)
    if not stacks:
        whys = "; ".join(f"{path}: {why}" if path else why for path, why in refused.items())
        raise Unsupported(f"{type(model).__name__} has no layers that fuseplan runs: "
                          f"{whys or 'no list of layers was found'}")
    return stacks, refused


def _find_lists(model):
    """(path, owner, attribute, layers) of each list of layers, outer ones alone."""
    found = []
    lists = [("", model, "", model)] if isinstance(model, torch.nn.ModuleList) else []
    for path, owner in model.named_modules():
        lists += [(f"{path}.{name}" if path else name, owner, name, module)
                  for name, module in owner.named_children() if isinstance(module, torch.nn.ModuleList)]
    for path, owner, attribute, layers in lists:
        inside = any(path.startswith(outer + ".") for outer, *_ in found)
        name = type(layers[0]).__name__ if len(layers) > 0 else ""
        if len(layers) > 0 and not inside and (_known(layers[0]) or name in OTHERS or _is_layer(layers[0])):
            found.append((path, owner, attribute, list(layers)))
    return found


def _is_layer(module):
    return re.search(r"(Layer|Block)$", type(module).__name__) is not None and any(
        re.search(r"attention|attn", name) for name, _ in module.named_children())


# ---- what layers are -------------------------------------------------------------------------------


def _describe(path, owner, attribute, layers):
    layers = [getattr(layer, "_orig_mod", layer) for layer in layers]
    first = layers[0]
    family = _known(first)
    if family is None or any(type(layer) is not type(first) for layer in layers):
        kinds = sorted({type(layer).__name__ for layer in layers})
        what = OTHERS.get(kinds[0], "")
        raise Unsupported(f"its layers are {', '.join(kinds)}{', with ' + what if what else ''}; fuseplan runs those "
                          f"of {', '.join(f.name for f in FAMILIES)}")
    for i, layer in enumerate(layers):
        for paths in (family.qkv, family.out, family.norm1, family.up, family.down, family.norm2):
            if find_part(layer, paths) is None:
                raise Unsupported(f"layer {i}, a {type(layer).__name__}, has no {' nor '.join(paths.split())}: "
                                  "it is of another version")
        _check_modules(i, layer)
        _check_values(i, layer, next(first.parameters()))
        _check_fields(i, layer, family)
    norms = [find_part(layer, p) for layer in layers for p in (family.norm1, family.norm2)]
    norms = [norm for norm in norms if not isinstance(norm, torch.nn.Identity)]
    window, every = _find_windows(layers) if family.windows else (0, 0)
    kinds = [_find_kind(layer, family) for layer in layers]
    for i, kind in enumerate(kinds):
        for name, value in kind.items():
            if value != kinds[0][name]:
                raise Unsupported(f"layer {i} has {name} {value}, and layer 0 {kinds[0][name]}; fuseplan runs layers "
                                  "of one kind")
    return Description(owner, attribute, path or type(owner).__name__, layers, family, **kinds[0], rms=_find_rms(norms),
                 hidden=norms[0].weight.shape[0], eps=_eps(norms), window=window, every=every)


def _find_kind(layer, family):
    """What all layers of a stack have in common, see Description."""
    size, ffn = _head_size(layer), _columns(find_part(layer, family.down))
    columns = read_qkv(family, layer)[0][1].shape[0]
    if columns % size != 0:
        raise Unsupported(f"q has {columns} columns, which heads of {size} do not divide")
    up = find_part(layer, family.up)
    packed = bool(family.gate) and not isinstance(up, list) and _rows(up) == 2 * ffn
    return {"norm": _norm_place(layer, family), "activation": _activation(layer, family),
            "gate": isinstance(up, list) or packed, "heads": columns // size, "head_size": size, "ffn": ffn}


def window_of(layer):
    """Of a layer's keys, on either side; 0: it sees all tokens."""
    sides = getattr(layer.attn, "local_attention", None)  # of transformers 4: (-1, -1) for none
    if sides is not None:
        return max(sides[0], 0)
    return (layer.attn.sliding_window or 1) - 1


def _find_windows(layers):
    """(window, every) of a stack, see Description."""
    windows = [window_of(layer) for layer in layers]
    if not any(windows):
        return 0, 0
    window = max(windows)
    every = next((i for i, w in enumerate(windows) if i > 0 and w == 0), len(layers))
    if windows != [window if i % every else 0 for i in range(len(layers))]:
        raise Unsupported(f"its layers see {', '.join(str(w) if w else 'all' for w in windows)} tokens on either side; "
                          "fuseplan runs one kind of local layers, between every n-th that sees all")
    return window, every


def _norm_place(layer, family):
    if family.norm != PRE_IF:
        return family.norm
    return PRE if any(getattr(layer, name, False) for name in PRE_IF.split()) else "post"


def _activation(layer, family):
    act = find_part(layer, family.act)
    if act is None:  # DINOv2's gate has none of its own
        if find_part(layer, "mlp.weights_in") is not None:
            return "silu"
        raise Unsupported(f"a {type(layer).__name__} has no {family.act}: it is of another version")
    keywords = {}
    if isinstance(act, functools.partial):
        act, keywords = act.func, act.keywords
    name = getattr(act, "__name__", type(act).__name__)
    tanh = keywords.get("approximate", getattr(act, "approximate", "none")) == "tanh"
    if name not in ACTIVATIONS:
        raise Unsupported(f"its activation is {name}; fuseplan runs {', '.join(sorted(set(ACTIVATIONS.values())))}")
    return "gelu_tanh" if tanh else ACTIVATIONS[name]


def _find_rms(norms):
    found = {not isinstance(norm, torch.nn.LayerNorm) and "bias" not in dict(norm.named_parameters(recurse=False))
             for norm in norms}
    if len(found) > 1:
        raise Unsupported("some of its norms are layernorms, others RMS norms; fuseplan takes one kind for all")
    return found.pop()


def _eps(norms):
    found = {getattr(n, "eps", getattr(n, "variance_epsilon", None)) for n in norms}
    if len(found) != 1 or None in found:
        raise Unsupported(f"its norms have eps {', '.join(map(str, found))}; fuseplan takes one for all")
    return found.pop()


def _head_size(layer):
    for module in layer.modules():
        for name in ("attention_head_size", "head_dim", "key_value_proj_dim"):
            if isinstance(getattr(module, name, None), int):
                return getattr(module, name)
    raise Unsupported(f"a {type(layer).__name__} does not say how large a head is")


def score_scale(layer, family, head_size):
    """What q k^T is multiplied by."""
    for module in layer.modules():
        if getattr(module, "scale_attn_by_inverse_layer_idx", False) or not getattr(module, "scale_attn_weights", True):
            if not hasattr(module, "scaling"):
                raise Unsupported("its scores have a scale of another kind (scale_attn_weights): run it in PyTorch")
        for name in ("scaling", "scale", "inv_norm_factor"):
            if isinstance(getattr(module, name, None), float):
                return getattr(module, name)
    return head_size ** -0.5 if family.scaled else 1.0


# ---- matrices: of nn.Linear (out, in), of Conv1D (in, out) -----------------------------------------


def matrix_of(module):
    """(out, in)."""
    return module.weight.t() if type(module).__name__ == "Conv1D" else module.weight


def _rows(module):
    return matrix_of(module).shape[0]


def _columns(module):
    return matrix_of(module).shape[1]


def read_qkv(family, layer):
    """[(name, (out, in), bias or None)] of q, k and v."""
    found = find_part(layer, family.qkv)
    if isinstance(found, list):
        return [(name, matrix_of(m), m.bias) for name, m in zip("qkv", found)]
    if isinstance(found, torch.nn.MultiheadAttention):
        if found.in_proj_weight is None:
            raise Unsupported("its attention has keys of another size (kdim)")
        weight, bias = found.in_proj_weight, found.in_proj_bias
    else:
        weight, bias = matrix_of(found), found.bias
    if family.heads_outside:
        weight, bias = (None if t is None else t.reshape(-1, 3, _head_size(layer), *t.shape[1:]).transpose(0, 1)
                        .reshape(t.shape) for t in (weight, bias))
    columns = _columns(find_part(layer, family.out))  # of q; k and v may have fewer
    parts = (columns, (weight.shape[0] - columns) // 2, (weight.shape[0] - columns) // 2)
    biases = (None,) * 3 if bias is None else bias.split(parts)
    return list(zip("qkv", weight.split(parts), biases))


# ---- what layers may not have ----------------------------------------------------------------------

_MODULES = ("transformers.models.", "transformers.activations", "transformers.pytorch_utils", "transformers_modules.",
            "transformers.modeling_layers", "torch.nn.modules.")
_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def _check_modules(i, layer):
    """Refuses what would compute something else than the weights say."""
    for name, module in layer.named_modules():
        kind, where = type(module), f"layer {i}: {name or 'it'}"
        if "lora_A" in name or hasattr(module, "base_layer"):
            raise Unsupported(f"{where} holds an adapter that is not merged: call merge_and_unload()")
        if not kind.__module__.startswith(_MODULES) and kind.__module__.split(".")[0] in ("peft", "bitsandbytes",
                                                                                         "torchao", "torch"):
            raise Unsupported(f"{where} is a {kind.__module__}.{kind.__qualname__}; expected PyTorch's and "
                              "transformers' own modules: merge adapters by merge_and_unload(), remove "
                              "parametrizations, and load without quantization_config")
        hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
        if not all(getattr(hook, "__module__", "").startswith("transformers.") for hook in hooks):
            raise Unsupported(f"{where} has a hook, which fuseplan would not call: remove it")
        if "forward" in vars(module):
            raise Unsupported(f"{where} has a forward() of its own, which fuseplan would not call: load the model "
                              "without what replaces it")
        if module.training:
            raise Unsupported(f"{where} is in training mode; fuseplan's layers have no dropout: call model.eval()")


def _check_values(i, layer, first):
    for name, t in layer.named_parameters():
        if type(t.detach()) is not torch.Tensor or t.dtype not in _FLOATS:
            raise Unsupported(f"layer {i}: {name} is {t.dtype} in a {type(t.detach()).__name__}; expected fp32, fp16 "
                              "or bf16 in a Tensor: load without quantization_config")
        if t.device.type not in ("cpu", "cuda"):
            raise Unsupported(f"layer {i}: {name} is on {t.device}; fuseplan's layers run on a CPU or an NVIDIA GPU: "
                              "load the weights there")
        if t.device != first.device:
            raise Unsupported(f"layer {i}: {name} is on {t.device}, and others on {first.device}; fuseplan's layers "
                              "run on one device: load the model without device_map")


# Attributes of parts of a layer, or of their configs, and the values with which a chain computes the same.
_FIELDS = (("is_decoder", (False,)), ("is_cross_attention", (False,)), ("add_cross_attention", (False,)),
           ("position_embedding_type", ("absolute", "alibi", "rope", None)), ("pruned_heads", (set(), {})),
           ("apply_residual_connection_post_layernorm", (False,)), ("logn_attention_scale", (False,)),
           ("adapter_layer", (None,)), ("batch_first", (True,)), ("bias_k", (None,)), ("interleaved", (False,)))


def _check_fields(i, layer, family):
    for name, module in layer.named_modules():
        for field, good in _FIELDS:
            found = getattr(module, field, good[0])
            if found not in good and not (family.causal and field == "is_decoder"):
                raise Unsupported(f"layer {i}: {name + '.' if name else ''}{field} is {found}; fuseplan runs "
                                  f"{good[0]}: run this model in PyTorch")
