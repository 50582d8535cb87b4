"""The library as a PyTorch operator, in the place of model.encoder of a HuggingFace BertModel, or, on a CPU,
of NumPy's arrays.

    import transformers, encoder
    model = transformers.BertModel.from_pretrained(...).eval().half().cuda()
    encoder.encoder_from(model)
    model(**tokenizer(texts, padding=True, return_tensors="pt").to("cuda"))

Layers(weights) runs layers of any other model, y = layers(x): on weights that are tensors it takes tensors, on
arrays of NumPy arrays.  Without tensors and models PyTorch is not imported.  The operator behind both is
run(x, lengths, handle); it has a fake implementation, so that torch.compile and torch.export trace
through it.  The attention mask that the library was exported with holds in every layer, beside the
lengths.  libencoder.so must lie beside this file.
"""

import contextlib
import ctypes
import hashlib
import os
import re
import shlex
import struct
import sys
import threading
import weakref

_NAMES = ("wqkv", "bqkv", "wo", "bo", "gamma1", "beta1", "w1", "b1", "w2", "b2", "gamma2", "beta2")
_PRE, _RMS, _GATE, _ROPE, _SCORE_BIAS, _LOCAL = 1, 2, 4, 8, 16, 32  # bits of info.functions


class _Info(ctypes.Structure):
    _fields_ = [("generator", ctypes.c_char_p), ("target", ctypes.c_char_p),
                ("archs", ctypes.c_char_p), ("dtype", ctypes.c_int),
                ("element_bytes", ctypes.c_int), ("heads", ctypes.c_int),
                ("head_size", ctypes.c_int), ("hidden", ctypes.c_int), ("ffn", ctypes.c_int),
                ("layers", ctypes.c_int), ("eps", ctypes.c_double), ("plans", ctypes.c_int),
                ("seq_len", ctypes.c_int), ("functions", ctypes.c_uint), ("rope_theta", ctypes.c_double),
                ("rope_factor", ctypes.c_double), ("global_every", ctypes.c_int),
                ("local_rope_theta", ctypes.c_double), ("precision", ctypes.c_uint)]


class _Plan(ctypes.Structure):
    _fields_ = [("batch", ctypes.c_int), ("seq_len", ctypes.c_int), ("value", ctypes.c_int),
                ("kernels", ctypes.c_int), ("packed", ctypes.c_int), ("mask", ctypes.c_char_p),
                ("workload", ctypes.c_char_p), ("measured_on", ctypes.c_char_p)]


class _Weights(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in _NAMES]


class _Model(ctypes.Structure):
    _fields_ = [("heads", ctypes.c_int), ("head_size", ctypes.c_int), ("ffn", ctypes.c_int),
                ("dtype", ctypes.c_int), ("layers", ctypes.c_int), ("eps", ctypes.c_double),
                ("on_device", ctypes.c_int), ("weights", ctypes.POINTER(_Weights)),
                ("first_gamma", ctypes.c_void_p), ("first_beta", ctypes.c_void_p),
                ("rope_theta", ctypes.c_double), ("rope", ctypes.c_void_p),
                ("score_bias", ctypes.c_void_p), ("hidden", ctypes.c_int),
                ("rope_factor", ctypes.c_double), ("local_rope_theta", ctypes.c_double),
                ("local_rope", ctypes.c_void_p)]


_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libencoder.so")
_lib = ctypes.CDLL(_path)
_lib.encoder_describe.restype = ctypes.POINTER(_Info)
_lib.encoder_plan_at.restype = ctypes.POINTER(_Plan)
_lib.encoder_status_text.restype = ctypes.c_char_p
_lib.encoder_message.restype = ctypes.c_char_p
_lib.encoder_workspace_bytes.restype = ctypes.c_size_t
_lib.encoder_create.argtypes = [ctypes.POINTER(_Model), ctypes.POINTER(ctypes.c_void_p)]
_lib.encoder_destroy.argtypes = [ctypes.c_void_p]
_lib.encoder_run.argtypes = [ctypes.c_void_p, ctypes.c_char_p]

info = _lib.encoder_describe().contents
_device = info.target.decode()
_on_gpu = _device == "cuda"
_hidden = info.hidden
_mask = _lib.encoder_plan_at(0).contents.mask.decode()  # all plans have the same kind


def sizes():
    """(batch, seq_len) of each plan, smallest first."""
    plans = (_lib.encoder_plan_at(i).contents for i in range(info.plans))
    return [(p.batch, p.seq_len) for p in plans]


def _check(status):
    if status != 0:
        text = _lib.encoder_status_text(status).decode()
        raise RuntimeError(f"{text}: {_lib.encoder_message().decode()}")


# ---- PyTorch

torch = None  # until _use_torch() has imported it: at once where the program has, else with the first tensor or model
_loading = threading.Lock()


def _use_torch():
    """Imports PyTorch, and defines what there is with it alone."""
    global torch, _dtype, _stack, _tracing_state, _is_dynamo, _current_gpu, _raw_stream, _empty, run, Encoder
    with _loading:
        if torch is not None:
            return
        import torch
        _dtype = (torch.float32, torch.float32, torch.float16, torch.bfloat16)[info.dtype]  # tf32 is the second
        _stack = torch._C._len_torch_dispatch_stack
        _tracing_state = torch._C._get_tracing_state  # torch.nn.Module has just asked it
        _is_dynamo = torch.compiler.is_dynamo_compiling
        _current_gpu = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)
        _raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream",
                              lambda gpu: torch.cuda.current_stream(gpu).cuda_stream)
        # (sizes, strides, type): on the current GPU, without PyTorch's dispatcher.  The code that torch.compile
        # generates gets its memory so.
        _empty = getattr(torch._C._dynamo.guards, f"_empty_strided_{_device}",
                         lambda *a: torch.empty_strided(a[0], a[1], dtype=a[2], device=_device))
        run = _define_operator()
        Encoder = type("Encoder", (_Encoder, torch.nn.Module), {"__module__": __name__, "__doc__": _Encoder.__doc__})


def __getattr__(name):  # of this module
    if name not in ("run", "Encoder", "_dtype"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _use_torch()
    return globals()[name]


# ---- the operator

# A call that comes after a wait for the GPU finds none of its code in the host's caches.  Then a
# function costs more for being entered at all than for what it does.  So a call enters few, and these
# without the functions around them in Python.
_encoder_run = _lib.encoder_run
_call = struct.Struct("@iiPPPPPNPPPP").pack  # the bytes of a struct encoder_call


def _check_shape(x):
    if len(x.shape) != 3 or x.shape[2] != _hidden:
        raise ValueError(f"the input has the shape {tuple(x.shape)}; expected (B,S,{_hidden})")
    if 0 in x.shape:
        raise ValueError(f"the input has the shape {tuple(x.shape)}; expected at least one sequence and token")


def _check_input(x):
    if not (x.is_cuda if _on_gpu else x.is_cpu) or x.dtype != _dtype:
        raise TypeError(f"the input is {x.dtype} on {x.device}; the library takes {_dtype} on "
                        f"{_device}")
    _check_shape(x)
    if x.requires_grad and torch.is_grad_enabled():
        raise RuntimeError("the library computes no gradients; run under torch.no_grad()")


def _precision_words():
    gemms = [name for i, name in enumerate(("qkv", "out", "ffn1", "ffn2")) if info.precision >> i & 1]
    return ["--precision", ",".join(gemms), "--calibration", "calibration.json"] if gemms else []


def _export_line(seq_len):
    """The command that exports a library like this one, with sequences of this length too."""
    plans = [_lib.encoder_plan_at(i).contents for i in range(info.plans)]
    plan, masks = plans[-1], {p.mask.decode() for p in plans}
    batches, seq_lens = ({size[i] for size in sizes()} for i in (0, 1))
    if _mask.startswith("file:"):
        masks, seq_lens = {f"file:mask_{seq_len}.npy"}, set()  # a file is of one length
    kind = _mask.split(":")[0]  # whose parameters follow from the length if they differ
    words = ["fuseplan", "export", plan.value, "--target", _device]
    words += ["--arch", info.archs.decode()] if _on_gpu else []
    words += ["-t", ("fp32", "tf32", "fp16", "bf16")[info.dtype],
              "-b", ",".join(map(str, sorted(batches))),
              "-s", ",".join(map(str, sorted(seq_lens | {seq_len}))), "-m",
              masks.pop() if len(masks) == 1 else kind,
              "-H", info.heads, "-W", info.head_size, "--hidden", _hidden, "--ffn", info.ffn, "-L", info.layers,
              "--eps", info.eps, *(["--packed"] if plan.packed else []), *_precision_words(),
              "--name", "encoder", "-o", f"encoder_{seq_len}", "--build"]
    return shlex.join(map(str, words))


def _find_piece(batch, seq_len):
    """How many sequences of a batch run at once: all, or as many as the largest plan takes."""
    if batch < 1 or seq_len < 1 or _lib.encoder_workspace_bytes(batch, seq_len) > 0:
        return batch
    batches = [b for b, s in sizes() if s >= seq_len]
    if not batches:
        raise ValueError(f"the sequences have {seq_len} tokens; the library's plans have at most "
                         f"{max(s for _, s in sizes())}: shorten them, or export a library with "
                         f"'{_export_line(seq_len)}'")
    return max(batches)


_SHAPES = 1024  # whose layouts are kept at most
_layouts = {}  # by shape: (batch, seq_len, sizes, strides, sequences at once, bytes of workspace)


def _prepare(x):
    """Refuses x, or returns it contiguous and aligned, with the layout that is kept for its shape."""
    _check_input(x)
    if not x.is_contiguous() or x.data_ptr() % 16 != 0:
        x = x.clone(memory_format=torch.contiguous_format)
    if len(_layouts) >= _SHAPES:
        _layouts.clear()
    batch, seq_len, width = x.shape
    piece = _find_piece(batch, seq_len)
    # at least 1 byte, so that encoder_run() is called and says why a size cannot run
    layout = _layouts[x.shape] = (batch, seq_len, (batch, seq_len, width),
                                  (seq_len * width, width, 1), piece,
                                  _lib.encoder_workspace_bytes(piece, seq_len) or 1)
    return x, layout


class _Thread(threading.local):
    def __init__(self):
        self.workspaces = {}  # by GPU (-1: the CPU), of its default stream: (bytes, address, tensor)


_thread = _Thread()


def _new_workspace(x, size, gpu, stream):
    """Memory that no other call uses at the same time.  A thread's calls in one stream run one after
    another, so they can share it: that saves the microseconds in which PyTorch gives a new one.
    Other streams than the default one may be captured, may end, or may allocate from the memory of
    CUDA graphs, in which PyTorch finds what is kept and refuses it: their calls take a new one."""
    tensor = x.new_empty(size, dtype=torch.uint8)
    workspace = size, tensor.data_ptr(), tensor
    if stream == 0:
        _thread.workspaces[gpu] = workspace
    return workspace


def _address_lengths(x, lengths):
    """Contiguous lengths, their address on the host, that on the GPU, and that of a mask; 0 where they are not."""
    if lengths.dim() == 2:
        return _address_mask(x, lengths)
    if (lengths.dtype != torch.int32 or lengths.shape != x.shape[:1] or
            lengths.device not in (x.device, torch.device("cpu"))):
        raise ValueError(f"the lengths are {lengths.dtype} {tuple(lengths.shape)} on "
                         f"{lengths.device}; expected torch.int32 ({x.shape[0]},) on {x.device} or "
                         "on the CPU")
    lengths = lengths.contiguous()
    address = lengths.data_ptr()
    return (lengths, 0, address, 0) if lengths.is_cuda else (lengths, address, 0, 0)


def _address_mask(x, mask):
    if mask.dtype != torch.int64 or mask.shape != x.shape[:2] or not mask.is_cuda or mask.device != x.device:
        raise ValueError(f"the mask is {mask.dtype} {tuple(mask.shape)} on {mask.device}; expected torch.int64 "
                         f"{tuple(x.shape[:2])} on {x.device}, a GPU")
    mask = mask.contiguous()
    return mask, 0, 0, mask.data_ptr()


def _run(x, lengths, handle, outputs=0):
    """x (B,S,D) through all layers.  lengths: (B) int32, on the CPU or, unchecked, on x's device;
    or on a GPU, where plans are packed, a mask (B,S) int64, 0 where no token is; None: all S.  Rows
    of the result that are no token's are 0.  outputs: an address, see encoder.h."""
    layout = _layouts.get(x.shape)
    gpu = x.get_device()  # -1: none
    address = x.data_ptr()  # 0: none
    if (layout is None or x.dtype is not _dtype or (gpu >= 0) is not _on_gpu or x.requires_grad or
            not x.is_contiguous() or address == 0 or address % 16 != 0):
        x, layout = _prepare(x)
        address = x.data_ptr()
    batch, seq_len, sizes, strides, piece, size = layout
    if piece < batch:
        return _run_pieces(x, lengths, handle, piece)
    stream = 0
    if _on_gpu:
        if gpu != _current_gpu():
            with torch.cuda.device(gpu):
                return _run(x, lengths, handle, outputs)
        stream = _raw_stream(gpu)
    workspace = _thread.workspaces.get(gpu) if stream == 0 else None
    if workspace is None or workspace[0] < size:
        workspace = _new_workspace(x, size, gpu, stream)
    host = device = mask = 0  # where lengths lie
    if lengths is not None:
        lengths, host, device, mask = _address_lengths(x, lengths)
    y = _empty(sizes, strides, _dtype)
    status = _encoder_run(handle, _call(batch, seq_len, address, y.data_ptr(), host, device,
                                        workspace[1], size, stream, 0, outputs, mask))
    if status != 0:
        _check(status)
    return y


def _check_each_length(lengths, seq_len):
    for i, length in enumerate(lengths.tolist()):
        if not 1 <= length <= seq_len:
            raise ValueError(f"length {i} is {length}; expected 1 to the sequence length {seq_len}")


def _run_pieces(x, lengths, handle, piece):
    """_run() of a batch larger than the largest plan: pieces of it, one after another."""
    parts = [None] * x.shape[0] if lengths is None else _address_lengths(x, lengths)[0].split(piece)
    if lengths is not None and lengths.is_cpu:
        _check_each_length(lengths, x.shape[1])
    return torch.cat([_run(part, real, handle) for part, real in zip(x.split(piece), parts)])


def _fake(x, lengths, handle):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _hash_library():
    """Differs between the libraries of a process.  Copies of a file are loaded as several libraries;
    a file that two modules load is one."""
    with open(_path, "rb") as file:
        place = os.fstat(file.fileno())
        text = file.read() + b" %d %d" % (place.st_dev, place.st_ino)
    return hashlib.blake2b(text, digest_size=8).hexdigest()


_space = "encoder_" + _hash_library()


def _define_operator():
    if not hasattr(getattr(torch.ops, _space), "run"):  # else another module has loaded this library
        # torch.library.custom_op would take some microseconds more in each call.
        torch.library.define(f"{_space}::run", "(Tensor x, Tensor? lengths, SymInt handle) -> Tensor",
                             tags=(torch.Tag.pt2_compliant_tag,))
        torch.library.impl(f"{_space}::run", _device, _run)
        torch.library.register_fake(f"{_space}::run", _fake)
    return getattr(torch.ops, _space).run


# ---- arrays of NumPy, on a CPU


def _is_array(what, t):
    """Whether t is an array of NumPy; else it is a tensor of PyTorch.  Who has one has imported its module."""
    numpy, pytorch = sys.modules.get("numpy"), sys.modules.get("torch")
    if pytorch is not None and isinstance(t, pytorch.Tensor):
        return False
    if numpy is None or not isinstance(t, numpy.ndarray):
        raise TypeError(f"{what} is of type {type(t).__name__}; expected a tensor of PyTorch" +
                        ("" if _on_gpu else " or an array of NumPy"))
    if _on_gpu:
        raise TypeError(f"{what} is an array of NumPy, and the library is for GPUs: give it tensors of PyTorch on "
                        "one, or export a library with --target cpu")
    return True


def _check_array(what, t, dtype):
    if not _is_array(what, t) or t.dtype != dtype:
        raise TypeError(f"{what} is {t.dtype}; expected {dtype} in an array of NumPy, as the weights are arrays")


def _new_array_workspace(numpy, size):
    memory = numpy.empty(size + 63, "uint8")
    workspace = _thread.workspaces[-1] = size, memory.ctypes.data + -memory.ctypes.data % 64, memory
    return workspace


def _run_array(x, lengths, handle):
    """_run() of arrays."""
    numpy = sys.modules["numpy"]
    _check_array("the input", x, "float32")
    _check_shape(x)
    batch, seq_len = x.shape[:2]
    if lengths is not None:
        _check_array("lengths", lengths, "int32")
        if lengths.shape != (batch,):
            raise ValueError(f"lengths has the shape {lengths.shape}; expected ({batch},)")
        _check_each_length(lengths, seq_len)
        lengths = numpy.ascontiguousarray(lengths)
    piece = _find_piece(batch, seq_len)
    if piece < batch:
        parts = [slice(at, at + piece) for at in range(0, batch, piece)]
        return numpy.concatenate([_run_array(x[part], None if lengths is None else lengths[part], handle)
                                  for part in parts])
    if not x.flags.c_contiguous or x.ctypes.data % 16 != 0:
        x = x.copy()
    size = _lib.encoder_workspace_bytes(batch, seq_len) or 1  # as in _prepare()
    workspace = _thread.workspaces.get(-1)
    if workspace is None or workspace[0] < size:
        workspace = _new_array_workspace(numpy, size)
    y = numpy.empty(x.shape, "float32")
    _check(_encoder_run(handle, _call(batch, seq_len, x.ctypes.data, y.ctypes.data,
                                      0 if lengths is None else lengths.ctypes.data, 0,
                                      workspace[1], size, 0, 0, 0, 0)))
    return y


# ---- layers


def _shapes():
    """Of a layer's weights, in the order of _NAMES; matrices are (in, out)."""
    d, a, f = _hidden, info.heads * info.head_size, info.ffn
    w1 = f * (2 if info.functions & _GATE else 1)
    return ((d, 3 * a), (3 * a,), (a, d), (d,), (d,), (d,), (d, w1), (w1,), (f, d), (d,), (d,), (d,))


def _check_weight(what, t, dtype, shape, place):
    """place: of tensors; None: t should be an array."""
    found = None if _is_array(what, t) else t.device
    if t.dtype != dtype or tuple(t.shape) != shape or found != place or (found and found.type != _device):
        raise ValueError(f"{what} is {t.dtype} {tuple(t.shape)} on {found or 'cpu'}; expected {dtype} {shape}, "
                         f"and all weights on one {_device} device")
    if not (torch if found else sys.modules["numpy"]).isfinite(t).all():
        raise ValueError(f"{what} has values that are NaN or infinite in {dtype}; expected finite ones: "
                         "check the file of weights, or export a library of a type that holds them")


def _to_contiguous(what, t):
    return sys.modules["numpy"].ascontiguousarray(t) if _is_array(what, t) else t.contiguous()


def _take_layer(i, layer):
    """The weights of a layer, contiguous, by name."""
    names = [n for n in _NAMES if not (info.functions & _RMS and n.startswith("beta"))]
    found = list(layer.keys()) if hasattr(layer, "keys") else []
    if not set(names) <= set(found):
        raise ValueError(f"layer {i} is a {type(layer).__name__} with {', '.join(map(str, found)) or 'no names'}; "
                         f"expected a dict with {', '.join(names)}")
    return {name: _to_contiguous(f"{name} of layer {i}", layer[name]) for name in names}


def _check_shared(shared, dtype, float32, place):
    """What all layers share: contiguous tensors by name, without what is None."""
    norm, d = info.functions & _PRE, (_hidden,)
    may = {"first_gamma": (norm, dtype, d), "first_beta": (norm and not info.functions & _RMS, dtype, d),
           "rope": (info.functions & _ROPE, float32, (info.seq_len, info.head_size)),
           "local_rope": (info.functions & _ROPE and info.functions & _LOCAL, float32,
                          (info.seq_len, info.head_size)),
           "score_bias": (info.functions & _SCORE_BIAS, float32, (info.heads, 2 * info.seq_len - 1))}
    shared = {name: _to_contiguous(name, t) for name, t in shared.items() if t is not None}
    for name, t in shared.items():
        has, of, shape = may[name]
        if not has:
            raise ValueError(f"{name} is given; the library's layers have none: see encoder.h")
        _check_weight(name, t, of, shape, place)
    return shared


class Layers:
    """The library's layers on weights of yours: y = layers(x, lengths), x and y (B,S,D).  Rows of x
    past a length may hold anything; those of y are 0.  All are tensors, or for a library of the target cpu all
    arrays of NumPy.

    weights: of each layer wqkv (D,3A), bqkv, wo (A,D), bo, gamma1, beta1, w1 (D,F), b1,
    w2 (F,D), b2, gamma2 and beta2, by name, of the library's type and on its device.  The columns of
    wqkv are those of q, k and v, each head by head; those of a gate's w1 (D,2F) and b1 (2F) alternate,
    activated ones first.  RMS norms have no beta.  All are copied.  eps is that of the norms.
    Where norms stand before, first_gamma and first_beta (D) are those of the norm in front, and y is
    not normalised.  rope_theta and rope_factor are those of rotary embeddings, in the place of which rope
    (S,W), or of score biases score_bias (H,2S-1), may be fp32 tables, as encoder.h says; S is that of the
    longest plan.  local_rope_theta and local_rope are those of local layers.
    A CUDA graph that captured a call needs the layers as long as it is replayed."""

    def __init__(self, weights, eps=info.eps, *, first_gamma=None, first_beta=None,
                 rope_theta=info.rope_theta, rope_factor=info.rope_factor, rope=None, score_bias=None,
                 local_rope_theta=info.local_rope_theta, local_rope=None):
        layers = [_take_layer(i, layer) for i, layer in enumerate(weights)]
        if not layers:
            raise ValueError("the weights are those of no layer; expected one or more")
        first = layers[0]["wqkv"]
        if _is_array("wqkv", first):
            dtype = float32 = "float32"  # of all libraries for CPUs
            place, operator, address = None, _run_array, lambda t: t.ctypes.data
        else:
            _use_torch()
            dtype, float32, place, operator, address = _dtype, torch.float32, first.device, run, torch.Tensor.data_ptr
        for i, layer in enumerate(layers):
            for name, shape in zip(_NAMES, _shapes()):
                if name in layer:
                    _check_weight(f"{name} of layer {i}", layer[name], dtype, shape, place)
        shared = _check_shared({"first_gamma": first_gamma, "first_beta": first_beta, "rope": rope,
                                "score_bias": score_bias, "local_rope": local_rope}, dtype, float32, place)
        pointers = (_Weights * len(layers))(*[_Weights(**{n: address(t) for n, t in l.items()})
                                              for l in layers])
        model = _Model(info.heads, info.head_size, info.ffn, info.dtype, len(layers), eps,
                       int(_on_gpu), pointers, rope_theta=rope_theta, hidden=_hidden,
                       rope_factor=rope_factor, local_rope_theta=local_rope_theta,
                       **{name: address(t) for name, t in shared.items()})
        handle = ctypes.c_void_p()
        with torch.cuda.device(place) if _on_gpu else contextlib.nullcontext():
            if _on_gpu:
                torch.cuda.synchronize()  # the copies may be under way in another stream
            _check(_lib.encoder_create(ctypes.byref(model), ctypes.byref(handle)))
        # Modules of one name may replace each other, and torch.compile looks names up in the last one.
        self.run, self.handle, self.count = operator, handle.value, len(layers)
        self._end = weakref.finalize(self, _lib.encoder_destroy, handle)

    def __reduce__(self):  # a copy's handle would end with these layers
        raise TypeError("the library's layers cannot be copied or pickled; make them anew from the model")

    def __call__(self, x, lengths=None):
        return self.run(x, lengths, self.handle)

    def each(self, x, lengths=None):
        """The outputs of all layers, as a list of tensors like y, which is the last."""
        _check_input(x)
        piece = _find_piece(x.shape[0], x.shape[1])
        if piece < x.shape[0]:
            parts = [None] * x.shape[0] if lengths is None else lengths.split(piece)
            found = [self.each(part, real) for part, real in zip(x.split(piece), parts)]
            return [torch.cat(one) for one in zip(*found)]
        outputs = x.new_empty((self.count - 1, *x.shape))
        y = _run(x, lengths, self.handle, outputs.data_ptr())
        return [*outputs, y]


# ---- attention masks


def _read_mask(mask):
    """(B,S) on the CPU, whether an attention mask keeps a token.  Waits for the GPU."""
    if not isinstance(mask, torch.Tensor):
        raise ValueError(f"the attention mask is a {type(mask).__name__}; expected a tensor: load the "
                         "model with attn_implementation='sdpa'")
    added = mask.is_floating_point() and mask.dim() == 4  # to the scores: 0 keeps a token
    rows = mask
    if mask.dim() == 4:
        kept = mask == 0 if added else mask != 0
        if mask.shape[1] != 1 or not torch.equal(kept, kept[:, :, :1].expand_as(kept)):
            raise ValueError("the attention mask differs between heads or queries; the library takes "
                             "padding, and the mask that it was exported with: pass a mask (B,S)")
        rows = mask[:, 0, 0]
    if rows.dim() != 2:
        raise ValueError(f"the attention mask has the shape {tuple(mask.shape)}; expected (B,S), "
                         "(B,1,1,S) or (B,1,S,S)")
    rows = rows.cpu()
    kept = rows == 0 if added else rows != 0
    if not (kept | (rows <= -1e4) if added else ~kept | (rows == 1)).all():
        raise ValueError("the attention mask has values other than " +
                         ("0 and those of at most -10000; the library adds none to scores: pass a mask "
                          "(B,S) of 1 and 0" if added else "1 and 0; pass 1 for each token to keep"))
    return kept


def _count_tokens(kept):
    """The lengths (B), and whether all padding is on the right."""
    lengths = kept.sum(1, dtype=torch.int32)
    if (lengths < 1).any():
        raise ValueError(f"sequence {int(lengths.argmin())} of the attention mask has no token; expected "
                         "at least one in each: leave such sequences out")
    return lengths, torch.equal(kept, torch.arange(kept.shape[1]) < lengths[:, None])


# ---- a model

# Their layers are the library's: residuals before layernorms, no position in attention.
_LAYERS = ("BertLayer", "RobertaLayer", "XLMRobertaLayer", "CamembertLayer", "ElectraLayer")
_MODULES = ("transformers.models.", "transformers.activations", "torch.nn.modules.")
_CONFIG = {"num_attention_heads": info.heads, "hidden_size": _hidden, "intermediate_size": info.ffn,
           "hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False,
           "add_cross_attention": False, "is_causal": _mask == "causal", "pruned_heads": {}}


def _check_config(config):
    for name, runs in _CONFIG.items():
        found = getattr(config, name, None)
        if found is not None and found != runs:
            raise ValueError(f"config.{name} is {found!r}; the library runs {runs!r}: " +
                             ("export one of the model's sizes" if isinstance(runs, int) and
                              not isinstance(runs, bool) else "run this model in PyTorch"))


def _check_calls(name, module):
    """Refuses what is called beside a module's own code, or in its place."""
    hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
    if not all(getattr(hook, "__module__", "").startswith("transformers.") for hook in hooks):
        raise ValueError(f"{name} has a hook, which the library would not call: remove the model's hooks")
    if "forward" in vars(module):
        raise ValueError(f"{name} has a forward() of its own, which the library would not call: load the "
                         "model without what replaces it")


def _check_parts(i, layer):
    """Refuses other functions than BERT's between the weights."""
    act, scale = layer.intermediate.intermediate_act_fn, getattr(layer.attention.self, "scaling", None)
    if type(act).__name__ not in ("GELUActivation", "GELU") or getattr(act, "approximate", "none") != "none":
        raise ValueError(f"layer {i}: intermediate_act_fn is {act}; the library runs gelu with erf: run this "
                         "model in PyTorch")
    if scale is not None and abs(scale * info.head_size ** 0.5 - 1) > 1e-6:
        raise ValueError(f"layer {i}: attention.self.scaling is {scale}; the library runs "
                         f"{info.head_size ** -0.5}: run this model in PyTorch")
    for name, part in ("attention.output", layer.attention.output), ("output", layer.output):
        if not isinstance(part.LayerNorm, torch.nn.LayerNorm):
            raise ValueError(f"layer {i}: {name}.LayerNorm is a {type(part.LayerNorm).__name__}; the library "
                             "runs LayerNorm: run this model in PyTorch")
    for name, module in layer.named_modules():
        if getattr(module, "bias", 0) is None:
            raise ValueError(f"layer {i}: {name} has no bias; the library adds one: give it zeros")


def _check_layer(i, layer, place, eps):
    """Refuses what would compute something else than weights and biases of the library's layers do."""
    if type(layer).__name__ not in _LAYERS:
        raise ValueError(f"layer {i} is a {type(layer).__name__}; the library runs {', '.join(_LAYERS)}: "
                         "run this model in PyTorch, or give its weights to Layers()")
    for name, module in layer.named_modules():
        kind = type(module)
        if not kind.__module__.startswith(_MODULES):
            raise ValueError(f"layer {i}: {name or 'it'} is a {kind.__module__}.{kind.__qualname__}; "
                             "expected PyTorch's and transformers' own modules: merge adapters by "
                             "merge_and_unload(), and load without quantization_config")
        _check_calls(f"layer {i}: {name or 'it'}", module)
        if isinstance(module, torch.nn.LayerNorm) and module.eps != eps:
            raise ValueError(f"layer {i}: {name} has eps {module.eps}; config.layer_norm_eps is {eps}, and "
                             "the library takes one for all: make them equal")
    floats = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    for name, t in layer.named_parameters():
        if type(t.detach()) is not torch.Tensor or t.dtype not in floats:
            raise ValueError(f"layer {i}: {name} is {t.dtype} in a {type(t.detach()).__name__}; expected "
                             "fp32, fp16 or bf16 in a Tensor: load without quantization_config")
        if t.device != place:
            raise ValueError(f"layer {i}: {name} is on {t.device}, and the model on {place}; the library's "
                             "layers run on one device: load the model without device_map")


def _pack(model):
    """The weights of each layer by name, as the library takes them."""
    layers = []
    for layer in model.encoder.layer:
        self_, out = layer.attention.self, layer.attention.output
        qkv = (self_.query, self_.key, self_.value)
        tensors = (torch.cat([p.weight for p in qkv]).t(), torch.cat([p.bias for p in qkv]),
                   out.dense.weight.t(), out.dense.bias, out.LayerNorm.weight, out.LayerNorm.bias,
                   layer.intermediate.dense.weight.t(), layer.intermediate.dense.bias,
                   layer.output.dense.weight.t(), layer.output.dense.bias,
                   layer.output.LayerNorm.weight, layer.output.LayerNorm.bias)
        layers.append({name: t.detach().to(_dtype) for name, t in zip(_NAMES, tensors)})
    return layers


_UNPADDED = ("the input holds several sequences without padding ({}), and attention would cross them; "
             "expected (B,S,D) with padding: load the model with attn_implementation='sdpa'")
_OUTPUTS = ("{} is set; the library keeps neither attentions nor hidden states of layers: ask for neither, "
            "in the call and in model.config")
_CACHE = "{} is given; the library keeps no keys and values: pass use_cache=False and no past_key_values"
_ARGUMENTS = {"output_attentions": _OUTPUTS, "output_hidden_states": _OUTPUTS, "use_cache": _CACHE,
              "past_key_values": _CACHE, "cu_seq_lens_q": _UNPADDED, "cu_seq_lens_k": _UNPADDED,
              "max_length_q": _UNPADDED, "max_length_k": _UNPADDED, "seq_idx": _UNPADDED}
_HARMLESS = ("cache_position", "num_items_in_batch")
_TOKEN_HEADS = ("ForTokenClassification", "ForMaskedLM", "ForQuestionAnswering")  # each reads a token's own row
_CHANGED = "; parts in front of the layers may have changed, so make the model anew"


def _hide_pooled(pooler, arguments, pooled):
    """A hook of a pooler, which reads the row of token 0."""
    padding = None if _is_dynamo() else getattr(arguments[0], "first_is_padding", None)
    return pooled if padding is None else pooled.masked_fill(padding, float("nan"))


class _Encoder:  # Encoder is it and a torch.nn.Module
    """All layers of a BertModel in eval mode.  lengths: set it to an int32 tensor (B) on the device of
    x to give lengths unchecked, under capture or tracing; then the attention mask is not read."""

    def __init__(self, model, check_mask=True, head=None):
        super().__init__()
        from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions
        self._output, self._config = BaseModelOutputWithPastAndCrossAttentions, model.config
        self._fields = vars(model.config)  # without the functions around them
        self.layers = Layers(_pack(model), model.config.layer_norm_eps)
        self.run, self.handle = self.layers.run, self.layers.handle
        self.check_mask, self.lengths = check_mask, None
        self._place = next(model.parameters()).device
        # Who reads the row of token 0, which may be padding: a head, and what it then computes is refused;
        # the pooler, and what it then gives is NaN, as nobody may use it.
        self._head = head
        if getattr(model, "pooler", None) is not None:
            model.pooler.register_forward_hook(_hide_pooled)

    # What PyTorch does to a module's weights cannot be done to the library's.

    def _apply(self, fn, *args, **kwargs):
        moved = fn(torch.empty(1, dtype=_dtype, device=self._place))
        if moved.dtype != _dtype or moved.device != self._place:
            raise RuntimeError(f"the model's layers are the library's, and stay {_dtype} on {self._place}; "
                               f"{moved.dtype} on {moved.device} was asked for: convert or move a model "
                               "before encoder_from()" + _CHANGED)
        return super()._apply(fn, *args, **kwargs)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        if not keep_vars:  # torch.export looks for what is there
            raise RuntimeError("the model's layers are the library's, and a state dict would lack them: "
                               "save the model before encoder_from()")

    def _load_from_state_dict(self, *args):
        raise RuntimeError("the model's layers are the library's, and keep the weights that they have: load "
                           "others before encoder_from()" + _CHANGED)

    def _lengths(self, x, mask):
        """The lengths, and where tokens lie: real ones first, (B,S) places; None: they do already."""
        if not self.check_mask or torch.compiler.is_compiling() or (
                x.is_cuda and torch.cuda.is_current_stream_capturing()):
            raise ValueError("an attention mask cannot be checked here; set model.encoder.lengths to an "
                             "int32 tensor (B) on the device, or pass no attention mask")
        kept = _read_mask(mask)
        if kept.shape != x.shape[:2]:
            raise ValueError(f"the attention mask is for {tuple(kept.shape)} tokens; the input has "
                             f"{tuple(x.shape[:2])}: pass a mask (B,S) of the input's size")
        lengths, right = _count_tokens(kept)
        if right:
            return lengths, None
        if _mask != "full":
            raise ValueError(f"the attention mask has gaps or padding on the left; layers of the mask '{_mask}' "
                             "take padding on the right of real tokens: set tokenizer.padding_side='right'")
        if self._head is not None and not kept[:, 0].all():
            raise ValueError(f"token 0 of sequence {int(kept[:, 0].int().argmin())} is padding, and the head of a "
                             f"{self._head} may read it: set tokenizer.padding_side='right'")
        return lengths, kept.int().argsort(dim=1, descending=True, stable=True).to(x.device)

    def _refuse(self, name, value, x):
        """An argument that is given, unless it changes nothing."""
        if name == "position_ids":  # they act in the embeddings; flash attention parts sequences by them
            if x.shape[0] == 1 and "flash" in str(self._config._attn_implementation):
                raise ValueError(_UNPADDED.format(name))
        elif name == "is_causal":
            if value != (_mask == "causal"):
                raise ValueError(f"is_causal is {value}; the library was exported with the mask '{_mask}': "
                                 "pass none, or export with -m causal")
        elif name not in _HARMLESS and not (
                isinstance(value, (list, tuple)) and all(part is None for part in value)):
            raise ValueError(_ARGUMENTS.get(name, "{} is given; the library's layers have none: pass none")
                             .format(name))

    def _refuse_outputs(self, kwargs, x):
        """transformers 5 hands over what a call asks for, and not what the config does."""
        for name in "output_hidden_states", "output_attentions":
            if name not in kwargs and getattr(self._config, name, False):
                self._refuse(name, True, x)

    def forward(self, hidden_states, attention_mask=None, *args, return_dict=True, **kwargs):
        x, lengths, order = hidden_states, self.lengths, None
        if self.training:
            raise ValueError("the model is in training mode; the library has no dropout: call model.eval()")
        for value in args:
            if value is not None:
                self._refuse("a third argument by position (head_mask)", value, x)
        for name, value in kwargs.items():
            if value is not None and value is not False:
                self._refuse(name, value, x)
        if self._fields.get("output_hidden_states") or self._fields.get("_output_attentions"):
            self._refuse_outputs(kwargs, x)
        if lengths is None and attention_mask is not None:
            lengths, order = self._lengths(x, attention_mask)
        if order is not None:
            order = order[:, :, None].expand_as(x)
            x = x.gather(1, order)
        # where PyTorch traces, counts or transforms operators, it must see this one
        if _is_dynamo() or type(x) is not torch.Tensor or _stack() != 0 or _tracing_state():
            _check_input(x)
            y = self.run(x, lengths, self.handle)
        else:
            y = _run(x, lengths, self.handle)  # as PyTorch would, in a few microseconds less
        if order is not None:
            y = torch.empty_like(y).scatter_(1, order, y)
            y.first_is_padding = order[:, 0, :1] != 0  # for _hide_pooled()
        return self._output(last_hidden_state=y) if return_dict else (y,)


def _check_plan_mask(found, named):
    """Refuses plans of the mask `found`, "strided:t=8", unless it is named so or by its kind, "strided"."""
    if named not in (found, found.split(":")[0]):
        raise ValueError(f"the library was exported with the attention mask '{found}', which is not "
                         f"'{named}'; BERT attends to all tokens: export without -m, or call "
                         f"encoder_from(model, mask='{found}') to change what the model computes")


def _find_base(model):
    """The model with the layers: itself, or what a model with a head has."""
    from transformers import PreTrainedModel
    if not isinstance(model, PreTrainedModel):
        raise ValueError(f"the model is a {type(model).__module__}.{type(model).__qualname__}; expected a "
                         "transformers model: merge_and_unload() of one with adapters, [0].auto_model of a "
                         "SentenceTransformer, .model of a CrossEncoder, and no compiled one")
    base = getattr(model, model.base_model_prefix, model)
    try:
        base.encoder.layer
    except AttributeError:
        raise ValueError(f"the {type(model).__name__} has no list encoder.layer; the library runs BERT's "
                         "layers: give the weights of others to Layers()") from None
    return base


def encoder_from(model, check_mask=True, mask="full"):
    """Replaces model.encoder of a HuggingFace BertModel, also of one with a head, by the library, and
    returns the model.

    check_mask: attention masks are checked on the host, which waits for the GPU, and become lengths.
    False: they are refused, and Encoder.lengths gives lengths as a tensor, unchecked.
    Padding may lie anywhere.  Rows of padding in last_hidden_state are 0, also that of token 0: a head that
    reads it is refused, and pooler_output is NaN.
    mask: the attention mask that the library was exported with, or its kind.  BERT attends to all
    tokens, "full".  With another mask the model computes something else, so that one must be named.
    """
    _use_torch()
    chain = re.search(r" chain=(\S+)", _lib.encoder_plan_at(0).contents.workload.decode())
    if chain is not None:
        raise ValueError(f"the library's layers are '{chain[1]}'; encoder_from() gives it those of BERT: "
                         "export a library of BERT's, or give weights to Layers()")
    _check_plan_mask(_mask, mask)
    whole, model = model, _find_base(model)
    first, config = next(model.parameters()), model.config
    _check_config(config)
    if any(module.training for module in model.encoder.modules()):
        raise ValueError("the model is in training mode; the library has no dropout: call model.eval()")
    places = {str(place) for place in (getattr(whole, "hf_device_map", None) or {}).values()}
    if len(places) > 1:
        raise ValueError(f"the model's hf_device_map spreads it over {', '.join(sorted(places))}; the "
                         "library's layers run on one device: load the model without device_map")
    if first.device.type != _device or first.dtype != _dtype:
        raise ValueError(f"the model is {first.dtype} on {first.device}; the library takes {_dtype} on "
                         f"{_device}: call model.to('{_device}', {_dtype}) first")
    for i, layer in enumerate(model.encoder.layer):
        _check_layer(i, layer, first.device, config.layer_norm_eps)
        _check_parts(i, layer)
    for name, module in ("encoder", model.encoder), ("encoder.layer", model.encoder.layer):
        _check_calls(name, module)
    head = type(whole).__name__
    alone = whole is model or head.endswith(_TOKEN_HEADS)
    model.encoder = Encoder(model, check_mask, None if alone else head).eval()
    return whole


if sys.modules.get("torch"):
    _use_torch()
