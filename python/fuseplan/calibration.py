"""calibrate(), saturation(), write_rows(): what the program must know of real sentences, which it has no tokenizer
for."""

import contextlib
import json
import math
import os
import warnings

import numpy as np
import torch

from . import arguments, finder, probe
from .finder import Unsupported
from .pack import pack_layers
from .stack import Layers

TENSORS = ("x", "context", "norm1", "activation")  # the inputs of a layer's GEMMs: qkv, out, ffn1, ffn2
WEIGHTS = ("wqkv", "bqkv", "wo", "bo", "gamma1", "beta1", "w1", "b1", "w2", "b2")
VERSION = 2
MODELS = {torch.float16: "model", torch.bfloat16: "model_bf16"}  # keys of the weights' fingerprints, by what packs them
_BATCH = 64
_MOST, _SATURATED = 448, 1e-4  # of e4m3; a share of a tensor that is worth a warning


def calibrate(model, sentences, path, *, tokenizer=None):
    """Runs sentences through a model, and writes calibration.json for `fuseplan accuracy`: the scales by which the
    inputs of its GEMMs are stored in e4m3.  Returns what it wrote.

    model: a SentenceTransformer, or a HuggingFace model with its tokenizer; with PyTorch's own layers.
    sentences: some hundred strings, of the kind that the model will get."""
    sentences = as_strings("sentences", sentences)
    arguments.check_kind("path", path, (str, os.PathLike), "the name of the file to write")
    base, stack, *with_what = _open(model, tokenizer)
    seen, tokens = _see(base, stack, sentences, *with_what)
    models = {key: fingerprint(pack_layers(stack, dtype)) for dtype, key in MODELS.items()}
    found = {"version": VERSION, **models, "chain": stack.chain, "sentences": len(sentences), "tokens": tokens,
             "layers": [{name: one.summary() for name, one in of.items()} for of in seen]}
    write(path, (json.dumps(found, indent=1) + "\n").encode())
    return found


def saturation(model, sentences, path, *, tokenizer=None):
    """Counts what of sentences is beyond the range that a calibration gives e4m3, and warns where that is more than
    1e-4 of a GEMM's input.  Returns the shares, of each layer by the names of TENSORS.

    model: as that of calibrate().  path: the file of calibrate()."""
    sentences = as_strings("sentences", sentences)
    base, stack, *with_what = _open(model, tokenizer)
    check_whose(path, stack, path, half_of(None, stack))
    seen, _ = _see(base, stack, sentences, *with_what)
    shares = [{name: one.beyond(_MOST * scale) for (name, one), scale in zip(of.items(), scales)}
              for of, scales in zip(seen, scales_of(path))]
    for i, layer in enumerate(shares):
        for name, share in layer.items():
            if share > _SATURATED:
                warnings.warn(f"layer {i}: {share:.2g} of '{name}' is beyond e4m3's range; calibrate with sentences that "
                              "are more like these", stacklevel=2)
    return shares


def _see(base, stack, sentences, tokenizer, most):
    """What the inputs of GEMMs are, by layer and name, and how many tokens there were."""
    half = half_of(None, stack)
    seen = [{name: _Seen(f"layer {i}: {name}", half) for name in TENSORS} for i in range(len(stack.layers))]
    hooks, tokens = [], 0
    try:
        for i, of in enumerate(seen):
            for name, (module, *_) in zip(TENSORS, gemm_modules(stack, i)):
                hooks.append(module.register_forward_pre_hook(
                    lambda _, args, kwargs, one=of[name]: one.add(_first(args, kwargs)), with_kwargs=True))
        for batch in _batches(sentences, tokenizer, most):
            tokens += sum(len(ids) for _, ids in batch)
            _run(base, batch)
    finally:
        for hook in hooks:
            hook.remove()
    return seen, tokens


def write_rows(model, sentences, path, *, tokenizer=None):
    """Writes what a model's first layer gets of sentences, for `fuseplan accuracy --input`: a file of safetensors
    with rows (tokens,D), one sentence behind the other, and lengths (sentences)."""
    from safetensors.torch import save_file
    sentences = as_strings("sentences", sentences)
    arguments.check_kind("path", path, (str, os.PathLike), "the name of the file to write")
    base, stack, tokenizer, most = _open(model, tokenizer)
    rows, last = [None] * len(sentences), []

    def keep(_, args, kwargs):
        last.append(_first(args, kwargs).float().cpu())
        raise _Enough

    hook = stack.layers[0].register_forward_pre_hook(keep, with_kwargs=True)
    try:
        for batch in _batches(sentences, tokenizer, most):
            with contextlib.suppress(_Enough):
                _run(base, batch)
            for (place, _), row in zip(batch, last.pop().reshape(len(batch), -1, stack.hidden)):
                rows[place] = row
    finally:
        hook.remove()
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int32)
    save_file({"rows": torch.cat(rows).contiguous(), "lengths": lengths}, str(path))


class _Enough(Exception):
    """The layers need not run."""


def half_of(dtype, stack):
    """The half type beside e4m3: the one asked for; else the model's own, or fp16."""
    return torch.bfloat16 if (dtype or stack.place[1]) in ("bf16", torch.bfloat16) else torch.float16


class _Seen:
    """Counts the magnitudes of a tensor's values in a half type, of which there are less than 2^15."""

    def __init__(self, name, half):
        self.name, self.half = name, half
        self.counts, self.squares = torch.zeros(1 << 15, dtype=torch.int64), 0.0

    def add(self, t):
        bits = t.detach().abs().to(self.half).flatten().view(torch.int16).long()
        self.counts += torch.bincount(bits, minlength=1 << 15).cpu()
        self.squares += float(t.detach().double().square().sum())

    def _all(self):
        """How many there were, and the magnitude of each count."""
        n = int(self.counts.sum())
        if n == 0:
            raise Unsupported(f"{self.name}: no call of the model reached it")
        return n, torch.arange(1 << 15, dtype=torch.int16).view(self.half).double()

    def beyond(self, most):
        n, values = self._all()
        return int(self.counts[~(values <= most)].sum()) / n

    def summary(self):
        n, values = self._all()
        if int(self.counts[~values.isfinite()].sum()) > 0:
            raise Unsupported(f"{self.name} has values that are not finite in {self.half}, from which e4m3 is rounded: "
                              "calibrate the model in torch.bfloat16, whose numbers are larger")
        amax = float(values[int(self.counts.nonzero().max())])
        place = torch.searchsorted(self.counts.cumsum(0), math.ceil(0.9999 * n))
        return {"amax": amax, "quantile": float(values[place]), "rms": math.sqrt(self.squares / n),
                "scale": scale_of(amax)}


def power_of_two(amax, most):
    """As e4m3_scale() of the program: the least one by which amax becomes `most` or less; 1 for 0."""
    if amax == 0:
        return 1.0
    fraction, exponent = math.frexp(amax / most)
    return math.ldexp(1.0, exponent if fraction > 0.5 else exponent - 1)


def scale_of(amax):
    """Of a GEMM's input, as e4m3_input_scale() of the program: e4m3 ends at 448, twice as far; 2^-15 or more."""
    return max(power_of_two(amax, 224), 2.0 ** -15)


def _open(model, tokenizer):
    """The model in it, its only stack, the tokenizer, and the most tokens of a sentence."""
    base = finder.unwrap(model)
    finder.check_whole(base)
    if any(isinstance(module, Layers) for module in base.modules()):
        raise Unsupported("the model's layers are fuseplan's: call restore() first")
    stack = only_stack(base)
    tokenizer = tokenizer or (model.tokenizer if base is not model else None)
    if not callable(tokenizer):
        raise Unsupported(f"tokenizer is a {type(tokenizer).__name__}; expected one of transformers" if tokenizer else
                          f"the model is a {type(model).__name__}, without a tokenizer: give tokenizer=")
    limits = [getattr(model, "max_seq_length", None), probe.longest(base), tokenizer.model_max_length]
    return base, stack, tokenizer, min(limit for limit in limits if limit)


def recorder(model, sentences, tokenizer):
    """A function that gives calls of the model's only stack, see probe.Call."""
    base, stack, tokenizer, most = _open(model, tokenizer)
    batches = list(_batches(sentences, tokenizer, most))
    return lambda: [probe.record(base, [stack], lambda batch=batch: _run(base, batch))[0] for batch in batches]


def only_stack(base):
    stacks, _ = finder.find_stacks(base)
    if len(stacks) > 1:
        raise Unsupported(f"the model has layers at {' and '.join(stack.path for stack in stacks)}: give the part of "
                          "it that is meant")
    return stacks[0]


def gemm_modules(stack, i):
    """Lists of the modules that compute a layer's GEMMs, whose inputs are TENSORS."""
    for paths in (stack.family.qkv, stack.family.out, stack.family.up, stack.family.down):
        part = stack.part(i, paths)
        if isinstance(part, torch.nn.MultiheadAttention):
            raise Unsupported("a torch.nn.MultiheadAttention calls no module for its products, so that nothing shows "
                              "their inputs: give a model of transformers")
        yield part if isinstance(part, list) else [part]


def _first(args, kwargs):
    return next(value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor))


def as_strings(name, given):
    texts = arguments.strings_of(name, given)
    if not texts:
        raise ValueError(f"{name} is empty: give some hundred, of the kind that the model will get")
    return texts


def _batches(sentences, tokenizer, most):
    """Lists of (place, ids), of one length each: there is no padding, whose rows would be counted."""
    by_length = {}
    for place, ids in enumerate(tokenizer(sentences, truncation=True, max_length=most)["input_ids"]):
        if not ids:
            raise ValueError(f"the tokenizer makes no token of sentence {place}, {sentences[place]!r}: leave it out")
        by_length.setdefault(len(ids), []).append((place, ids))
    for same in by_length.values():
        for begin in range(0, len(same), _BATCH):
            yield same[begin:begin + _BATCH]


def _run(base, batch):
    device = next(base.parameters()).device
    ids = torch.tensor([ids for _, ids in batch], device=device)
    with torch.no_grad():
        probe.run_model(base, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})


# ---- files -----------------------------------------------------------------------------------------


def read(path, name, key="model"):
    """Whose a calibration is, and its scales, of each layer and GEMM."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        if found["version"] != VERSION:
            raise ValueError(f"it has version {found['version']!r}, not {VERSION}")
        if key not in found:
            raise ValueError(f"it has no '{key}', as those for plans in bf16 have: calibrate the model again")
        return found[key], [[float(layer[tensor]["scale"]) for tensor in TENSORS] for layer in found["layers"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"calibration: '{name}' is none that fuseplan.calibrate() wrote: {error!r}") from None


def check_whose(path, stack, name, half):
    model, scales = read(path, name, MODELS[half])
    if len(scales) != len(stack.layers):
        raise Unsupported(f"calibration: '{name}' has {len(scales)} layers, and the model {len(stack.layers)}: "
                          "calibrate this model")
    own = fingerprint(pack_layers(stack, half))
    if model != own:
        raise Unsupported(f"calibration: '{name}' is of the weights {model}, and the model's are {own}: it is of "
                          "another model: calibrate this one")


def scales_of(path):
    return read(path, path)[1]


# ---- whose weights these are -----------------------------------------------------------------------


def fingerprint(layers):
    """As trained_fingerprint() of the program computes it, from the weights of pack_layers() in a half type."""
    total = 0
    for i, layer in enumerate(layers):
        for number, name in enumerate(WEIGHTS):
            if name in layer:
                bits = layer[name].contiguous().cpu().view(torch.int16).numpy().view(np.uint16).ravel().astype(np.uint64)
                places = np.arange(bits.size, dtype=np.uint64) + np.uint64((i * 16 + number) << 40)
                total += int((_splitmix64(places) * bits).sum(dtype=np.uint64))
    return f"{total % 2 ** 64:016x}"


def _splitmix64(x):
    x = x + np.uint64(0x9e3779b97f4a7c15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
    return x ^ (x >> np.uint64(31))


def write(path, content):
    """A reader sees the whole file or the one before."""
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise
