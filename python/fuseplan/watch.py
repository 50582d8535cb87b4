"""What stands around the layers of a model: hooks, and what is called in the place of some of its parts."""

import copy
import functools
import inspect
import threading

import torch

from . import masks
from .stack import Layers


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


def is_own(hook):
    return (hook is hide_pooled or isinstance(getattr(hook, "__self__", None), Watch) or
            getattr(hook, "__module__", "").startswith("transformers."))
