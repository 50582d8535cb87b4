"""What CUDA graphs of a model depend on, and a call might find changed."""

import operator

import torch

_get, _address, _SIMPLE = dict.get, torch.Tensor.data_ptr, (bool, int, float, str)


class Held:
    """Looks at all of it in some microseconds: what is compared in each call lies in lists, through which no loop of
    Python's goes.  What graphs read of tensors is kept, and may be written to.  fields: whether a module's own numbers
    and texts count; else its config has them."""

    def __init__(self, model, stacks, fields):
        modules = list(model.modules())
        held, tensors = [(vars(stack), "engine") for stack in stacks], []
        for module in modules:
            own = vars(module)
            held += [(own, "forward"), (own, "training")]
            held += [(own, name) for name, value in own.items() if fields and isinstance(value, _SIMPLE)]
            held += [(own["_modules"], name) for name in own["_modules"]]
            tensors += [(part, name) for part in (own["_parameters"], own["_buffers"]) for name in part]
        self._dicts, self._names = zip(*held)
        self._values = [*map(_get, self._dicts, self._names)]
        self._tensor_dicts, self._tensor_names = zip(*tensors) if tensors else ((), ())
        self._tensors = [*map(_get, self._tensor_dicts, self._tensor_names)]
        self._present = [t for t in self._tensors if t is not None]
        self._addresses = [*map(_address, self._present)]
        self._kept = [t.detach() for t in self._present]  # whose memory the graphs read
        configs = [getattr(module, "config", None) for module in modules]
        self._configs = [*{id(c): vars(c) for c in configs if hasattr(c, "__dict__")}.values()]
        self._before = [dict(fields) for fields in self._configs]

    def same(self):
        return ([*map(_get, self._dicts, self._names)] == self._values and
                all(map(operator.is_, map(_get, self._tensor_dicts, self._tensor_names), self._tensors)) and
                [*map(_address, self._present)] == self._addresses and self._configs == self._before)
