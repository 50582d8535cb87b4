"""optimize(), restore(), explain(), stats()."""

import collections.abc
import copy
import re
import weakref

import torch

from . import arguments, capture, embeddings, finder, graphs as _graphs, library, masks, precision as _precision, probe
from .calibration import half_of, scales_of
from .engine import Engine, expected
from .finder import Unsupported
from .stack import Layers, Stack
from .watch import Entry, Unnested, Watch, hide_pooled

# The largest relative L2 distance to the model itself, over rows of tokens.  One that is itself farther from its
# layers in fp32, as T5's attention may be, which has no scale, is no measure: see _is_as_near().
BOUNDS = {"fp32": 1e-4, "tf32": 4e-3, "fp16": 1e-2, "bf16": 8e-2}
_BATCHES = (1, 8, 64)  # of a library for which no shapes are named
_LENGTHS = (32, 128, 512)

_TOKEN_HEADS = ("ForTokenClassification", "ForMaskedLM", "ForQuestionAnswering", "ForCTC")  # read a token's own row

_done = weakref.WeakKeyDictionary()  # of models that were optimised: what was refused in them, by path


class Wrong(RuntimeError):
    """The library's results are not the model's: it is not used."""


def optimize(model, shapes=None, time_limit=None, dtype=None, *, mean_length=None, example=None, progress=True,
             graphs=True, precision=None, calibration=None, tokenizer=None, error=None):
    """Gives the encoder layers of a model to fuseplan's kernels, and returns the model.

    model: a HuggingFace model, also one with a head, a SentenceTransformer, a CrossEncoder, a torch.nn.Module with
    torch.nn.TransformerEncoder in it, or a ModuleList of layers, whose place the returned one takes; in eval mode,
    on the device where it will run.
    shapes: (batch, tokens) pairs that are to be fast.  Others run, too: smaller ones by the next larger plan, larger
    batches in pieces; of longer sequences PyTorch's layers take over.  None: batches of 1, 8 and 64, and 32, 128 and
    512 tokens, at most the model's positions; of images and sounds their one length.
    time_limit: seconds in which to search for the fastest plans; None: the best that are known, else default ones.
    mean_length: of tokens of a sequence in calls with an attention mask, whose padding layers do not compute; for as
    many plans are chosen.  None: for sequences without padding.
    dtype: in which the layers compute, such as torch.float16, "tf32"; None: the model's own.
    example: keyword arguments of a call of the model, where fuseplan does not know what the model takes.
    progress: True: a line on stderr; False; or a function that is called with each event of `fuseplan --events`.
    graphs: on a GPU, whether calls whose sizes come again run as CUDA graphs of the whole model.
    precision: on Hopper GPUs, GEMMs with operands of e4m3, 8-bit floating-point numbers: "fp8", all four, or some of
    "qkv,out,ffn1,ffn2".  All else is fp16, or bf16 if the model or dtype is.
    calibration: for it, some hundred sentences of the kind that the model will get, or the file of calibrate().
    tokenizer: for sentences, unless the model is a SentenceTransformer.
    error: in the place of precision: the search chooses these GEMMs so that the layers' relative L2 distance on the
    sentences is at most this, by what each GEMM alone loses.

    The results are compared with those of the model first, and nothing is replaced unless they agree: else Wrong is
    raised.  Unsupported says what a model has that no plan computes, ProgramError what the program could not do."""
    shapes = arguments.shapes_of(shapes)
    arguments.check(time_limit, progress, mean_length=mean_length)
    arguments.check_kind("example", example, (collections.abc.Mapping, type(None)),
                         "a dict of arguments of a call of the model")
    if dtype is not None:
        library.type_name(dtype)
    gemms = _precision.check(precision, calibration, error, time_limit, dtype)
    whole, base = model, finder.unwrap(model)
    finder.check_whole(base)
    before, had = [layers.stack for layers in find_layers(base)], _graphs.graphs_of(base)
    base = restore(base)
    try:
        wanted = {"time_limit": time_limit, "progress": progress, "mean_length": mean_length, "wish": None}
        if calibration is not None:
            plain = whole if finder.unwrap(whole) is base else base
            wanted["wish"] = _precision.make_wish(plain, gemms, calibration, error, tokenizer, dtype)
        made, refused = _make_all(base, example, shapes, dtype, wanted)
    except BaseException:
        for stack in before:
            if not isinstance(model, Layers):  # which is as it was
                _replace(base, stack)
        if had is not None:
            _graphs.install(base, before)
        raise
    for stack in made:
        base = _replace(base, stack)
    if graphs:
        _graphs.install(base, made)
    _done[base] = refused
    return base if isinstance(base, Layers) else whole


def _make_all(model, example, shapes, dtype, wanted):
    """Modules for the model's stacks, and why there is none for others, by their path.  wanted: of library.get()."""
    stacks, refused = finder.find_stacks(model)
    made, runs = [], _record(model, stacks, example, shapes)
    for i, stack in enumerate(stacks):
        calls = [run[i] for run in runs if run[i] is not None]
        if calls:
            def again(i=i):
                return [run[i] for run in _record(model, stacks, example, shapes) if run[i] is not None]
            made.append(_make(model, stack, calls, again, shapes, dtype, wanted))
        else:
            refused[stack.path] = "no call of the model reached these layers"
    if not made:
        raise Unsupported(f"{type(model).__name__}: " + "; ".join(f"{p}: {why}" for p, why in refused.items()))
    return made, refused


def _record(model, stacks, example, shapes):
    """Calls of the model: of each a list of what the stacks got."""
    most = min(max(seq_len for _, seq_len in shapes or [(1, 96)]), probe.longest(model) or 96, 96)
    if isinstance(model, torch.nn.ModuleList):
        return [probe.record(model, stacks, lambda: _run_list(model, most, stacks[0]))]
    if example is not None:
        return [probe.record(model, stacks, lambda: probe.run_model(model, example))]
    try:
        return _record_drawn(model, stacks, most)
    except Unsupported:
        raise
    except Exception as error:  # of the model's own code
        raise Unsupported(f"a {type(model).__name__} fails on what fuseplan drew for it ({error}): if it takes "
                          "something else, give optimize() the arguments of a call, example={...}") from error


def _record_drawn(model, stacks, most):
    if not hasattr(model, "config"):
        return [probe.record(model, stacks, lambda: _run_module(model, most, stacks[0]))]
    runs = []
    for batch, lengths in ((2, None), (3, [most, max(most // 2, 1), 1])):
        inputs, real = probe.draw_inputs(model, batch, most, lengths)
        run = probe.record(model, stacks, lambda: probe.run_model(model, inputs))
        for call in run:
            if call is not None and real is not None and call.x.shape[:2] == real.shape:
                call.real = real
        runs.append(run)
    return runs


def _run_list(layers, seq_len, stack):
    x = _draw_x(stack, seq_len)
    for layer in layers:
        x = probe.tensor_of(layer(x))


def _run_module(model, seq_len, stack):
    model(_draw_x(stack, seq_len))


def _draw_x(stack, seq_len):
    device, dtype = stack.place
    generator = torch.Generator(device).manual_seed(0)
    return torch.randn(2, seq_len, stack.hidden, device=device, dtype=dtype, generator=generator)


def _shapes_of(model, calls, shapes):
    if shapes is not None:
        return shapes
    if hasattr(model, "config") and all(call.real is None for call in calls):  # of images and sounds: one length
        lengths = (calls[0].x.shape[1],)
    else:
        most = probe.longest(model) if hasattr(model, "config") else None
        lengths = sorted({min(s, most or s) for s in _LENGTHS})
    return [(batch, seq_len) for batch in _BATCHES for seq_len in lengths]


def _make(model, stack, calls, again, shapes, dtype, wanted):
    """The module for a stack, which computes what its layers do.  again(): the calls anew."""
    wish, loss = wanted["wish"], 0.0
    half = half_of(dtype, stack)
    own = stack.place[1]
    if dtype is None and own == torch.float64:
        raise Unsupported(f"the model is in {own}, which fuseplan's layers do not compute in: give dtype=torch.float32")
    name = library.type_name(half if wish else dtype or own)
    module, about = library.get(stack, name, _shapes_of(model, calls, shapes), **wanted)
    if about.get("precision"):
        with _precision.rounded(stack, scales_of(wish.path), _precision.names_of(about["precision"]), half):
            loss = _precision.loss(calls, again())
    made = Stack(stack, None, calls)
    made.mean_length = wanted["mean_length"]
    made.engine = made_engine(made, module, model, about, loss)
    made.embeddings = embeddings.find_refusal(dict(_above(model, stack)).get(_whole(model, stack)), made)
    return made


def made_engine(made, module, model, about, loss):
    """An engine for a stack, whose results are those of the stack's layers.  loss: what rounding to e4m3 costs."""
    d = made.description
    with torch.no_grad():
        with capture.lock:  # an engine waits for the GPU
            engine = Engine(d, module, model, about)
        trial = Stack(d, engine, made.checks)
        errors = [_compare(trial, call) for call in made.checks]
        engine.error = float(torch.tensor(errors, dtype=torch.float64).max())  # NaN, if any is
        engine.loss = loss
    if trial.plain_calls:
        most = max(call.x.shape[1] for call in made.checks)
        raise ValueError(f"{d.path}: the model calls its layers with {most} tokens, and shapes have at most "
                         f"{engine.longest}: name the model's")
    bound = BOUNDS[engine.type_name] + 1.5 * loss  # numbers next to the middle of two of e4m3 go to either
    if not engine.error <= bound and (loss or not _is_as_near(trial, made.checks)):
        raise Wrong(f"{d.path}: the library's results differ from the model's by {engine.error:.2g} (relative L2); "
                    f"expected at most {bound:.2g} in {engine.precision}: the model is as it was")
    engine.calls.clear()
    engine.seconds.clear()
    return engine


def _is_as_near(stack, calls):
    """Whether the library's results are about as near to those of the layers in fp32 as the model's are."""
    with torch.no_grad():
        layers = [copy.deepcopy(layer).float() for layer in stack.plain]
        for call in calls:
            x, args, kwargs = _in_fp32((call.x, call.args, call.kwargs))
            exact = stack.run_layers(layers, x, args, kwargs)[-1]
            got = probe.tensor_of(stack(call.x, *call.args, **call.kwargs))
            if not probe.distance(got, exact, call.real) <= 1.25 * probe.distance(call.y, exact, call.real):
                return False
    return True


def _in_fp32(value):
    if isinstance(value, (tuple, list)):
        return type(value)(_in_fp32(part) for part in value)
    if isinstance(value, dict):
        return {name: _in_fp32(part) for name, part in value.items()}
    return value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _compare(stack, call):
    got = probe.tensor_of(stack(call.x, *call.args, **call.kwargs))
    if got.shape != call.y.shape:
        raise Wrong(f"{stack.description.path}: the library gives {tuple(got.shape)}, the model {tuple(call.y.shape)}")
    return probe.distance(got, call.y, call.real)


def _replace(model, stack):
    """Puts it into the model; returns the model, or what takes the place of a list."""
    d = stack.description
    layers = Layers(stack)
    if d.owner is model and d.attribute == "":
        return layers
    above, whole = _above(model, d), _whole(model, d)
    stack.hooks = [module.pooler.register_forward_hook(hide_pooled) for _, module in above
                   if isinstance(getattr(module, "pooler", None), torch.nn.Module)]
    if getattr(d.owner, "use_nested_tensor", False):
        d.owner.use_nested_tensor = Unnested(d.owner)
        stack.hooks.append(d.owner.use_nested_tensor)
    stack.head = _find_head(module for _, module in above)
    for i, (path, module) in enumerate(above):
        # Models of transformers 4 look through tokens for padding if they get no mask.
        takes_mask = path == whole and d.family.mask_in_layers and finder.transformers_5() is not None
        entry = _enter(stack, module) if hasattr(module, "base_model_prefix") else None
        embeds = path == whole and stack.embeddings is None
        if embeds:
            stack.embed = vars(module.embeddings)["forward"] = embeddings.Embeddings(module.embeddings, stack)
            stack.hooks.append(stack.embed)
        stack.hooks += _watch(module, Watch(layers, module, module is d.owner, i == 0, takes_mask, embeds, entry))
    stack.replaced = [getattr(d.owner, d.attribute)]  # in a list: not a module of the stack
    setattr(d.owner, d.attribute, layers)
    return model


def _above(model, description):
    """(path, module) of what loops over the list, or is a model of transformers around it."""
    return [(path, module) for path, module in model.named_modules() if _is_above(path, module, description)]


def _whole(model, description):
    """The path of the innermost such model, or None."""
    return max((path for path, module in _above(model, description) if hasattr(module, "base_model_prefix")), key=len,
               default=None)


def _find_head(modules):
    """The class of the one with a head that may read the row of token 0, or None."""
    for module in modules:
        name, config = type(module).__name__, getattr(module, "config", None)
        if (re.search("For[A-Z]", name) and not name.endswith(_TOKEN_HEADS) and
                not getattr(config, "is_encoder_decoder", False) and
                getattr(config, "classifier_pooling", None) not in ("mean", "late")):
            return name
    return None


def _is_above(path, module, description):
    """Whether it loops over the list, or is a model of transformers around it."""
    below = not path or description.path.startswith(path + ".")
    return module is description.owner or (below and hasattr(module, "base_model_prefix"))


def _enter(stack, module):
    """What stands in the place of the module's forward(): another stack's may do so already."""
    found = vars(module).get("forward")
    if not isinstance(found, Entry):
        found = vars(module)["forward"] = Entry(module)
        stack.hooks.append(found)
    return found


def _watch(module, watch):
    return (module.register_forward_pre_hook(watch.before, with_kwargs=True),
            module.register_forward_hook(watch.after, always_call=True))


# ---- models that were optimised --------------------------------------------------------------------


def find_layers(model):
    """The Layers in a model."""
    base = finder.unwrap(model)
    return [module for module in base.modules() if isinstance(module, Layers)]


def stacks_of(model):
    found = find_layers(model)
    if not found:
        raise ValueError(f"no layers of the {type(model).__name__} are fuseplan's: call optimize() first")
    return [layers.stack for layers in found]


def restore(model):
    """Puts the model's own layers back, and returns the model."""
    base = finder.unwrap(model)
    if isinstance(base, Layers):
        return base.plain
    _graphs.remove(base)
    for layers in find_layers(base):
        d = layers.stack.description
        setattr(d.owner, d.attribute, layers.stack.replaced[0])
        for hook in layers.stack.hooks:
            hook.remove()
    _done.pop(base, None)
    return model


def explain(model):
    """What was replaced, by what, and what was not: a text."""
    lines = []
    for stack in stacks_of(model):
        engine = stack.engine
        searched = engine.about.get("searched_s")
        lines += [f"{stack.description.path}: {stack.describe()}",
                  f"  relative L2 distance to the model: {engine.error:.2g}" +
                  (f", and of its own layers with these GEMMs in e4m3 {engine.loss:.2g}" if engine.loss else ""),
                  "  embeddings: by " + (f"the model's own module: {stack.embeddings}" if stack.embeddings else
                                        "the library, without rows of padding"),
                  f"  plans: {'searched for %g s' % searched if searched else 'best known, or default'}",
                  f"  library: {engine.module._path}"]
        if engine.has_old_weights():
            lines.append(f"  weights: {_OLD}")
        for i, (batch, seq_len) in enumerate(engine.sizes):
            plan = engine.module._lib.encoder_plan_at(i).contents
            where = plan.measured_on.decode() if plan.measured_on else "never measured"
            lines.append(f"  ({batch},{seq_len}): plan {plan.value}, {plan.kernels} kernels a layer"
                         f"{expected(engine.plans[i])}, {where}")
    graphs = _graphs.graphs_of(finder.unwrap(model))
    if graphs is not None:
        lines.append(f"CUDA graphs: {graphs.describe()}")
    for path, why in _done.get(finder.unwrap(model), {}).items():
        lines.append(f"{path}: not replaced: {why}")
    return "\n".join(lines)


_OLD = "the model's have changed since optimize() copied them: call it again"


def refuse_old_weights(stack):
    if stack.engine.has_old_weights():
        raise ValueError(f"{stack.description.path}: {_OLD}")


def lengths_of(engine, shape):
    """Of the sequences in the newest call of a shape; None: later calls had too many other ones.  It waits for the
    GPU."""
    lengths = engine.lengths.get(shape, False)
    if lengths is False:
        return None
    if lengths is None:
        return [shape[1]] * shape[0]
    with capture.lock:
        return (lengths if lengths.dim() == 1 else masks.count(lengths, shape[0])).tolist()


def stats(model):
    """Of each stack by its path: calls of each shape, how many of them were replays of a CUDA graph, with the plan's
    size that ran it, the share of its rows that was padding in its newest call (None, where calls of 256 other shapes
    came later), and the mean time of a call in microseconds (on a GPU the host's, of a replay the whole model's), and
    calls that the model's own layers ran, by the reason.  embeddings: calls whose embeddings the library wrote, without
    replays.  It waits for the GPU."""
    found = {}
    for stack in stacks_of(model):
        engine = stack.engine
        shapes = {}
        for (batch, seq_len), count in sorted(engine.calls.items()):
            index, real = engine.module._lib.encoder_find(batch, seq_len), lengths_of(engine, (batch, seq_len))
            shapes[batch, seq_len] = {"calls": count, "replays": engine.replays[batch, seq_len],
                                      "us": engine.seconds[batch, seq_len] / count * 1e6,
                                      "padding": None if real is None else 1 - sum(real) / (batch * seq_len),
                                      "plan": engine.sizes[index] if index >= 0 else "in pieces"}
        found[stack.description.path] = {"shapes": shapes, "plain": dict(stack.plain_calls),
                                         "embeddings": stack.embed.calls if stack.embed else 0}
    return found
