"""Better plans for the shapes that a model's calls have had."""

import threading

from . import arguments, finder, graphs, library, precision
from .replace import stacks_of, lengths_of, made_engine, refuse_old_weights


def learned(stack, most):
    """The shapes with the most tokens in calls so far, rounded up: batches to powers of 2, lengths to multiples of 16,
    unless all calls have one length."""
    calls = dict(stack.engine.calls)
    one = len({seq_len for _, seq_len in calls}) == 1
    tokens = {}
    for (batch, seq_len), count in calls.items():
        shape = 1 << (batch - 1).bit_length(), seq_len if one else -(-seq_len // 16) * 16
        tokens[shape] = tokens.get(shape, 0) + count * batch * seq_len
    longest = stack.engine.longest
    return [(batch, min(seq_len, longest)) for batch, seq_len in sorted(tokens, key=tokens.get, reverse=True)[:most]]


_FULL = 0.9  # share of real rows from which on plans are chosen for all rows


def mean_length(stack):
    """Of the sequences in the stack's calls; None: nearly all rows were real tokens."""
    engine, rows, tokens, sequences = stack.engine, 0, 0, 0
    for (batch, seq_len), count in dict(engine.calls).items():
        real = lengths_of(engine, (batch, seq_len))
        if real is None:
            continue
        rows += count * batch * seq_len
        tokens += count * sum(real)
        sequences += count * sum(length > 0 for length in real)  # on a GPU some may have no token
    return None if tokens >= _FULL * rows or not sequences else max(round(tokens / sequences), 1)


def tune(model, time_limit=60, most=4, progress=True):
    """Searches for plans of the shapes that the model's calls have had, at most so many, and lets the model run by
    them; for sequences as long as in these calls, unless optimize() was told a mean_length.  time_limit: in seconds,
    for all.  Shapes that the library has already stay.  Returns the shapes.  CUDA graphs that captured calls before
    must not be replayed after it."""
    arguments.check(time_limit, progress, most=most)
    base, shapes = finder.unwrap(model), []
    for stack in stacks_of(model):
        new = learned(stack, most)
        if not new:
            continue
        refuse_old_weights(stack)
        engine, all_shapes = stack.engine, [*stack.engine.sizes, *new]
        mean = stack.mean_length or mean_length(stack)
        mean = mean and min(mean, *(seq_len for _, seq_len in all_shapes))
        module, about = library.get(stack.description, engine.type_name, all_shapes, time_limit, progress, search=new,
                                    mean_length=mean, wish=precision.wish_of(engine.about))
        stack.engine = made_engine(stack, module, base, about, engine.loss)
        shapes += new
    found = graphs.graphs_of(base)
    if shapes and found is not None:
        found.drop()
    return shapes


class Tuning(threading.Thread):
    """tune() in a thread, while the model goes on.  After join() shapes has what tune() returned, or error why it
    failed; then the model runs as before."""

    def __init__(self, model, time_limit, most):
        super().__init__(daemon=True)
        self._arguments, self.shapes, self.error = (model, time_limit, most), [], None
        self.start()

    def run(self):
        try:
            self.shapes = tune(*self._arguments, progress=False)
        except Exception as error:  # of which the caller may ask
            self.error = error


def tune_in_background(model, time_limit=60, most=4):
    """Starts tune() and returns at once: see Tuning.  The search measures on the device that the model runs on."""
    arguments.check(time_limit, None, most=most)
    stacks_of(model)
    return Tuning(model, time_limit, most)
