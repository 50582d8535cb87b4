"""Gets a library for a stack: from the cache, or exported and built by the program."""

import functools
import importlib.util
import itertools
import json
import os
import sys
import threading
import warnings

import torch

from . import cache, precision, program

TYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def type_name(dtype):
    """"fp16" of torch.float16, or of the name itself."""
    if isinstance(dtype, str) and dtype in TYPES:
        return dtype
    names = {t: name for name, t in TYPES.items() if name != "tf32"}
    if not isinstance(dtype, torch.dtype) or dtype not in names:
        raise ValueError(f"dtype is {dtype}; expected {', '.join(TYPES)} or a torch.dtype of one of them")
    return names[dtype]


@functools.lru_cache(maxsize=None)
def _processor():
    """Of a CPU, whose code is compiled for it alone: its name and what it can do."""
    lines = set()
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith(("model name", "flags", "Features", "CPU part")):
                lines.add(line.strip())
    return sorted(lines)


def _device(device):
    if device.type == "cuda":
        return [torch.cuda.get_device_name(device), torch.cuda.get_device_capability(device)]
    return _processor()


def workload_words(stack, dtype, batches, lengths, mean_length=None):
    """The options of `fuseplan search` and `export` that say what is to be made fast.  mean_length: of tokens of a
    sequence, in calls with a mask; None: as many as there are places."""
    device = stack.place[0]
    target = device.type if device.index in (None, 0) else f"{device.type}:{device.index}"
    words = ["--target", target, "-t", dtype, "-b", ",".join(map(str, batches)), "-s", ",".join(map(str, lengths)),
             "-m", stack.mask, "-H", stack.heads, "-W", stack.head_size, "--hidden", stack.hidden,
             "--ffn", stack.ffn, "-L", len(stack.layers), "--eps", repr(stack.eps), "--norm", stack.norm,
             "--norm-kind", "rms" if stack.rms else "layer", "--activation", stack.activation]
    words += ["--gate"] * stack.gate + ["--rope", "10000"] * stack.family.rope  # Layers gets a table
    if stack.window:
        words += ["--local-mask", f"sliding:w={stack.window}", "--local-rope", "10000", "--global-every", stack.every]
    words += ["--score-bias"] * bool(stack.family.bias)
    return words + (["--avg-seq-len", mean_length] if mean_length else [])


def get(stack, dtype, shapes, time_limit=None, progress=True, search=None, mean_length=None, wish=None):
    """The module encoder.py of a library for the stack, and what the cache knows of it.

    shapes: (batch, seq_len) pairs; a library has a plan for each batch with each length.  time_limit: seconds of
    search, for a library for which so long was not searched; None: the best plans known, else default ones.  search:
    the pairs among the shapes that are searched for; None: all of them.  mean_length: see workload_words().  wish: see
    precision.Wish; what the cache knows then has "precision", the GEMMs in e4m3, and "calibration", a file."""
    batches, lengths = (sorted({shape[i] for shape in shapes}) for i in (0, 1))
    if mean_length is not None and not 1 <= mean_length <= lengths[0]:
        raise ValueError(f"mean_length is {mean_length}; expected 1 to {lengths[0]}, the shortest length of the shapes")
    words = workload_words(stack, dtype, batches, lengths, mean_length)
    request = cache.request_of(program=program.version(), device=_device(stack.place[0]), target=stack.place[0].type,
                               words=words[2:],  # of GPUs of one name any may have built it
                               **(wish.request() if wish else {}))
    found = cache.find(request)
    if not _is_enough(found, time_limit):
        with cache.lock(request):
            found = cache.find(request)  # another process may have built it meanwhile
            if not _is_enough(found, time_limit):
                parts = [workload_words(stack, dtype, [batch], [seq_len], mean_length)
                         for batch, seq_len in search or shapes]
                rows = _search(parts, time_limit, progress, wish) if time_limit else []
                about = wish.about(rows) if wish else {}
                found = cache.store(request, lambda path: _export(words + precision.words_of(about), path, progress),
                                    searched_s=time_limit if rows else 0, **about)
    return load(found[0]), found[1]


def _is_enough(found, time_limit):
    return found is not None and found[1].get("searched_s", 0) >= (time_limit or 0)


def _search(parts, time_limit, progress, wish):
    """Searches for each of the workloads; time_limit: in seconds, for all.  Of those for which plans were found, what
    precisions have."""
    found = []
    for i, words in enumerate(parts):
        which, limit = f"size {i + 1} of {len(parts)}", max(time_limit / len(parts), 1)
        try:
            with program.reported(f"fuseplan search, {which}", progress) as report:
                out = program.run("search", *words, *(wish.search_words() if wish else []), "--time-limit", limit,
                                  "--format", "json", "-q", progress=report)
            found.append(json.loads(out)["precisions"] if wish else [])
        except program.ProgramError as error:
            if error.status != program.NOTHING_KNOWN:
                raise
            warnings.warn(f"the search for {which} found no plan in {limit:g} s, and the best one known runs, or the "
                          "default one: give it a longer time_limit", stacklevel=2)
    return found


def _export(words, path, progress):
    """By the best plans known; where one is not, by the default one."""
    with program.reported("fuseplan export", progress) as report:
        if isinstance(report, program.Bar) and report.rewrites:  # in a log nothing would take the line back
            report.show("fuseplan export: builds the library")
        program.run("export", "best,default", *words, "--name", "encoder", "-o", path, "-q", "--build", "--packed")


_numbers = itertools.count()
_loaded = {}  # modules, by directory
_loading = threading.Lock()


def load(directory):
    """The module encoder.py beside a library.  A process loads a library once."""
    with _loading:
        if directory not in _loaded:
            name = f"fuseplan._library{next(_numbers)}"
            spec = importlib.util.spec_from_file_location(name, os.path.join(directory, "encoder.py"))
            sys.modules[name] = module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            module._use_torch()
            _loaded[directory] = module
        return _loaded[directory]
