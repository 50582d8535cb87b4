"""Results of calls, taken apart and made anew."""

import collections
import operator

import torch

from .stack import Refused


def builder(result, found):
    """Adds the tensors of a call's result to a list, each once.  Returns a function that makes a result like it of such
    a list of other tensors."""
    if isinstance(result, torch.Tensor):
        at = next((i for i, t in enumerate(found) if t is result), len(found))
        if at == len(found):
            found.append(result)
        return operator.itemgetter(at)
    if hasattr(result, "to_tuple"):  # a ModelOutput, of which __init__() takes as long as all else of a call
        return _dict_builder(type(result), vars(result), [(n, builder(part, found)) for n, part in result.items()])
    if type(result) in (tuple, list):
        kind, parts = type(result), [builder(part, found) for part in result]
        return lambda fresh: kind([part(fresh) for part in parts])
    if result is not None:
        raise Refused(f"the result has a {type(result).__name__}")
    return lambda fresh: None


def _dict_builder(kind, fields, parts, put=collections.OrderedDict.__setitem__):
    names = {name for name, _ in parts}
    fields = {name: value for name, value in fields.items() if name not in names}

    def build(fresh):
        new = kind.__new__(kind)
        own = new.__dict__
        own.update(fields)
        for name, part in parts:
            own[name] = value = part(fresh)
            put(new, name, value)
        return new
    return build
