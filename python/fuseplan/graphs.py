"""CUDA graphs of whole calls of a model: embeddings, layers and what is behind them, in one launch."""

import collections
import inspect
import re
import threading
import time

import torch

from . import capture, finder, probe
from .stack import Refused, Watch, asking, hide_pooled

_MULTIPLE = 16  # of tokens: to it a graph's sequences are padded, so that few graphs serve all lengths
_CALLS = 3  # of a size: the last of them captures
_SEEN = 4096  # sizes that are counted at most
_GRAPHS = 64  # of a model at most; the one that was replayed longest ago makes room
_BYTES = 256 << 20  # that inputs and results of a model's graphs take at most
_TOKENS = 16384  # of a call at most: in a larger one the GPU takes longer than the host

_TENSORS = {"input_ids", "attention_mask", "token_type_ids", "pixel_values", "input_features", "input_values"}
_OPTIONS = {"return_dict", "use_cache", "output_hidden_states", "output_attentions"}
_TOKEN_HEADS = ("ForTokenClassification", "ForMaskedLM")


class _Entry:
    """A graph with its inputs.  wide: the length of its sequences, of which those of a call may fall short, or None;
    ran: the engines that it runs, with (batch, tokens) of each."""

    def __init__(self, inputs, wide):
        self.inputs, self.wide, self.ran = inputs, wide, []
        self.graph, self.results = None, []
        self._tokens = -1  # of a sequence of the last call

    def capture(self, kind, fn, device, pool):
        def body():
            self.ran.clear()
            return fn(self.inputs, self.ran)
        self.graph = kind(body, device, pool)
        flatten(self.graph.result, self.results)
        if not self.ran:
            raise Refused("none of fuseplan's layers ran")
        if self.wide and any(t.dim() > 3 for t in self.results):
            raise Refused("the result is not one of rows")
        self._tokens = -1

    @property
    def size(self):
        return sum(t.numel() * t.element_size() for t in (*self.inputs.values(), *self.results))

    def take(self, tensors, tokens):
        """A call's inputs.  Those without any padding have no lengths."""
        if tokens != self._tokens:
            self._tokens = tokens
            self._names = [name for name in self.inputs if name in tensors]
            self._into = [self._cut(self.inputs[name]) for name in self._names]
            self._from = [self._cut(t) for t in self.results]
            if self.wide and "attention_mask" in self.inputs:
                self.inputs["attention_mask"][:, tokens:] = 0
            if "lengths" in self.inputs and "lengths" not in tensors:
                self.inputs["lengths"].fill_(tokens)
        torch._foreach_copy_(self._into, [tensors[name] for name in self._names], non_blocking=True)

    def _cut(self, t):
        return t[:, :self._tokens] if self.wide and t.dim() > 1 and t.shape[1] == self.wide and (
            t.dim() == 3 or any(t is one for one in self.inputs.values())) else t

    def give(self):
        """The results, in new tensors."""
        fresh = iter([t.clone(memory_format=torch.contiguous_format) for t in self._from])
        return _rebuild(self.graph.result, fresh)

    def count(self, seconds):
        for engine, (batch, tokens) in self.ran:
            engine.count((batch, self._tokens if tokens == self.wide else tokens), seconds, True)


def flatten(result, found):
    """Adds the tensors of a call's result to a list."""
    if isinstance(result, torch.Tensor):
        found.append(result)
    elif hasattr(result, "to_tuple") or type(result) in (tuple, list):
        for part in result.values() if isinstance(result, dict) else result:
            flatten(part, found)
    elif result is not None:
        raise Refused(f"the result has a {type(result).__name__}")


def _rebuild(result, fresh):
    """One like it, of fresh tensors."""
    if isinstance(result, torch.Tensor):
        return next(fresh)
    if isinstance(result, dict):  # a ModelOutput, of which __init__() takes as long as all else of a call
        new = type(result).__new__(type(result))
        new.__dict__.update(result.__dict__)
        for name, part in result.items():
            new.__dict__[name] = part = _rebuild(part, fresh)
            collections.OrderedDict.__setitem__(new, name, part)
        return new
    return None if result is None else type(result)([_rebuild(part, fresh) for part in result])


class Graphs:
    """In the place of a model's __call__, see install(): runs calls by graphs where it can, and others as before.

    A call of a size, with sequences up to a multiple of 16 tokens, is captured when it comes for the third time.
    A replay copies the inputs, and the results into new tensors.  model: what is called, or a SentenceTransformer, of
    which encode() runs what it likes; stacks: all in it; kind: of graphs."""

    def __init__(self, model, stacks, kind):
        self.model, self._stacks, self._kind = model, stacks, kind
        self._device = stacks[0].description.place[0]
        self._names = [name for name, p in inspect.signature(model.forward).parameters.items()
                       if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self._is_base = hasattr(model, "base_model_prefix")
        self._pads = _reads_rows(model) and all(stack.description.family.mask_in_layers for stack in stacks)
        self._most = probe.longest(finder.unwrap(model))
        self._lock = threading.Lock()  # of the graphs' memory
        self._order = kind.Order(self._device)
        self.whole = None  # Graphs of a SentenceTransformer around the model
        self.off = None  # why nothing is captured any more
        self._start()

    def _start(self):
        self._entries, self._seen, self.refused = collections.OrderedDict(), collections.Counter(), {}
        self._pool, self._held, self._addresses, self._configs = None, [], [], []
        self._hooks_at, self._hooked = -1, False

    def __call__(self, *args, **kwargs):
        if not torch.compiler.is_compiling() and self.can():
            found = self._find(args, kwargs)
            if found is not None:
                return found[0]
        return self.model._call_impl(*args, **kwargs)

    def describe(self):
        size = sum(entry.size for entry in list(self._entries.values())) / (1 << 20)
        why = [self.off] if self.off else sorted(set(self.refused.values()))
        return f"{len(self._entries)} with {size:.1f} MiB" + "".join(f"; none of some calls: {text}" for text in why)

    # ---- whether a graph can

    def can(self):
        """Whether a graph does now what the model would."""
        return not (self.off or torch.is_grad_enabled() or torch.is_autocast_enabled() or
                    torch._C._len_torch_dispatch_stack() or torch._C._get_tracing_state() or
                    self._kind.is_captured() or self._has_hooks())

    def _has_hooks(self):
        of = torch.nn.modules.module
        if of._global_forward_hooks or of._global_forward_pre_hooks:
            return True
        at = torch.utils.hooks.RemovableHandle.next_id
        if at != self._hooks_at or self._hooked:
            self._hooked = not all(_is_own(hook) for module in self.model.modules() for hook in (
                *module._forward_hooks.values(), *module._forward_pre_hooks.values()))
            self._hooks_at = at
        return self._hooked

    def _hold(self):
        """Notes what graphs depend on, and a call might find changed."""
        held, simple = [(vars(stack), "engine", stack.engine) for stack in self._stacks], (bool, int, float, str)
        for module in self.model.modules():
            own = vars(module)
            held += [(own, "forward", own.get("forward"))]
            held += [(own, name, value) for name, value in own.items() if name == "training" or
                     (isinstance(value, simple) and not self._is_base)]
            for part in own["_modules"], own["_parameters"], own["_buffers"]:
                held += [(part, name, value) for name, value in part.items()]
        tensors = [t for _, _, t in held if isinstance(t, torch.Tensor)]
        self._addresses = [(t.data_ptr, t.data_ptr(), t.detach()) for t in tensors]  # and keeps them
        configs = [getattr(module, "config", None) for module in self.model.modules()]
        configs = {id(c): vars(c) for c in configs if hasattr(c, "__dict__")}
        self._configs = [(fields, dict(fields)) for fields in configs.values()]
        self._held = held

    def _is_held(self):
        for own, name, value in self._held:
            if own.get(name) is not value:
                return False
        for find, address, _ in self._addresses:
            if find() != address:
                return False
        return all(fields == before for fields, before in self._configs)

    def drop(self):
        """Forgets all graphs."""
        with capture.lock, self._lock:
            if self._entries:
                self._kind.wait(self._device)
            self._start()
        if self.whole is not None:
            self.whole.drop()

    # ---- calls of a model

    def _find(self, args, kwargs):
        """(result,) of a call of the model by a graph; None: there is none."""
        if len(args) > len(self._names):
            return None
        if args:
            kwargs = {**dict(zip(self._names, args)), **kwargs}
        key, tensors, options = [], {}, {}
        for name, value in kwargs.items():
            if type(value) is torch.Tensor and name in _TENSORS:
                if value.device != self._device or value.requires_grad:
                    return None
                tensors[name] = value
                key += name, value.dtype
            elif value is True or value is False:
                if name not in _OPTIONS or (value and name.startswith("output")):
                    return None
                options[name] = value
                key += name, value
            elif value is not None:
                return None
        if not tensors:
            return None
        shapes = [t.shape for t in tensors.values()]
        tokens = wide = None
        if self._pads and len(shapes[0]) == 2 and all(shape == shapes[0] for shape in shapes):
            tokens, wide = shapes[0][1], self.widen(*shapes[0])
            if wide is None:
                return None
            shapes = [(shapes[0][0], wide)] * len(shapes)
        key += shapes
        whole = "attention_mask" not in tensors
        key += (whole and tokens != wide,)

        def run(inputs, ran):
            inputs = dict(inputs)
            with asking(self._stacks, ran=ran, lengths=inputs.pop("lengths", None), whole=whole):
                return self.model._call_impl(**inputs, **options)
        sizes = {name: (shape, t.dtype) for (name, t), shape in zip(tensors.items(), shapes)}
        if whole and tokens != wide:
            sizes["lengths"] = (shapes[0][:1], torch.int32)
        return self.run(tuple(key), tensors, sizes, run, tokens, wide)

    def widen(self, batch, tokens):
        """The length to which a graph pads sequences; None: no graph is worth it."""
        longest = min(stack.engine.longest for stack in self._stacks)
        wide = min(-(-tokens // _MULTIPLE) * _MULTIPLE, longest, self._most or longest)
        return wide if tokens <= wide and batch * wide <= _TOKENS else None

    # ---- graphs

    def run(self, key, tensors, sizes, fn, tokens=None, wide=None):
        """(result,) of fn(tensors, ran), which tells asking() what `ran` is, by the graph of a key; None: there is
        none.  sizes: (shape, dtype) of the graph's inputs; tokens, wide: lengths of sequences, in a call and there."""
        begun = time.perf_counter()
        if self._entries and not self._is_held():
            self.drop()
        entry = self._entries.get(key) or self._make(key, tensors, sizes, fn, tokens, wide)
        if entry is None:
            return None
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            self._order.begin()
            entry.take(tensors, tokens)
            entry.graph.replay()
            result = entry.give()
            self._order.end()
            entry.count(time.perf_counter() - begun)
        return (result,)

    def _make(self, key, tensors, sizes, fn, tokens, wide):
        if len(self._seen) >= _SEEN:
            self._seen.clear()
        self._seen[key] += 1
        if self._seen[key] < _CALLS or key in self.refused or not capture.lock.acquire(blocking=False):
            return None
        try:
            return self._capture(key, tensors, sizes, fn, tokens, wide)
        except Refused as error:
            self.refused[key] = str(error)
        except Exception as error:  # of PyTorch, in a capture
            self.off = f"{type(error).__name__}: {error}".splitlines()[0]
        finally:
            capture.lock.release()
        return None

    def _capture(self, key, tensors, sizes, fn, tokens, wide):
        if not self._entries:
            self._pool = self._kind.new_pool()
            self._hold()
        with torch.inference_mode(False), torch.no_grad():
            entry = _Entry({name: torch.zeros(shape, dtype=dtype, device=self._device)
                            for name, (shape, dtype) in sizes.items()}, wide)
            entry.take(tensors, tokens)
            entry.capture(self._kind, fn, self._device, self._pool)
        if max(batch * length for _, (batch, length) in entry.ran) > _TOKENS or entry.size > _BYTES:
            raise Refused("a call is so large that the GPU takes longer than the host")
        with self._lock:
            self._order.begin()  # a call in another stream waits for what was written to the inputs
            self._order.end()
            used = [one.size for one in self._entries.values()]
            while used and (len(used) >= _GRAPHS or sum(used) + entry.size > _BYTES):
                self._kind.wait(self._device)
                self._entries.popitem(last=False)
                used.pop(0)
            self._entries[key] = entry
        return entry


def _reads_rows(model):
    """Whether what stands behind the layers reads rows of tokens one by one, or that of token 0."""
    name = type(model).__name__
    return not re.search("For[A-Z]", name) or name.endswith(_TOKEN_HEADS)


def _is_own(hook):
    return (hook is hide_pooled or isinstance(getattr(hook, "__self__", None), Watch) or
            getattr(hook, "__module__", "").startswith("transformers."))


kinds = {"cuda": capture.CudaGraph}  # by type of device


def install(model, stacks):
    """Lets calls of a model run by graphs, where its device has them; a model of transformers 4 waits for the GPU in
    its calls."""
    kind = kinds.get(stacks[0].description.place[0].type)
    module = finder.transformers_5()
    if (kind is not None and module is not None and isinstance(model, module.PreTrainedModel) and
            model._compiled_call_impl is None):
        model._compiled_call_impl = Graphs(model, stacks, kind)  # which copies and pickles leave out


def graphs_of(model):
    found = vars(model).get("_compiled_call_impl")
    return found if isinstance(found, Graphs) else None


def graphs_around(model, base, stacks):
    """Of a SentenceTransformer with the base, or None."""
    graphs = graphs_of(base)
    if graphs is not None and (graphs.whole is None or graphs.whole.model is not model):
        graphs.whole = Graphs(model, stacks, graphs._kind)
    return graphs and graphs.whole


def remove(model):
    graphs = graphs_of(model)
    if graphs is not None:
        model._compiled_call_impl = None
        graphs.drop()
