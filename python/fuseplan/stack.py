"""The modules that stand in the place of a model's layers."""

import collections
import contextlib
import copy
import inspect
import threading

import torch

from . import masks
from .engine import expected
from .finder import Unsupported
from .probe import tensor_of

# Arguments of layers: masks; what says nothing of what a layer computes, or what the stack has from elsewhere; what
# comes with several sequences in one, which attention would cross.
_MASKS = {"attention_mask", "attn_mask", "attention_bias", "src_key_padding_mask", "causal_attention_mask"}
_HARMLESS = {"cache_position", "num_items_in_batch", "position_ids", "position_embeddings", "position_bias", "alibi",
             "bias", "rope_embeds", "sliding_window_mask", "return_dict", "padding_inputs", "use_cache",
             "src_is_causal", "is_causal", "token_type_ids"}
_UNPADDED = {"cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "seq_idx", "cu_seqlens", "max_seqlen",
             "subset_indices"}
_INPUTS = ("hidden_states", "x", "src")
_CHANGED = "; the model's other parts may have changed already"
_SHOWN = 4  # sizes in a text of one line


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

    def train(self, mode=True):
        """Of the layers as well, which restore() puts back."""
        if mode != self.training:
            for layer in self.plain:
                layer.train(mode)
        return super().train(mode)

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
