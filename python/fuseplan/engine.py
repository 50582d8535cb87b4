"""A library with the weights of a stack, which counts its calls."""

import collections
import json
import os
import time

import torch

from . import pack

_LENGTHS = 256  # shapes of calls, the newest, of whose lengths an engine knows


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
