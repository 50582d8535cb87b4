"""CUDA graphs of whole calls of a model: embeddings, layers and what is behind them, in one launch."""

import collections
import inspect
import re
import threading
from time import perf_counter

import torch

from . import capture, finder, probe
from .held import Held
from .results import builder
from .stack import Refused, asking
from .watch import is_own

_MULTIPLE = 16  # of tokens: to it a graph's sequences are padded, so that few graphs serve all lengths
_CALLS = 3  # of a size: the last of them captures
_SEEN = 4096  # sizes that are counted at most
_GRAPHS = 64  # of a model at most; the one that was replayed longest ago makes room
_BYTES = 256 << 20  # that inputs and results of a model's graphs take at most
_SMALL = 1 << 20  # bytes of a result that a graph copies itself: of larger ones the copy takes longer than a launch
_TOKENS = 32768  # of a call at most, padding too: in a larger one the GPU takes longer than the host

_TENSORS = {"input_ids", "attention_mask", "token_type_ids", "pixel_values", "input_features", "input_values"}
_OPTIONS = {"return_dict", "use_cache", "output_hidden_states", "output_attentions"}
_TOKEN_HEADS = ("ForTokenClassification", "ForMaskedLM")

_Tensor, _is_compiling = torch.Tensor, torch.compiler.is_compiling


class _Entry:
    """A graph with its inputs.  wide: the length of its sequences, of which those of a call may fall short, or None;
    ran: the engines that it runs, with (batch, tokens) of each; signatures: of the calls that have a _Call."""

    def __init__(self, inputs, wide):
        self.inputs, self.wide, self.ran, self.signatures = inputs, wide, [], []
        self.graph = self.replay = self.build = None
        self.results = []
        self.tokens = -1  # of a sequence of the last call

    def capture(self, kind, fn, device, pool):
        def body():
            self.ran.clear()
            result, found = fn({name: t.clone() for name, t in self.inputs.items()}, self.ran), []
            build = builder(result, found)
            copies = [t.clone() if t.is_contiguous() and t.numel() * t.element_size() <= _SMALL else t for t in found]
            results[:] = [t for t, own in zip(copies, found) if t is not own]
            return build(copies)
        results = []
        self.graph = kind(body, self.inputs.values(), results, device, pool)
        self.replay = self.graph.replay
        self.build = builder(self.graph.result, self.results)
        if not self.ran:
            raise Refused("none of fuseplan's layers ran")
        if self.wide and any(t.dim() > 3 for t in self.results):
            raise Refused("the result is not one of rows")
        self.tokens = -1

    @property
    def size(self):
        return sum(t.numel() * t.element_size() for t in (*self.inputs.values(), *self.results))

    def cut(self, t, tokens):
        """What a call of so many tokens has of an input or a result."""
        return t[:, :tokens] if self.wide and t.dim() > 1 and t.shape[1] == self.wide and (
            t.dim() == 3 or any(t is one for one in self.inputs.values())) else t

    def fill(self, tokens):
        """Of calls of so many tokens what no call gives: those without any padding have no lengths."""
        self.tokens = tokens
        if self.wide and "attention_mask" in self.inputs:
            self.inputs["attention_mask"][:, tokens:] = 0
        if "lengths" in self.inputs and self.wide:
            self.inputs["lengths"].fill_(tokens)


class _Call:
    """A way into a graph and out of it again, for calls of one signature: where their tensors go, what results they
    get, and which engines run, with (batch, tokens) and which tensor is the mask or the lengths, or None.  It is made
    once, as what a call does in Python keeps the GPU waiting."""

    def __init__(self, entry, key, tensors, tokens, kind):
        self.entry, self.key, self.tokens = entry, key, tokens
        self.takes, self.gives = [], []
        for whole in map(entry.inputs.get, tensors):
            t, end = entry.cut(whole, tokens), entry.graph.end(whole)
            self.takes.append((end and end.leads_to(t), kind.mover(t, True)))
        for whole in entry.results:
            t, end = entry.cut(whole, tokens), entry.graph.end(whole)
            sizes, strides = tuple(t.shape), torch.empty(t.shape, device="meta").stride()
            self.gives.append((sizes, strides, t.dtype, end and end.leads_to(t), kind.mover(t, False)))
        masks = [(i, t) for i, (name, t) in enumerate(tensors.items()) if name in ("attention_mask", "lengths")]
        self.counts = []
        for engine, (batch, length) in entry.ran:
            length = tokens if length == entry.wide else length
            of = [i for i, t in masks if t.dim() == 1 or t.shape[-1] == length]  # one tower of two may have no mask
            self.counts.append((engine, (batch, length), of[0] if of else None))


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
        self._order, self._empty = kind.Order(self._device), kind.empty
        self.whole = None  # Graphs of a SentenceTransformer around the model
        self.off = None  # why nothing is captured any more
        self._start()

    def _start(self):
        self._entries, self._seen, self.refused = collections.OrderedDict(), collections.Counter(), {}
        self._calls = {}  # by signature, see _Call
        self._pool = self._held = None
        self._hooks_at, self._hooked = -1, False

    def __call__(self, *args, **kwargs):
        if _is_compiling() or not self.can() or len(args) > len(self._names):
            return self.model._call_impl(*args, **kwargs)
        begun, signature, given = perf_counter(), [], []
        named = {**dict(zip(self._names, args)), **kwargs} if args else kwargs
        for name, value in named.items():
            if type(value) is _Tensor:
                given.append(value)
                signature += name, value.shape, value.dtype, value.get_device()
            elif value is None or value is True or value is False:
                signature += name, value
            else:
                return self.model._call_impl(*args, **kwargs)
        signature = tuple(signature)
        call = self._known(signature) or self._find(signature, named)
        return self._replay(call, given, begun) if call else self.model._call_impl(*args, **kwargs)

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
            self._hooked = not all(is_own(hook) for module in self.model.modules() for hook in (
                *module._forward_hooks.values(), *module._forward_pre_hooks.values()))
            self._hooks_at = at
        return self._hooked

    def drop(self):
        """Forgets all graphs."""
        with capture.lock, self._lock:
            if self._entries:
                self._kind.wait(self._device)
            self._start()
        if self.whole is not None:
            self.whole.drop()

    # ---- calls of a model

    def _known(self, signature):
        """The call of a signature, if a graph has it; all graphs are dropped if what they depend on has changed."""
        call, held = self._calls.get(signature), self._held
        if held is not None and not held.same():
            self.drop()
            return None
        return call

    def _find(self, signature, named):
        """The call of a signature, whose graph may be captured now; None: there is none."""
        key, tensors, options = [], {}, {}
        for name, value in named.items():
            if type(value) is _Tensor and name in _TENSORS:
                if value.device != self._device or value.requires_grad:
                    return None
                tensors[name] = value
                key += name, value.dtype
            elif value is True or value is False:
                if name not in _OPTIONS or (value and name == "output_attentions"):
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
        return self._add(signature, tuple(key), tensors, sizes, run, tokens, wide)

    def widen(self, batch, tokens):
        """The length to which a graph pads sequences; None: no graph is worth it."""
        longest = min(stack.engine.longest for stack in self._stacks)
        wide = min(-(-tokens // _MULTIPLE) * _MULTIPLE, longest, self._most or longest)
        return wide if tokens <= wide and batch * wide <= _TOKENS else None

    # ---- graphs

    def run(self, key, tensors, fn):
        """(result,) of fn(tensors, ran), which tells asking() what `ran` is, by the graph of a key; None: there is
        none.  key: differs where tensors are of other names, sizes or types."""
        begun = perf_counter()
        call = self._known(key)
        if call is None:
            sizes = {name: (t.shape, t.dtype) for name, t in tensors.items()}
            call = self._add(key, key, tensors, sizes, fn, None, None)
        return call and (self._replay(call, [*tensors.values()], begun),)

    def _add(self, signature, key, tensors, sizes, fn, tokens, wide):
        """The call of a signature by the graph of a key, which may be captured now; None: there is none.  sizes:
        (shape, dtype) of the graph's inputs; tokens, wide: lengths of sequences, in a call and there."""
        entry = self._entries.get(key) or self._make(key, tensors, sizes, fn, tokens, wide)
        if entry is None:
            return None
        call = _Call(entry, key, tensors, tokens, self._kind)
        with self._lock:
            if self._entries.get(key) is entry and len(self._calls) < _SEEN:
                self._calls[signature] = call
                entry.signatures.append(signature)
        return call

    def _replay(self, call, given, begun):
        """The result of a call whose tensors are given, in new tensors."""
        result = self._launch(call, given, self._empty)
        seconds = perf_counter() - begun
        for engine, shape, mask in call.counts:
            engine.count(shape, seconds, None if mask is None else given[mask], True)
        return result

    def _launch(self, call, given, empty):
        if self._kind.current() != self._device.index:
            with torch.cuda.device(self._device):
                return self._launch(call, given, empty)
        entry, fresh, late, status = call.entry, [], [], 0
        with self._lock:
            if call.key in self._entries:
                self._entries.move_to_end(call.key)
            stream = self._order.begin()
            if call.tokens != entry.tokens:
                entry.fill(call.tokens)
            for (leads, take), t in zip(call.takes, given):
                if leads is None or not leads(t):
                    status |= take(t, stream)
            for sizes, strides, dtype, leads, give in call.gives:
                t = empty(sizes, strides, dtype)
                fresh.append(t)
                if leads is None or not leads(t):
                    late.append((give, t))
            entry.replay()
            for give, t in late:
                status |= give(t, stream)
            self._order.end()
        if status:
            raise RuntimeError(f"CUDA refuses to copy between a call's tensors and those of its graph: error {status}")
        return entry.build(fresh)

    def _check(self, call, tensors, fn):
        """Refuses a graph that does not compute what the model does, wherever a call's tensors lie.  No memory has the
        inputs or the results already."""
        def poisoned(*sizes):
            t = self._empty(*sizes)
            return t.fill_(torch.nan) if t.is_floating_point() else t.zero_()
        want, kept = [], []
        builder(fn(tensors, []), want)
        for name in tensors:
            call.entry.cut(call.entry.inputs[name], call.tokens).zero_()
        for _ in range(2):
            kept.append(({name: t.clone() for name, t in tensors.items()}, []))
            copies, got = kept[-1]
            builder(self._launch(call, copies.values(), poisoned), got)
        if not all(_is_near(one, other) for _, got in kept for one, other in zip(got, want)):
            raise Refused("a graph's results were not those of the model")

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
            self._held = Held(self.model, self._stacks, not self._is_base)
        with torch.inference_mode(False), torch.no_grad():
            entry = _Entry({name: torch.zeros(shape, dtype=dtype, device=self._device)
                            for name, (shape, dtype) in sizes.items()}, wide)
            entry.fill(tokens)
            for name, t in tensors.items():
                entry.cut(entry.inputs[name], tokens).copy_(t)
            entry.capture(self._kind, fn, self._device, self._pool)
            if max(batch * length for _, (batch, length) in entry.ran) > _TOKENS or entry.size > _BYTES:
                raise Refused("a call is so large that the GPU takes longer than the host")
            self._check(_Call(entry, key, tensors, tokens, self._kind), tensors, fn)
        with self._lock:
            self._order.begin()  # a call in another stream waits for what was written to the inputs
            self._order.end()
            used = [one.size for one in self._entries.values()]
            while used and (len(used) >= _GRAPHS or sum(used) + entry.size > _BYTES):
                self._kind.wait(self._device)
                for signature in self._entries.popitem(last=False)[1].signatures:
                    self._calls.pop(signature, None)
                used.pop(0)
            self._entries[key] = entry
        return entry


def _is_near(got, want):
    """Whether tensors are the same but for rounding; NaN is NaN."""
    if got.shape != want.shape or not torch.equal(got.isnan(), want.isnan()):
        return False
    return not probe.distance(got.nan_to_num(), want.nan_to_num(), None) > 0.05  # NaN: both are 0


def _reads_rows(model):
    """Whether what stands behind the layers reads rows of tokens one by one, or that of token 0."""
    name = type(model).__name__
    return not re.search("For[A-Z]", name) or name.endswith(_TOKEN_HEADS)


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
