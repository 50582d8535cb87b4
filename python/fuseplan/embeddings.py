"""A model's embeddings by the library: one kernel, which writes the rows of tokens alone."""

import contextlib
import ctypes
import inspect
import types

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode

from . import probe
from .capture import Recorder
from .finder import Unsupported
from .watch import Entry, is_own

# Models of transformers that hand their embeddings to the layers alone, and the class of these embeddings: a layernorm
# of the sum of rows of tables.
_MODELS = {"BertModel": "BertEmbeddings", "ElectraModel": "ElectraEmbeddings", "DistilBertModel": "Embeddings",
           "RobertaModel": "RobertaEmbeddings", "XLMRobertaModel": "XLMRobertaEmbeddings",
           "CamembertModel": "CamembertEmbeddings", "MPNetModel": "MPNetEmbeddings",
           "NomicBertModel": "NomicBertEmbeddings", "ModernBertModel": "ModernBertEmbeddings"}
# Those whose positions count ids that are not the padding's.
_COUNTED = ("RobertaEmbeddings", "XLMRobertaEmbeddings", "CamembertEmbeddings", "MPNetEmbeddings")
_TABLES = {"word_embeddings": "word", "tok_embeddings": "word", "token_type_embeddings": "type",
           "position_embeddings": "position"}
_KINDS = {**dict.fromkeys(_TABLES, torch.nn.Embedding), "LayerNorm": torch.nn.LayerNorm, "norm": torch.nn.LayerNorm,
          "dropout": torch.nn.Dropout, "drop": torch.nn.Dropout}
_BOUND = 8  # times the rounding of the type: PyTorch rounds each sum


class _Embedding(ctypes.Structure):
    """struct encoder_embedding of encoder.h."""
    _fields_ = [("batch", ctypes.c_int), ("seq_len", ctypes.c_int),
                *[(name, ctypes.c_void_p) for name in ("ids", "types", "mask", "lengths", "word", "type", "position")],
                *[(name, ctypes.c_long) for name in ("word_rows", "type_rows", "position_rows", "padding_id")],
                ("gamma", ctypes.c_void_p), ("beta", ctypes.c_void_p), ("eps", ctypes.c_double),
                ("x", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


class Embeddings(Entry):
    """In the place of forward() of a model's embeddings: the library writes them where they go to a stack alone, see
    _Asked.ids, and the module where they do not, or where it is no longer what the library computes.  Tables are the
    module's own.  calls: of the library; a graph's replays are not counted."""

    def __init__(self, module, stack):
        super().__init__(module)
        self._stack, self.calls = stack, 0
        self._names = list(inspect.signature(module.forward).parameters)

    def __call__(self, *args, **kwargs):
        asked = self._stack.asked
        if not torch.compiler.is_compiling() and asked.ids is not None:
            ids, asked.ids = asked.ids, None  # the layers' input is made once
            named = {**dict(zip(self._names, args)), **kwargs}
            if named.pop("input_ids", None) is ids and _is_plain(ids):
                with contextlib.suppress(Unsupported):
                    x = self.run(ids, **named)
                    self.calls += 1
                    return x
        return self._forward(*args, **kwargs)

    def run(self, ids, token_type_ids=None, position_ids=None, **others):
        """x (B,S,D), of which rows that no token has are not written."""
        tables, eps, padding_id = _read(self._module, self._stack)
        word, position = tables["word"], tables.get("position")
        if position is not None and (position_ids is not None or ids.shape[1] + padding_id >= position.shape[0]):
            raise Unsupported("positions are given, or there are not as many")
        if any(value is not None and (torch.is_tensor(value) or value != 0) for value in others.values()):
            raise Unsupported(f"one of {', '.join(others)} is given")
        if any(t is not None and (t.device != word.device or t.dtype != torch.int64 or t.shape != ids.shape)
               for t in (ids, token_type_ids)):
            raise Unsupported("ids and types are of other shapes or types, or elsewhere")
        mask, lengths = _find_tokens(self._stack, ids)
        given = {name: t.contiguous() for name, t in (("ids", ids), ("types", token_type_ids), ("mask", mask),
                                                      ("lengths", lengths)) if t is not None}
        x = word.new_empty((*ids.shape, word.shape[1]))
        call = _Embedding(*ids.shape, padding_id=padding_id, eps=eps, x=x.data_ptr(),
                          **{name: t.data_ptr() for name, t in {**given, **tables}.items()},
                          **{name + "_rows": t.shape[0] for name, t in tables.items() if t.dim() == 2})
        library = self._stack.engine.module
        with torch.cuda.device(x.device) if x.is_cuda else contextlib.nullcontext():
            call.stream = torch.cuda.current_stream().cuda_stream if x.is_cuda else None
            library._check(library._lib.encoder_embed(ctypes.byref(call)))
        return x


def _is_plain(ids):
    """Whether no one but PyTorch itself, or a capture of fuseplan's, would see what runs."""
    return (type(ids) is torch.Tensor and ids.dim() == 2 and ids.numel() > 0 and not torch.is_grad_enabled() and
            not torch.is_autocast_enabled(ids.device.type) and not torch._C._get_tracing_state() and
            torch._C._len_torch_dispatch_stack() == isinstance(_get_current_dispatch_mode(), Recorder))


def _find_tokens(stack, ids):
    """(mask, lengths) of a call, as the stack takes them: at most one; None twice: all rows are written."""
    mask, lengths = stack.asked.mask, stack.asked.lengths
    if ids.shape[1] > stack.engine.longest:  # PyTorch's layers run, which read all rows
        return None, None
    if lengths is not None and lengths.device == ids.device:
        return None, lengths
    if mask is None or mask.shape != ids.shape or mask.device != ids.device:
        return None, None
    return (mask if mask.dtype == torch.int64 else (mask != 0).long()), None


def _read(module, stack):
    """(tensors by their names in encoder.h, eps, padding_id) of a module, or Unsupported, with what it has."""
    engine, tables, eps = stack.engine, {}, None
    hooks = torch.nn.modules.module
    if module.training:
        raise Unsupported("it is in training mode: call model.eval()")
    if getattr(module, "position_embedding_type", "absolute") != "absolute":
        raise Unsupported(f"its position_embedding_type is {module.position_embedding_type}; expected absolute")
    if hooks._global_forward_hooks or hooks._global_forward_pre_hooks or any(map(_has_hooks, (
            module, stack, stack.description.owner, *module._modules.values()))):
        raise Unsupported("it, a part of it, or what its rows go to has a hook, which sees all rows")
    for name, part in module._modules.items():
        if type(part) is not _KINDS.get(name) or "forward" in vars(part):
            expected = f"; expected a {_KINDS[name].__name__} with its own forward()" if name in _KINDS else ""
            raise Unsupported(f"its {name} is a {type(part).__name__}, which the library does not compute{expected}")
        if getattr(part, "max_norm", None) is not None:
            raise Unsupported(f"its {name} has max_norm, by which a call changes its rows")
        if isinstance(part, torch.nn.Embedding):
            tables[_TABLES[name]] = part.weight
        elif isinstance(part, torch.nn.LayerNorm):
            eps = part.eps
            tables.update({"gamma": part.weight} if part.bias is None else {"gamma": part.weight, "beta": part.bias})
        elif part.training:
            raise Unsupported(f"its {name} is in training mode: call model.eval()")
    for name, t in tables.items():
        if (type(t) is not torch.nn.Parameter or t.dtype != engine.dtype or t.shape[-1:] != (engine.module.info.hidden,)
                or not t.is_contiguous() or t.data_ptr() % 16 != 0 or t.device != tables["word"].device):
            raise Unsupported(f"its {name} tensor is {_describe(t)}; expected {engine.dtype} of "
                              f"{engine.module.info.hidden} columns on {tables['word'].device}, contiguous and at a "
                              "multiple of 16 bytes, as clone() makes it")
    return tables, eps, module.padding_idx if type(module).__name__ in _COUNTED else -1


def _describe(t):
    if type(t) is not torch.nn.Parameter:
        return f"a {type(t).__name__}"
    return (f"{t.dtype} {tuple(t.shape)} on {t.device}" + ", not contiguous" * (not t.is_contiguous()) +
            f", {t.data_ptr() % 16} bytes behind a multiple of 16" * (t.data_ptr() % 16 != 0))


def _has_hooks(module):
    return not all(map(is_own, (*module._forward_hooks.values(), *module._forward_pre_hooks.values())))


def find_refusal(model, stack):
    """Why a model's own module writes its embeddings, and not the library, or None; a call of its forward() decides.
    model: the innermost one of transformers with the stack in it, or None."""
    module, kind = getattr(model, "embeddings", None), _MODELS.get(type(model).__name__)
    if kind is None or not type(model).__module__.startswith("transformers.models."):
        return "the library has none " + ("outside models of transformers" if model is None else
                                          f"of a {type(model).__name__}")
    if type(module).__name__ != kind or type(module).__module__ != type(model).__module__:
        return f"it is a {type(module).__module__}.{type(module).__name__}; expected {type(model).__module__}.{kind}"
    if module.forward != types.MethodType(type(module).forward, module):
        return "its forward() is not that of its class"
    try:
        with torch.no_grad():
            error = _compare(module, stack)
    except Unsupported as refusal:
        return str(refusal)
    most = _BOUND * torch.finfo(stack.engine.dtype).eps
    return None if error <= most else (f"the library's rows differ from its by {error:.2g} (relative L2); expected at "
                                       f"most {most:.2g}")


def _compare(module, stack):
    """The largest relative L2 distance of the library's rows to the module's, of drawn ids, without types and with
    drawn ones, padded anywhere."""
    tables, _, padding_id = _read(module, stack)
    most = min(stack.engine.longest, 96, *[t.shape[0] - padding_id - 1 for n, t in tables.items() if n == "position"])
    draw = torch.Generator().manual_seed(0)

    def drawn(rows):
        return torch.randint(rows, (3, most), generator=draw).to(tables["word"].device)
    ids, mask, errors = drawn(tables["word"].shape[0]), drawn(4), []
    for given in [{}] + [{"token_type_ids": drawn(t.shape[0])} for name, t in tables.items() if name == "type"]:
        want, stack.asked.mask = module.forward(input_ids=ids, **given), mask
        try:
            errors.append(probe.distance(Embeddings(module, stack).run(ids, **given), want, mask != 0))
        finally:
            stack.asked.mask = None
    return max(errors, key=lambda error: (error != error, error))
