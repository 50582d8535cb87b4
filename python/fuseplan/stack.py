"""The modules that stand in the place of a model's layers."""

import collections
import contextlib
import copy
import functools
import inspect
import json
import os
import threading
import time

import torch

from . import masks, pack
from .finder import Unsupported
from .probe import tensor_of

# Arguments of layers: masks; what says nothing of what a layer computes, or what the stack has from elsewhere; what
# comes with several sequences in one, which attention would cross.
_MASKS = {"attention_mask", "attn_mask", "attention_bias", "src_key_padding_mask", "causal_attention_mask"}
_HARMLESS = {"cache_position", "num_items_in_batch", "position_ids", "position_embeddings", "position_bias", "alibi",
             "bias", "rope_embeds", "sliding_window_mask", "return_dict", "padding_inputs", "use_cache",
             "src_is_causal", "is_causal"}
_UNPADDED = {"cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "seq_idx", "cu_seqlens", "max_seqlen",
             "subset_indices"}
_INPUTS = ("hidden_states", "x", "src")
_CHANGED = "; the model's other parts may have changed already"
_SHOWN = 4  # sizes in a text of one line
_LENGTHS = 256  # shapes of calls, the newest, of whose lengths an engine knows


class _Asked(threading.local):
    """What a call of this thread asks for.  by: the Watch that saw that the stack's layers must run, and reason: why;
    every: the Watch that saw that the outputs of all layers are wanted, and outputs: these, see Stand; mask: (B,S),
    which the model itself does not get; ids: (B,S) of a call in which rows of embeddings go to the stack alone, so that
    those of no token may hold anything; odd: see masks.find_odd(); lengths, whole, ran: see asking()."""

    by = reason = every = outputs = mask = ids = odd = lengths = ran = None
    whole = False


@contextlib.contextmanager
def asking(stacks, lengths=None, whole=False, ran=None):
    """In this thread's calls of stacks no mask is read where lengths, (B) int32 of tokens with all padding behind
    them, are given, or whole says that there is no padding.  ran: a list that gets (engine, (batch, tokens)) of each
    call, which is not counted; calls that the model's layers would run are then Refused."""
    for stack in stacks:
        stack.asked.lengths, stack.asked.whole, stack.asked.ran = lengths, whole, ran
    try:
        yield
    finally:
        for stack in stacks:
            stack.asked.lengths, stack.asked.whole, stack.asked.ran = None, False, None


class Refused(Exception):
    """What a call does that no CUDA graph repeats."""


class Layers(torch.nn.ModuleList):
    """A list that holds a stack alone, over which a model's own code loops.  During a call of a thread that asks for
    what a stack does not have, the layers that it replaces stand in the list, and during one that wants the outputs of
    all layers a Stand for each of them, see Watch.  Copies, pickles and state dicts are those of the replaced
    layers."""

    def __init__(self, stack):
        super().__init__()
        self._modules["0"] = self.__dict__["stack"] = stack  # found by a loop, and at once
        self.__dict__["_stands"] = [_make_stand(stack, i) for i in range(len(stack.plain))]
        self.eval()

    @property
    def plain(self):
        return torch.nn.ModuleList(self.stack.plain)

    def _is_plain(self):
        return self.stack.asked.by is not None

    def _shown(self):
        stack = self._modules["0"]
        if stack.asked.by is not None:
            return list(stack.plain)
        return [stack] if stack.asked.every is None else self._stands

    def __iter__(self):
        return iter(self._shown())

    def __len__(self):
        return len(self._shown())

    def __getitem__(self, index):
        return self._shown()[index]

    # transformers looks here for the layers whose outputs it is to record: by their forward() in modules, or for good
    # by hooks in children, which stands share with the layers.

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        if self._is_plain():
            return self.plain.named_modules(memo, prefix, remove_duplicate)
        if self.stack.asked.every is not None:
            return ((f"{prefix}.{i}", stand) for i, stand in enumerate(self._stands))
        return super().named_modules(memo, prefix, remove_duplicate)

    def named_children(self):
        if self._is_plain() or self.stack.asked.every is not None:
            return self.plain.named_children()
        return super().named_children()

    def __reduce__(self):
        return torch.nn.ModuleList, (list(self.stack.plain),)

    def __deepcopy__(self, memo):
        return copy.deepcopy(self.plain, memo)

    def state_dict(self, *args, **kwargs):
        return self.plain.state_dict(*args, **kwargs)


class Stand:
    """Stands for a layer in a call that wants the outputs of all: the first one runs the stack, and each gives its
    layer's.  A kind of it is one of the layer's class, too."""

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["layer"], name)

    def forward(self, *args, **kwargs):
        if torch.compiler.is_compiling():
            return torch.compiler.disable(self._give)(*args, **kwargs)
        return self._give(*args, **kwargs)

    def _give(self, *args, **kwargs):
        asked = self.stack.asked
        if self.number == 0:
            asked.outputs = self.stack.run_each(*args, **kwargs)
        y = asked.outputs[self.number]
        if self.number == len(asked.outputs) - 1:
            asked.outputs = None
        return self.stack.answer(y)


_HOOKS = ("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
          "_forward_pre_hooks_with_kwargs")


def _make_stand(stack, number):
    layer = stack.plain[number]
    kind = type("Stand", (Stand, type(layer)), {})
    stand = kind.__new__(kind)
    torch.nn.Module.__init__(stand)
    stand.__dict__.update(stack=stack, number=number, layer=layer, training=False,
                          **{name: getattr(layer, name) for name in _HOOKS})
    return stand


@torch.compiler.disable
def hide_pooled(pooler, args, pooled):
    """A hook of a pooler, which reads the row of token 0: NaN where it is padding."""
    padding = getattr(args[0], "first_is_padding", None) if args else None
    return pooled if padding is None else pooled.masked_fill(padding[:, None], float("nan"))


class Watch:
    """Hooks of a module: whether its call asks for what a stack below it lacks.

    layers: of the stack; a copy of the module has PyTorch's, and its hooks do nothing.  owner: whether the module
    itself loops over them.  outermost: whether no watched module is around it.  takes_mask: whether it hands its
    attention mask to the layers alone.  Then it gets none, as what it would make of it, and what it would look for in
    it, costs more than some layers, and waits for the GPU.  embeds: whether it makes the embeddings.  entry: in the
    place of the module's forward(), or None."""

    def __init__(self, layers, module, owner, outermost, takes_mask, embeds, entry):
        self.layers, self.owner, self.outermost, self.takes_mask = layers, owner, outermost, takes_mask
        self.embeds, self.entry = embeds, entry
        family = layers.stack.description.family
        self.causal, self.rope, self.windows = family.causal, family.rope, family.windows
        self.counts = owner and family.bias == "bloom"  # tokens, by its mask
        self.causal_mask = layers.stack.description.causal
        self.reads_last = type(module).__name__.startswith("SiglipText")  # the last row, also that of padding
        config = getattr(module, "config", None)
        self.fields = {} if config is None else vars(config)  # without the functions around them
        self.names = [name for name, p in inspect.signature(module.forward).parameters.items()
                      if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

    def _wants(self, name, kwargs):
        wanted = kwargs.get(name)
        return bool(wanted or (wanted is None and (self.fields.get(name) or self.fields.get("_" + name))))

    def _find_reason(self, args, kwargs):
        if self._wants("output_attentions", kwargs):
            return "output_attentions"
        if kwargs.get("past_key_values") is not None:
            return "use_cache"
        if self.causal:
            use_cache = kwargs.get("use_cache")
            if self.fields.get("use_cache") if use_cache is None else use_cache:
                return "use_cache"
        if kwargs.get("head_mask") is not None and any(part is not None for part in kwargs["head_mask"]):
            return "head_mask"
        if self._takes_as_it_is(kwargs.get("attention_mask")):
            return "attention_mask"
        # Without a mask the models of causal layers look in them for several sequences in one.
        if kwargs.get("position_ids") is not None and (
                self.rope or (self.causal and kwargs.get("attention_mask") is None)):
            return "position_ids"
        return self._find_excess(args, kwargs) if self.windows else None

    def _takes_as_it_is(self, mask):
        """Whether the model adds nothing to a mask: where it is no (B,S), no triangle and no windows."""
        if self.reads_last:
            return mask is not None
        if self.windows:
            return mask is not None and not (isinstance(mask, torch.Tensor) and mask.dim() == 2)
        return (self.causal_mask and isinstance(mask, torch.Tensor) and mask.dim() == 4 and
                mask.shape[2] == 1 < mask.shape[3])

    def _find_excess(self, args, kwargs):
        """Of tokens: a stack cannot run its layers itself, as the model alone gives each its mask."""
        given = next((t for t in (*args[:1], kwargs.get("input_ids"), kwargs.get("inputs_embeds")) if t is not None),
                     None)
        longest = self.layers.stack.engine.longest
        return f"more than {longest} tokens" if given is not None and given.shape[1] > longest else None

    def before(self, module, args, kwargs):
        if type(self.layers) is not Layers:
            return None
        stack = self.layers.stack
        asked = stack.asked
        if self.entry is not None:
            self.entry.within.on = True
        if self.outermost or asked.by is self:  # after() is not called where a KeyboardInterrupt ends a call
            asked.by = None
        if self.outermost or asked.every is self:
            asked.every = asked.outputs = None
        if self.takes_mask:
            asked.mask = None
        if self.embeds:
            asked.ids = None
        if asked.by is None:
            named = {**dict(zip(self.names, args)), **kwargs} if len(args) > 1 else kwargs
            reason = self._find_reason(args, named)
            if reason is not None:
                asked.by, asked.reason = self, reason
            elif asked.every is None and self._wants("output_hidden_states", named):
                asked.every = self
            if reason is None and self.counts:
                asked.odd = masks.find_odd(named.get("attention_mask"))
        if asked.by is not None:
            if self.owner:
                stack.count_plain(asked.reason)
            return None
        if self.embeds and asked.every is None and not torch.compiler.is_compiling():
            asked.ids = args[0] if args else kwargs.get("input_ids")
        if self.takes_mask:
            mask = kwargs.get("attention_mask")
            if (isinstance(mask, torch.Tensor) and mask.dim() == 2 and mask.shape[1] <= stack.engine.longest and
                    not torch.compiler.is_compiling()):
                asked.mask = mask
                return args, {**kwargs, "attention_mask": None}
        return None

    def after(self, module, args, output):
        if type(self.layers) is Layers:
            asked = self.layers.stack.asked
            if asked.by is self:
                asked.by = None
            if asked.every is self:
                asked.every = asked.outputs = None
            if self.takes_mask:
                asked.mask = None
            if self.embeds:
                asked.ids = None
            if self.counts:
                asked.odd = None


class Entry:
    """In the place of a model's forward(), which some call instead of the model: that is a call of the model, too, as
    hooks belong to it and graphs may run it.  Copies and pickles have the model's own."""

    def __init__(self, module):
        functools.update_wrapper(self, module.forward)
        self._module, self._forward, self.within = module, module.forward, threading.local()

    def __call__(self, *args, **kwargs):
        if getattr(self.within, "on", False):
            self.within.on = False
            return self._forward(*args, **kwargs)
        return self._module(*args, **kwargs)

    def remove(self):
        """Puts the model's own back, or answers for it where something else has come around it."""
        own = vars(self._module)
        if own.get("forward") is self:
            del own["forward"]
            if self._forward != self._module.forward:
                own["forward"] = self._forward
        self.__class__ = _Ended

    def __deepcopy__(self, memo):
        return copy.deepcopy(self._forward, memo)

    def __reduce__(self):
        return _same, (self._forward,)


class _Ended(Entry):

    def __call__(self, *args, **kwargs):
        return self._forward(*args, **kwargs)


class Unnested:
    """In the place of use_nested_tensor of a torch.nn.TransformerEncoder: false, so that its layers get a mask.  Copies
    and pickles have the encoder's own."""

    def __init__(self, owner):
        self._owner = owner

    def __bool__(self):
        return False

    def remove(self):
        self._owner.use_nested_tensor = True

    def __deepcopy__(self, memo):
        return True

    def __reduce__(self):
        return _same, (True,)


def _same(value):
    return value


class Stack(torch.nn.Module):
    """Layers of a model, run by a library: called as the first of them is, and answers as it does.

    plain: the layers themselves.  checks: calls of theirs, see probe.Call.  Where the first layer answered with a
    tuple, so does the stack, with None for all but its first part.  engine: what runs, see Engine; another one may take
    its place between calls."""

    def __init__(self, description, engine, checks):
        super().__init__()
        self.description, self.engine, self.checks = description, engine, checks
        self._causal = description.causal
        self.__dict__["plain"] = tuple(description.layers)  # not modules of this one
        form = checks[0].first
        self._form = len(form) if isinstance(form, (tuple, list)) else 0
        parameters = list(inspect.signature(type(description.layers[0]).forward).parameters)
        self._names = [name for name in parameters if name != "self"]
        family = description.family
        self._contiguous = description.causal or family.rope or bool(family.bias)
        self.asked = _Asked()
        self.embed = self.embeddings = None  # an Embeddings, or why there is none
        self.head = None  # the class of a model that may read the row of token 0
        self.mean_length = None  # for which plans are chosen
        self.plain_calls = collections.Counter()
        self.eval()

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:  # a model may ask its layers what they are, such as attention_type
            return getattr(self.__dict__["plain"][0], name)

    def __repr__(self):
        d, engine = self.description, self.engine
        plans = [f"({batch},{seq_len}) by plan {plan['value']}{expected(plan)}"
                 for (batch, seq_len), plan in zip(engine.sizes[:_SHOWN], engine.plans)]
        more = [f"{len(engine.sizes) - _SHOWN} more sizes"] * (len(engine.sizes) > _SHOWN)
        return (f"Stack({d.path}: {len(d.layers)} layers {d.chain}, {engine.precision} on {d.place[0]}; " +
                "; ".join(plans + more) + ")")

    def count_plain(self, reason):
        """A call that the layers themselves run."""
        if self.asked.ran is not None:
            raise Refused(f"PyTorch's layers run: {reason}")
        self.plain_calls[reason] += 1

    def describe(self):
        d, engine = self.description, self.engine
        return (f"{len(d.layers)} layers {d.chain}, {d.heads} heads of {d.head_size}, ffn {d.ffn}, "
                f"{engine.precision}, sizes {', '.join(map(str, engine.sizes))}")

    # What PyTorch does to a module's weights cannot be done to the library's.

    def _apply(self, fn, *args, **kwargs):
        like = next(self.plain[0].parameters())
        moved = fn(torch.empty(1, dtype=like.dtype, device=like.device))
        if moved.dtype != like.dtype or moved.device != like.device:
            raise RuntimeError(f"the model's layers are fuseplan's, and stay {like.dtype} on {like.device}; "
                               f"{moved.dtype} on {moved.device} was asked for: call fuseplan.restore(model), convert "
                               "or move the model, and optimize it again" + _CHANGED)
        return super()._apply(fn, *args, **kwargs)

    def _load_from_state_dict(self, *args):
        raise RuntimeError("the model's layers are fuseplan's, and keep the weights that they have: call "
                           "fuseplan.restore(model), load others, and optimize it again" + _CHANGED)

    def _sort_arguments(self, args, kwargs, every):
        """The masks among them; refuses what changes what layers compute.  every: see _outputs()."""
        found = []
        named = list(zip(self._names[1:], args)) + list(kwargs.items())
        if len(args) >= len(self._names):
            raise Unsupported(f"{len(args) + 1} arguments are given to layers that take {len(self._names)}")
        for name, value in named:
            if value is None or value is False or (every and name == "output_hidden_states"):
                continue
            if name in _MASKS:
                found.append(masks.invert_padding(value) if name == "src_key_padding_mask" else value)
            elif name in _UNPADDED:
                raise Unsupported(f"the input holds several sequences without padding ({name}), and attention would "
                                  "cross them: load the model with attn_implementation='sdpa'")
            elif name == "is_causal" and bool(value) != self.description.causal:
                raise Unsupported(f"is_causal is {value}; the model's layers have the mask '{self.description.mask}'")
            elif name not in _HARMLESS and not (isinstance(value, (tuple, list)) and not any(
                    part is not None for part in value)):
                raise Unsupported(f"{name} is given; fuseplan's layers have none: pass none, or call "
                                  "fuseplan.restore(model)")
        return found

    def forward(self, *args, **kwargs):
        if torch.compiler.is_compiling():  # what a thread asks for is not to be traced: the graph ends here
            return torch.compiler.disable(self._run)(*args, **kwargs)
        return self._run(*args, **kwargs)

    def _run(self, *args, **kwargs):
        return self.answer(self._outputs(False, args, kwargs)[-1])

    def run_each(self, *args, **kwargs):
        """The outputs of all layers (B,S,D)."""
        return self._outputs(True, args, kwargs)

    def answer(self, y):
        """As a layer does."""
        return (y,) + (None,) * (self._form - 1) if self._form else y

    def _outputs(self, every, args, kwargs):
        """The outputs of all layers, or of the last one alone."""
        if args:
            x, args = args[0], args[1:]
        else:
            x = kwargs.pop(next(name for name in _INPUTS if name in kwargs))
        if self.training:
            raise Unsupported("the model is in training mode; fuseplan's layers have no dropout: call model.eval()")
        found = self._sort_arguments(args, kwargs, every)
        if x.dim() != 3:
            raise Unsupported(f"the layers' input has the shape {tuple(x.shape)}; expected (B,S,D): load the model "
                              "with attn_implementation='sdpa'")
        engine = self.engine
        if x.is_nested or x.shape[1] > engine.longest:
            if self.description.window:
                raise Unsupported(f"the input has {x.shape[1]} tokens, and the layers' longest plan {engine.longest}: "
                                  "optimize the model again, with shapes for as many")
            self.count_plain("nested tensors" if x.is_nested else f"more than {engine.longest} tokens")
            plain = [layer.forward for layer in self.plain] if every else self.plain  # stands call their hooks
            return self.run_layers(plain, x, args, kwargs)
        lengths, order, bad = self.asked.lengths, None, None
        if self.asked.mask is not None:
            found = [self.asked.mask]
        elif self.asked.whole:
            found = []
        if lengths is None and found:
            lengths, order, bad = masks.read(found, x, self._causal, self._contiguous, engine.module)
        if self.asked.odd is not None:
            bad = self.asked.odd if bad is None else bad | self.asked.odd
        found = engine.run(x, lengths, order, self.asked.ran, every)
        if bad is not None:
            found = [y.masked_fill(bad[:, None, None], float("nan")) for y in found]
        if not self._causal and order is not None:
            self._hide_first(found[-1], order[:, 0] != 0)
        elif not self._causal and lengths is not None and lengths.dim() == 2:
            self._hide_first(found[-1], lengths[:, 0] == 0)
        return found

    def _hide_first(self, y, padding):
        """Where token 0 is padding (B), its row says nothing; a head may read it."""
        if self.head is None:
            y.first_is_padding = padding  # for hide_pooled()
            return
        if not y.is_cuda and padding.any():
            raise Unsupported(f"token 0 of sequence {int(padding.int().argmax())} is padding, and the head of a "
                              f"{self.head} may read it: set tokenizer.padding_side='right'")
        y[:, 0].masked_fill_(padding[:, None], float("nan"))

    def run_layers(self, layers, x, args, kwargs):
        """The outputs of layers like those of the stack.  T5's first one gives its bias to the others."""
        output, outputs = None, []
        for layer in layers:
            output = layer(x, *args, **kwargs)
            x = tensor_of(output)
            outputs.append(x)
            if self.description.family.bias == "t5" and layer is layers[0]:
                bias = next(t for t in output[1:] if isinstance(t, torch.Tensor) and t.dim() == 4)
                kwargs = {**dict(zip(self._names[1:], args)), **kwargs, "position_bias": bias}
                args = ()
        return outputs


def expected(plan):
    """", 12.3 us a layer" of a manifest's plan that was measured on this device, else nothing."""
    us = plan["us_per_layer"]
    return "" if us is None else f", {us:.1f} us a layer"


def _marks_of(description):
    return [(id(t), t.data_ptr(), None if t.is_inference() else t._version)
            for layer in description.layers for t in layer.parameters()]


class Engine:
    """A library with the weights of a stack.  module: encoder.py beside the library; about: what the cache knows."""

    def __init__(self, description, module, model, about):
        self.module, self.about = module, about
        self.type_name = ("fp32", "tf32", "fp16", "bf16")[module.info.dtype]
        gemms = about.get("precision")
        self.precision = f"{self.type_name} with {gemms} in e4m3" if gemms else self.type_name
        self.dtype = module._dtype
        self.sizes = module.sizes()
        self.longest = max(seq_len for _, seq_len in self.sizes)
        with open(os.path.join(os.path.dirname(module._path), "manifest.json"), encoding="utf-8") as file:
            self.plans = json.load(file)["plans"]  # of the sizes
        self._description, self._marks = description, _marks_of(description)
        self.layers = module.Layers(pack.pack_layers(description, self.dtype), description.eps,
                                    **pack.pack_shared(description, model, self.dtype, module.info.seq_len))
        self.calls = collections.Counter()
        self.replays = collections.Counter()  # calls among them
        self.seconds = collections.Counter()
        # Of the newest call of each shape, or its mask, see masks.read(); None: no padding.
        self.lengths = collections.OrderedDict()

    def has_old_weights(self):
        """Whether the layers' own, which the library has copied, have changed.  What .data changes does not show."""
        return self._marks != _marks_of(self._description)

    def run(self, x, lengths, order, ran=None, every=False):
        """A list of the output y (B,S,D) of the last layer, or with every of all.  x: of any type, as y is, its real
        rows first in each sequence, or where order says.  ran: see asking()."""
        shape, begun = (x.shape[0], x.shape[1]), time.perf_counter()
        found = self._run(x, lengths, order, every)
        if ran is not None:
            ran.append((self, shape))
        else:
            self.count(shape, time.perf_counter() - begun, lengths)
        return found

    def count(self, shape, seconds, lengths, replay=False):
        self.lengths.pop(shape, None)
        self.lengths[shape] = lengths  # they take memory of a GPU
        if len(self.lengths) > _LENGTHS:
            self.lengths.popitem(last=False)
        self.calls[shape] += 1
        self.replays[shape] += replay
        self.seconds[shape] += seconds

    def _run(self, x, lengths, order, every):
        given = x.dtype
        if given != self.dtype:
            x = x.to(self.dtype)
        if order is not None:
            batch, seq_len = order.shape
            rows = (order + torch.arange(0, batch * seq_len, seq_len, device=x.device)[:, None]).flatten()
            x = _take_rows(x, rows)
        found = self.layers.each(x, lengths) if every else [self.layers(x, lengths)]
        if order is not None:
            back = torch.empty_like(rows).scatter_(0, rows, torch.arange(len(rows), device=x.device))
            found = [_take_rows(y, back) for y in found]
        if given != self.dtype:
            found = [y.to(given) for y in found]
        return found


def _take_rows(x, rows):
    """Rows (B*S) of x (B,S,D): a copy by whole rows, where gather() looks for each element."""
    return x.flatten(0, 1).index_select(0, rows).view(x.shape)
