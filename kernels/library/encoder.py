"""The library as a PyTorch operator, and in the place of model.encoder of a HuggingFace BertModel.

    import transformers, encoder
    model = transformers.BertModel.from_pretrained(...).eval().half().cuda()
    encoder.encoder_from(model)
    model(**tokenizer(texts, padding=True, return_tensors="pt").to("cuda"))

Layers(weights) runs layers of any other model, y = layers(x). The operator behind both is
torch.ops.encoder.run(x, lengths, handle); it has a fake implementation, so that torch.compile and
torch.export trace through it.  The attention mask that the library was exported
with holds in every layer, beside the lengths.  libencoder.so must lie beside this file.
"""

import contextlib
import ctypes
import os
import struct
import threading
import weakref

import torch

_FP32, _TF32, _FP16, _BF16 = range(4)
_DTYPES = {_FP32: torch.float32, _TF32: torch.float32, _FP16: torch.float16, _BF16: torch.bfloat16}
_NAMES = ("wqkv", "bqkv", "wo", "bo", "gamma1", "beta1", "w1", "b1", "w2", "b2", "gamma2", "beta2")


class _Info(ctypes.Structure):
    _fields_ = [("generator", ctypes.c_char_p), ("target", ctypes.c_char_p),
                ("archs", ctypes.c_char_p), ("dtype", ctypes.c_int),
                ("element_bytes", ctypes.c_int), ("heads", ctypes.c_int),
                ("head_size", ctypes.c_int), ("ffn", ctypes.c_int), ("layers", ctypes.c_int),
                ("eps", ctypes.c_double), ("plans", ctypes.c_int)]


class _Plan(ctypes.Structure):
    _fields_ = [("batch", ctypes.c_int), ("seq_len", ctypes.c_int), ("value", ctypes.c_int),
                ("kernels", ctypes.c_int), ("packed", ctypes.c_int), ("mask", ctypes.c_char_p),
                ("workload", ctypes.c_char_p), ("measured_on", ctypes.c_char_p)]


class _Weights(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in _NAMES]


class _Model(ctypes.Structure):
    _fields_ = [("heads", ctypes.c_int), ("head_size", ctypes.c_int), ("ffn", ctypes.c_int),
                ("dtype", ctypes.c_int), ("layers", ctypes.c_int), ("eps", ctypes.c_double),
                ("on_device", ctypes.c_int), ("weights", ctypes.POINTER(_Weights))]


_lib = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "libencoder.so"))
_lib.encoder_describe.restype = ctypes.POINTER(_Info)
_lib.encoder_plan_at.restype = ctypes.POINTER(_Plan)
_lib.encoder_status_text.restype = ctypes.c_char_p
_lib.encoder_message.restype = ctypes.c_char_p
_lib.encoder_workspace_bytes.restype = ctypes.c_size_t
_lib.encoder_create.argtypes = [ctypes.POINTER(_Model), ctypes.POINTER(ctypes.c_void_p)]
_lib.encoder_destroy.argtypes = [ctypes.c_void_p]
_lib.encoder_run.argtypes = [ctypes.c_void_p, ctypes.c_char_p]

info = _lib.encoder_describe().contents
_dtype = _DTYPES[info.dtype]
_device = info.target.decode()
_on_gpu = _device == "cuda"
_hidden = info.heads * info.head_size


def sizes():
    """(batch, seq_len) of each plan, smallest first."""
    plans = (_lib.encoder_plan_at(i).contents for i in range(info.plans))
    return [(p.batch, p.seq_len) for p in plans]


def _check(status):
    if status != 0:
        text = _lib.encoder_status_text(status).decode()
        raise RuntimeError(f"{text}: {_lib.encoder_message().decode()}")


def _on(device):
    """Makes a GPU the current one."""
    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()


# ---- the operator

# A call that comes after a wait for the GPU finds none of its code in the host's caches.  Then a
# function costs more for being entered at all than for what it does.  So a call enters few, and these
# without the functions around them in Python.
_encoder_run = _lib.encoder_run
_call = struct.Struct("@iiPPPPPNP").pack  # the bytes of a struct encoder_call
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


def _check_input(x):
    if not (x.is_cuda if _on_gpu else x.is_cpu) or x.dtype != _dtype:
        raise TypeError(f"the input is {x.dtype} on {x.device}; the library takes {_dtype} on "
                        f"{_device}")
    if x.dim() != 3 or x.shape[2] != _hidden:
        raise ValueError(f"the input has the shape {tuple(x.shape)}; expected (B,S,{_hidden})")
    if x.requires_grad and torch.is_grad_enabled():
        raise RuntimeError("the library computes no gradients; run under torch.no_grad()")


_SHAPES = 1024  # whose layouts are kept at most
_layouts = {}  # by shape: (batch, seq_len, sizes, strides, bytes of workspace)


def _prepare(x):
    """Refuses x, or returns it contiguous and aligned, with the layout that is kept for its shape."""
    _check_input(x)
    if not x.is_contiguous() or x.data_ptr() % 16 != 0:
        x = x.clone(memory_format=torch.contiguous_format)
    if len(_layouts) >= _SHAPES:
        _layouts.clear()
    batch, seq_len, width = x.shape
    # at least 1 byte, so that encoder_run() is called and says why a size cannot run
    layout = _layouts[x.shape] = (batch, seq_len, (batch, seq_len, width),
                                  (seq_len * width, width, 1),
                                  _lib.encoder_workspace_bytes(batch, seq_len) or 1)
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
    """Contiguous lengths, their address on the host and that on the GPU; 0 where they are not."""
    if (lengths.dtype != torch.int32 or lengths.shape != x.shape[:1] or
            lengths.device not in (x.device, torch.device("cpu"))):
        raise ValueError(f"the lengths are {lengths.dtype} {tuple(lengths.shape)} on "
                         f"{lengths.device}; expected torch.int32 ({x.shape[0]},) on {x.device} or "
                         "on the CPU")
    lengths = lengths.contiguous()
    address = lengths.data_ptr()
    return (lengths, 0, address) if lengths.is_cuda else (lengths, address, 0)


def _run(x, lengths, handle):
    """x (B,S,D) through all layers.  lengths: (B) int32, on the CPU or, unchecked, on x's device;
    None: all S.  Rows of the result past a length are 0."""
    layout = _layouts.get(x.shape)
    gpu = x.get_device()  # -1: none
    address = x.data_ptr()  # 0: none
    if (layout is None or x.dtype is not _dtype or (gpu >= 0) is not _on_gpu or x.requires_grad or
            not x.is_contiguous() or address == 0 or address % 16 != 0):
        x, layout = _prepare(x)
        address = x.data_ptr()
    batch, seq_len, sizes, strides, size = layout
    stream = 0
    if _on_gpu:
        if gpu != _current_gpu():
            with torch.cuda.device(gpu):
                return _run(x, lengths, handle)
        stream = _raw_stream(gpu)
    workspace = _thread.workspaces.get(gpu) if stream == 0 else None
    if workspace is None or workspace[0] < size:
        workspace = _new_workspace(x, size, gpu, stream)
    host = device = 0  # where lengths lie
    if lengths is not None:
        lengths, host, device = _address_lengths(x, lengths)
    y = _empty(sizes, strides, _dtype)
    status = _encoder_run(handle, _call(batch, seq_len, address, y.data_ptr(), host, device,
                                        workspace[1], size, stream))
    if status != 0:
        _check(status)
    return y


# torch.library.custom_op would take some microseconds more in each call.
torch.library.define("encoder::run", "(Tensor x, Tensor? lengths, SymInt handle) -> Tensor",
                     tags=(torch.Tag.pt2_compliant_tag,))
torch.library.impl("encoder::run", _device, _run)


@torch.library.register_fake("encoder::run")
def _(x, lengths, handle):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


# ---- layers


def _shapes():
    """Of a layer's weights, in the order of _NAMES; matrices are (in, out)."""
    d, f = _hidden, info.ffn
    return ((d, 3 * d), (3 * d,), (d, d), (d,), (d,), (d,), (d, f), (f,), (f, d), (d,), (d,), (d,))


class Layers:
    """The library's layers on weights of yours: y = layers(x, lengths), x and y (B,S,D).  Rows of x
    past a length may hold anything; those of y are 0.

    weights: of each layer the tensors wqkv (D,3D), bqkv, wo (D,D), bo, gamma1, beta1, w1 (D,F), b1,
    w2 (F,D), b2, gamma2 and beta2, by name, of the library's type and on its device.  The columns of
    wqkv are those of q, k and v, each head by head.  All are copied.  eps is that of the layernorms.
    A CUDA graph that captured a call needs the layers as long as it is replayed."""

    def __init__(self, weights, eps=info.eps):
        layers = [[layer[name].contiguous() for name in _NAMES] for layer in weights]
        for i, layer in enumerate(layers):
            for name, t, shape in zip(_NAMES, layer, _shapes()):
                if t.dtype != _dtype or t.device.type != _device or tuple(t.shape) != shape:
                    raise ValueError(f"{name} of layer {i} is {t.dtype} {tuple(t.shape)} on {t.device}; "
                                     f"expected {_dtype} {shape} on {_device}")
        pointers = (_Weights * len(layers))(*[_Weights(*[t.data_ptr() for t in l]) for l in layers])
        model = _Model(info.heads, info.head_size, info.ffn, info.dtype, len(layers), eps,
                       int(_on_gpu), pointers)
        handle = ctypes.c_void_p()
        with _on(layers[0][0].device) if layers else contextlib.nullcontext():
            if _on_gpu:
                torch.cuda.synchronize()  # the copies may be under way in another stream
            _check(_lib.encoder_create(ctypes.byref(model), ctypes.byref(handle)))
        self.handle = handle.value
        self._end = weakref.finalize(self, _lib.encoder_destroy, handle)

    def __reduce__(self):  # a copy's handle would end with these layers
        raise TypeError("the library's layers cannot be copied or pickled; make them anew from the model")

    def __call__(self, x, lengths=None):
        return torch.ops.encoder.run(x, lengths, self.handle)


# ---- attention masks


def lengths_of(mask):
    """The lengths (B), on the CPU, that a tokenizer's attention mask stands for, also as HuggingFace
    extends it: (B,S), (B,1,1,S) or (B,1,S,S), 1 and 0, True and False, or 0 and a large negative number.
    Raises ValueError for a mask that is not just padding behind each sequence.  Waits for the GPU.
    """
    added = mask.is_floating_point() and mask.dim() == 4  # to the scores: 0 keeps a token
    kept = mask == 0 if added else mask != 0
    if kept.dim() == 4:
        if kept.shape[1] != 1 or not torch.equal(kept, kept[:, :, :1].expand_as(kept)):
            raise ValueError("the attention mask differs between heads or queries; the library "
                             "takes padding, and the mask that it was exported with")
        kept = kept[:, 0, 0]
    if kept.dim() != 2:
        raise ValueError(f"the attention mask has the shape {tuple(mask.shape)}; expected (B,S), "
                         "(B,1,1,S) or (B,1,S,S)")
    kept = kept.cpu()
    lengths = kept.sum(1, dtype=torch.int32)
    places = torch.arange(kept.shape[1])
    if not torch.equal(kept, places < lengths[:, None]) or int(lengths.min()) < 1:
        raise ValueError("the attention mask has gaps, padding on the left or a sequence without "
                         "tokens; the library takes padding on the right of real tokens")
    return lengths


# ---- a model


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


class Encoder(torch.nn.Module):
    """All layers of a BertModel in eval mode.  lengths: set it to an int32 tensor (B) on the device of
    x to give lengths unchecked, under capture or tracing; then the attention mask is not read."""

    def __init__(self, model, check_mask=True):
        super().__init__()
        from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions
        self._output = BaseModelOutputWithPastAndCrossAttentions
        if model.config.num_attention_heads != info.heads:
            raise ValueError(f"the model has {model.config.num_attention_heads} heads; the library "
                             f"runs {info.heads}")
        self.layers = Layers(_pack(model), model.config.layer_norm_eps)
        self.handle, self.check_mask, self.lengths = self.layers.handle, check_mask, None

    def _lengths(self, x, mask):
        if not self.check_mask or torch.compiler.is_compiling() or (
                x.is_cuda and torch.cuda.is_current_stream_capturing()):
            raise ValueError("an attention mask cannot be checked here; set model.encoder.lengths to an "
                             "int32 tensor (B) on the device, or pass no attention mask")
        return lengths_of(mask)

    def forward(self, hidden_states, attention_mask=None, head_mask=None, *args,
                output_attentions=False, output_hidden_states=False, return_dict=True, **kwargs):
        x, lengths = hidden_states, self.lengths
        if self.training or output_attentions or output_hidden_states:
            raise ValueError("the library has no dropout, and keeps neither attentions nor the "
                             "hidden states of layers; call model.eval(), and ask for neither")
        if head_mask is not None and any(mask is not None for mask in head_mask):
            raise ValueError("the library has no head mask; pass none")
        if lengths is None and attention_mask is not None:
            lengths = self._lengths(x, attention_mask)
        # where PyTorch traces, counts or transforms operators, it must see this one
        if _is_dynamo() or type(x) is not torch.Tensor or _stack() != 0 or _tracing_state():
            _check_input(x)
            y = torch.ops.encoder.run(x, lengths, self.handle)
        else:
            y = _run(x, lengths, self.handle)  # as PyTorch would, in a few microseconds less
        return self._output(last_hidden_state=y) if return_dict else (y,)


def _check_plan_mask(found, named):
    """Refuses plans of the mask `found`, "strided:t=8", unless it is named so or by its kind, "strided"."""
    if named not in (found, found.split(":")[0]):
        raise ValueError(f"the library was exported with the attention mask '{found}', which is not "
                         f"'{named}'; BERT attends to all tokens: export without -m, or call "
                         f"encoder_from(model, mask='{found}') to change what the model computes")


def encoder_from(model, check_mask=True, mask="full"):
    """Replaces model.encoder of a HuggingFace BertModel by the library, and returns the model.

    check_mask: attention masks are checked on the host, which waits for the GPU, and become lengths.
    False: they are refused, and Encoder.lengths gives lengths as a tensor, unchecked.
    mask: the attention mask that the library was exported with, or its kind.  BERT attends to all
    tokens, "full".  With another mask the model computes something else, so that one must be named.
    """
    _check_plan_mask(_lib.encoder_plan_at(0).contents.mask.decode(), mask)  # all plans have the same kind
    config = model.config
    if model.training:
        raise ValueError("the model is in training mode; call model.eval()")
    if config.hidden_act != "gelu" or getattr(config, "position_embedding_type",
                                              "absolute") != "absolute" or config.is_decoder:
        raise ValueError("the library runs BERT with exact gelu and absolute positions")
    device = next(model.parameters()).device
    if device.type != _device:
        raise ValueError(f"the model is on {device}; the library runs on {_device}")
    model.encoder = Encoder(model, check_mask).eval()
    return model
