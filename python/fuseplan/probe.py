"""Calls of a model that show how it calls its layers, and what they answer: nothing is assumed of its version."""

import contextlib
import dataclasses
import inspect

import torch

from .finder import Unsupported


@dataclasses.dataclass
class Call:
    """What a stack's first layer got, and what its layers gave."""

    x: torch.Tensor  # (B,S,D)
    args: tuple  # behind x
    kwargs: dict
    first: object  # what the first layer returned
    y: torch.Tensor  # (B,S,D), of the last
    real: torch.Tensor = None  # (B,S) where tokens are, or None: everywhere


def tensor_of(output):
    return output[0] if isinstance(output, (tuple, list)) else output


def distance(got, want, real):
    """Relative L2 distance, of rows of tokens."""
    got, want = got.double(), want.double()
    if real is not None:
        got, want = got[real], want[real]
    return float((got - want).norm() / want.norm())


def draw_inputs(model, batch, seq_len, lengths=None):
    """Keyword arguments of a call of a HuggingFace model, of random content; (B,S) where tokens are, or None."""
    config, device = model.config, next(model.parameters()).device
    names = _input_names(model)
    inputs, real = {}, None
    generator = torch.Generator().manual_seed(0)
    for name in names:
        if name == "input_ids":
            size = _field(config, "vocab_size")
            inputs[name] = torch.randint(min(10, size - 1), size, (batch, seq_len), generator=generator).to(device)
            if lengths is not None:
                real = torch.arange(seq_len) < torch.tensor(lengths)[:, None]
                inputs["attention_mask"] = real.long().to(device)
                real = real.to(device)
        else:
            shape = (batch, *_shape_of(name, config))
            inputs[name] = torch.randn(shape, generator=generator).to(device, next(model.parameters()).dtype)
    return inputs, real


def _input_names(model):
    main = getattr(model, "main_input_name", "input_ids")
    taken = inspect.signature(model.forward).parameters
    both = [name for name in ("input_ids", "pixel_values") if name in taken and
            hasattr(model.config, "text_config") and hasattr(model.config, "vision_config")]
    return both or [main]


def _field(config, *names):
    for part in (config, getattr(config, "text_config", None), getattr(config, "vision_config", None)):
        for name in names:
            if getattr(part, name, None) is not None:
                return getattr(part, name)
    raise Unsupported(f"the model's config has no {' or '.join(names)}: give optimize() inputs, example={{...}}")


def _shape_of(name, config):
    if name == "pixel_values":
        size = _field(config, "image_size")
        return (_field(config, "num_channels"), *(size if isinstance(size, (tuple, list)) else (size, size)))
    if name == "input_features":
        return _field(config, "num_mel_bins"), 2 * _field(config, "max_source_positions")
    if name == "input_values":
        return (8000,)
    raise Unsupported(f"the model takes {name}, of which no content is known here: give optimize() inputs, "
                      "example={...}")


def longest(model):
    """The most tokens of a text that the model takes; None: it does not say, or takes no text."""
    if not hasattr(model, "config") or "input_ids" not in _input_names(model):
        return None
    config = getattr(model.config, "text_config", None) or model.config
    most = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    return most - 2 if most and getattr(config, "model_type", "") in _OFFSET else most


_OFFSET = ("roberta", "xlm-roberta", "camembert", "mpnet", "opt")  # places begin behind that of padding


def record(model, stacks, call):
    """Runs call() and returns for each stack a Call, or None for one whose layers were not called."""
    calls = [Call(None, (), {}, None, None) for _ in stacks]
    with contextlib.ExitStack() as undo, torch.no_grad():
        for stack, seen in zip(stacks, calls):
            _watch(stack, seen, undo)
        call()
    return [seen if seen.y is not None else None for seen in calls]


def _watch(stack, seen, undo):
    def before(module, args, kwargs):
        kwargs = {name: value for name, value in kwargs.items() if name != "output_hidden_states"}  # the model's matter
        x = args[0] if args else kwargs.pop(next((n for n in ("hidden_states", "x", "src") if n in kwargs)))
        seen.x, seen.args, seen.kwargs = x.clone(), args[1:], kwargs

    def after_first(module, args, output):
        seen.first = output

    def after(module, args, output):
        seen.y = tensor_of(output)

    undo.callback(stack.layers[0].register_forward_pre_hook(before, with_kwargs=True).remove)
    undo.callback(stack.layers[0].register_forward_hook(after_first).remove)
    undo.callback(stack.layers[-1].register_forward_hook(after).remove)


def run_model(model, inputs):
    """An encoder's call: of an encoder and a decoder, the encoder's."""
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False) and hasattr(model, "get_encoder"):
        model = model.get_encoder()
    if "use_cache" in inspect.signature(model.forward).parameters:
        inputs = {"use_cache": False, **inputs}
    return model(**inputs)
