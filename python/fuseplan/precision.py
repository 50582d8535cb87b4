"""GEMMs whose operands are e4m3, 8-bit floating-point numbers: which of them, by which scales, and what they lose."""

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import tempfile

import torch

from . import cache, calibration, finder, probe
from .finder import Unsupported

GEMMS = ("qkv", "out", "ffn1", "ffn2")  # whose inputs are calibration.TENSORS
_SHOWN = 64  # sentences on which errors are measured


@dataclasses.dataclass
class Wish:
    """What a library is to be like.  gemms: those in e4m3, as the program names them; "": a search chooses them, so
    that the error is at most `error`.  path: the calibration.  losses: of the model, as `fuseplan accuracy` prints
    them, in a file for such a search."""

    gemms: str
    path: str
    error: float = None
    losses: str = None

    def request(self):
        """What the cache knows it by."""
        return {"precision": self.gemms or self.error, "calibration": calibration.read(self.path, self.path)}

    def search_words(self):
        if self.gemms:
            return ["--precision", self.gemms]
        return ["--error", repr(self.error), "--accuracy", self.losses]

    def about(self, found):
        """Of a library of it, after searches; see choose()."""
        gemms = self.gemms or choose(found)
        return {"precision": gemms, "calibration": self.path} if gemms else {}


def words_of(about):
    """For `fuseplan export`."""
    return ["--precision", about["precision"], "--calibration", about["calibration"]] if about else []


def wish_of(about):
    """For another library with the same precision."""
    return Wish(about["precision"], about["calibration"]) if about.get("precision") else None


def names_of(gemms):
    return GEMMS if gemms == "fp8" else tuple(gemms.split(","))


def check(precision, given, error, time_limit, dtype):
    """Refuses what optimize() cannot take; returns the GEMMs as the program names them, or ""."""
    if precision is None and error is None:
        if given is not None:
            raise ValueError("calibration= has scales of e4m3: give precision= or error=, too")
        return ""
    if precision is not None and error is not None:
        raise ValueError("error= lets a search choose the GEMMs that precision= names: give one of them")
    if dtype not in (None, "fp16", torch.float16, "bf16", torch.bfloat16):
        raise ValueError(f"dtype is {dtype}; beside GEMMs in e4m3 all is fp16 or bf16: give one of these, or leave it "
                         "out")
    if given is None:
        raise ValueError("GEMMs in e4m3 have scales of the model's inputs: give calibration=, a list of sentences, or "
                         "the file that fuseplan.calibrate() wrote")
    if precision is not None:
        names = names_of(precision) if isinstance(precision, str) else ()
        if not names or not set(names) <= set(GEMMS) or len(set(names)) < len(names):
            raise ValueError(f"precision is {precision!r}; expected 'fp8', or of {', '.join(GEMMS)} those in e4m3 with "
                             "commas between")
        return "fp8" if len(names) == len(GEMMS) else ",".join(name for name in GEMMS if name in names)
    if not isinstance(error, (int, float)) or not 1e-6 <= error <= 1:
        raise ValueError(f"error is {error!r}; expected a number from 1e-6 to 1, such as 0.05")
    if not time_limit:
        raise ValueError("error= lets a search choose the GEMMs in e4m3: give time_limit=, too")
    if _is_path(given):
        raise ValueError("error= needs sentences, on which the errors are measured: give calibration= a list of them")
    return ""


def _is_path(given):
    return isinstance(given, (str, os.PathLike))


def check_place(stack):
    if stack.place[0].type != "cuda":
        raise Unsupported(f"GEMMs in e4m3 run on Hopper GPUs, and the model is on {stack.place[0]}: move it to one, or "
                          "leave out precision= and error=")


def make_wish(model, gemms, given, error, tokenizer, dtype):
    """model: with its own layers; with a tokenizer, or beside one."""
    stack = calibration.only_stack(finder.unwrap(model))
    half = calibration.half_of(dtype, stack)
    check_place(stack)
    if _is_path(given):
        with open(given, "rb") as file:
            text = file.read()
        path = _keep(text)
        calibration.check_whose(path, stack, given, half)
        return Wish(gemms, path)
    sentences = calibration.as_strings("calibration", given)
    with tempfile.TemporaryDirectory() as directory:
        made = os.path.join(directory, "calibration.json")
        calibration.calibrate(model, sentences, made, tokenizer=tokenizer)
        with open(made, "rb") as file:
            path = _keep(file.read())
    if gemms:
        return Wish(gemms, path)
    losses = losses_of(stack, calibration.recorder(model, sentences[:_SHOWN], tokenizer), calibration.scales_of(path), half)
    return Wish("", path, error, _keep(json.dumps(losses).encode()))


def _keep(text):
    """In the cache of libraries, whose manifests name it."""
    path = os.path.join(cache.directory(), hashlib.sha256(text).hexdigest()[:32] + ".e4m3.json")
    calibration.write(path, text)
    return path


# ---- the model's layers in PyTorch, with operands rounded to e4m3 -----------------------------------


def _round(t, scale, half):
    """Of what a half type stores."""
    codes = (t.to(half).float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
    return (codes.float() * scale).to(t.dtype)


def _weight_scale(parts, half):
    return calibration.power_of_two(max(float(part.weight.to(half).abs().max()) for part in parts), 448)


@contextlib.contextmanager
def rounded(stack, scales, gemms, half):
    """Inputs and weights of these GEMMs are rounded, in the layers themselves, from this type."""
    with contextlib.ExitStack() as undo:
        for i in range(len(stack.layers)):
            for gemm, parts in enumerate(calibration.gemm_modules(stack, i)):
                if GEMMS[gemm] not in gemms:
                    continue
                scale = _weight_scale(parts, half)
                for part in parts:
                    weight = part.weight.data
                    undo.callback(setattr, part.weight, "data", weight)
                    part.weight.data = _round(weight, scale, half)
                    hook = _rounder(scales[i][gemm], half)
                    undo.callback(part.register_forward_pre_hook(hook, with_kwargs=True).remove)
        yield


def _rounder(scale, half):
    return lambda _, args, kwargs: ((_round(args[0], scale, half), *args[1:]), kwargs)


def loss(want, got):
    """Of calls, the largest relative L2 distance."""
    return max(probe.distance(b.y, a.y, a.real) for a, b in zip(want, got))


def _squares(t):
    return float(t.square().sum())


def losses_of(stack, record, scales, half):
    """As `fuseplan accuracy` prints them, of each GEMM alone and of all.  record: gives calls of the model."""
    rows, want = [], record()
    for gemms in *((name,) for name in GEMMS), GEMMS:
        with rounded(stack, scales, gemms, half):
            got = record()
        error = math.sqrt(sum(_squares(b.y.double() - a.y.double()) for a, b in zip(want, got)) /
                          sum(_squares(a.y.double()) for a in want))
        rows.append({"precision": "fp8", "gemms": " ".join(gemms), "weight_scales": "tensor",
                     "beside": "bf16" if half is torch.bfloat16 else "fp16", "errors": [error]})
    return rows


def choose(found):
    """Of what searches of several sizes found, a list of rows each: the precision of the least mean time, "" for none.
    The mean is the geometric one, of precisions that have a plan of each size."""
    times = {}
    for rows in found:
        for row in rows:
            if row["median_ms"] is not None:
                times.setdefault(row["precision"], []).append(math.log(row["median_ms"]))
    means = {name: sum(logs) for name, logs in times.items() if len(logs) == len(found)}
    best = min(means, key=means.get) if means else ""
    return "" if best in ("fp16", "bf16") else best


