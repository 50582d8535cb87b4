"""encode(): embeddings of many sentences, without padding and without waiting for the tokenizer."""

import contextlib
import itertools
import operator
import queue
import threading

import numpy as np
import torch

from . import arguments, finder, graphs, program
from .stack import Layers, asking

_WINDOW = 4096  # sentences that are tokenised at once; each window's are sorted by length
_COMPARED = 8  # of these by the tokenizer's own call, too
_PLAIN = 32  # that are longer than any plan run together, as in SentenceTransformer.encode()
_NUMBERS = {"input_ids": operator.attrgetter("ids"), "token_type_ids": operator.attrgetter("type_ids")}


def encode(model, sentences, *, prompt_name=None, prompt=None, normalize_embeddings=False, convert_to_tensor=False,
           batch_size=None, truncate_dim=None, progress=False):
    """Embeddings of sentences, as SentenceTransformer.encode() gives them: (N,D) in numpy, or with convert_to_tensor
    a tensor on the model's device; of one string (D), of none (0).

    model: a SentenceTransformer whose layers optimize() has replaced. A thread tokenises the longest sentences first,
    ahead of the layers. truncate_dim: how many columns to keep, by default as the model says. Padding stands on the
    right even where the tokenizer pads on the left, so a sentence has the embedding that it has alone. Sentences of
    about the same length run together, as many as the largest plan for that length takes (32 where none does), or
    batch_size; no mask is read, and layers compute no rows of padding. On a GPU one small batch alone, whose size comes
    again, runs as a CUDA graph. progress: True: a line on stderr; or a function that is called with each event, a
    dict of the numbers of sentences `done` and `total`."""
    one = isinstance(sentences, str)
    texts = [sentences] if one else arguments.strings_of("sentences", sentences)
    arguments.check(None, progress, batch_size=batch_size, truncate_dim=truncate_dim)
    arguments.check_kind("prompt", prompt, (str, type(None)), "a str")
    arguments.check_kind("prompt_name", prompt_name, (str, type(None)), "a str")
    stack = _stack_of(model)
    prompt = _find_prompt(model, prompt, prompt_name)
    columns = getattr(model, "truncate_dim", None) if truncate_dim is None else truncate_dim
    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    out = None
    with (_ahead(lambda: _tokenise(model, prompt, texts, order)) as windows, torch.inference_mode(),
          program.reported("fuseplan encode", progress) as report):
        done = 0
        for window in windows:
            for batch in _split(stack, window.lengths, batch_size):
                found = _run(model, stack, window, batch, prompt, alone=len(batch) == len(texts))
                found = found[:, :columns]
                if normalize_embeddings:
                    found = torch.nn.functional.normalize(found, dim=1)
                if out is None:
                    out = found.new_empty(len(texts), found.shape[1])
                out[_pin(out.device, torch.from_numpy(window.places[batch.start:batch.stop])).to(
                    out.device, non_blocking=True)] = found
                done += len(batch)
                if report:
                    report({"event": "step", "phase": "sentences", "done": done, "total": len(texts)})
    if out is None:
        out = torch.empty(0, device=stack.description.place[0])
    out = out if convert_to_tensor else _to_numpy(out)
    return out[0] if one else out


def _to_numpy(t):
    return (t.float() if t.dtype == torch.bfloat16 else t).cpu().numpy()


def _stack_of(model):
    base = finder.unwrap(model)
    found = [m for m in base.modules() if isinstance(m, Layers)]
    if not hasattr(model, "encode") or base is model or len(found) != 1:
        raise finder.Unsupported(f"the model is a {type(model).__name__}; expected a SentenceTransformer whose layers "
                                 "are fuseplan's: call optimize() first")
    return found[0].stack


def _find_prompt(model, prompt, name):
    """As SentenceTransformer does."""
    if prompt is not None:
        return prompt
    prompts, name = getattr(model, "prompts", {}), name or getattr(model, "default_prompt_name", None)
    if name is None:
        return ""
    if name not in prompts:
        raise ValueError(f"prompt_name is '{name}'; expected one of {', '.join(prompts) or 'none'}")
    return prompts[name] or ""


# ---- tokens ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _ahead(produce):
    """An iterator over what produce() yields, which runs in a thread, two items ahead."""
    items, stopped = queue.Queue(maxsize=2), threading.Event()

    def put(item):
        while not stopped.is_set():
            try:
                return items.put(item, timeout=0.1)
            except queue.Full:
                pass

    def work():
        try:
            for item in produce():
                put((item, None))
                if stopped.is_set():
                    return
            put((None, None))
        except BaseException as error:  # raised again where the items are taken
            put((None, error))

    def take():
        while True:
            item, error = items.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield take()
    finally:
        stopped.set()
        thread.join()


class _Window:
    """Tokenised sentences, the longest first: places in the texts, lengths, and by name the numbers of all tokens, one
    sentence behind the other."""

    def __init__(self, places, rows):
        """rows: by name, the numbers of each sentence; in the order of places."""
        lengths = np.array([len(row) for row in rows["input_ids"]])
        by_length = np.argsort(-lengths, kind="stable")
        self.places, self.lengths = np.array(places)[by_length], lengths[by_length]
        self.first = np.concatenate([[0], np.cumsum(self.lengths)])
        self.columns = {name: np.fromiter(itertools.chain.from_iterable(of[i] for i in by_length), dtype=np.int64,
                                          count=self.first[-1]) for name, of in rows.items()}

    def pad(self, name, batch, longest, filler):
        """(n,longest) of the sentences of a range."""
        out = np.full((len(batch), longest), filler, dtype=np.int64)
        real = np.arange(longest) < self.lengths[batch.start:batch.stop, None]
        out[real] = self.columns[name][self.first[batch.start]:self.first[batch.stop]]
        return torch.from_numpy(out)


def _tokenise(model, prompt, texts, order):
    """Windows of sentences, the longest sentences first."""
    lower = getattr(model[0], "do_lower_case", False)
    strips = not hasattr(model[0], "preprocess")  # sentence-transformers before 6
    for begin in range(0, len(order), _WINDOW):
        places = order[begin:begin + _WINDOW]
        chosen = [prompt + (texts[i].strip() if strips else texts[i]) for i in places]
        chosen = [text.lower() for text in chosen] if lower else chosen
        window = _Window(places, _tokens_of(model, chosen))
        if window.lengths[-1] == 0:
            raise ValueError(f"sentence {window.places[-1]} has no tokens: the tokenizer adds none of its own; leave "
                             "it out")
        yield window


def _tokens_of(model, texts):
    """By name, the numbers of each text.  A tokenizer of the library `tokenizers` is asked itself: to make dictionaries
    of all that it knows takes longer than to tokenise.  The tokenizer's own call sets how it truncates, and must give
    the same for some of the texts."""
    def call(some):
        return dict(model.tokenizer(some, truncation="longest_first", max_length=model.max_seq_length, padding=False,
                                    return_attention_mask=False))
    first = call(texts[:_COMPARED])
    if len(texts) <= _COMPARED:
        return first
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    encode = getattr(backend, "encode_batch_fast", None) or getattr(backend, "encode_batch", None)
    if encode and set(first) <= set(_NUMBERS) and _calls_alone(model.tokenizer):
        found = encode(texts)
        rows = {name: [_NUMBERS[name](of) for of in found] for name in first}
        if all(rows[name][:len(of)] == of for name, of in first.items()):
            return rows
    return call(texts)


def _calls_alone(tokenizer):
    """Whether its call hands texts on as they are: its class has no call of its own."""
    calls = (getattr(type(tokenizer), name, None) for name in ("__call__", "_encode_plus", "_batch_encode_plus"))
    return all(call is None or call.__module__.startswith("transformers.tokenization_utils") for call in calls)


def _split(stack, lengths, batch_size):
    """Ranges of sentences that run together.  lengths: of tokens, the longest first."""
    begin, sizes = 0, stack.engine.sizes
    while begin < len(lengths):
        fitting = [b for b, seq_len in sizes if seq_len >= lengths[begin]]
        count = batch_size or max(fitting, default=_PLAIN)
        yield range(begin, min(begin + count, len(lengths)))
        begin += count


# ---- a batch ---------------------------------------------------------------------------------------


def _run(model, stack, window, batch, prompt, alone):
    """(n,D) of a range of n sentences, the longest first.  alone: no other batch comes; else the GPU is busy meanwhile,
    and what a graph would save of the host's time is not missing."""
    device, longest = stack.description.place[0], int(window.lengths[batch.start])
    lengths = _pin(device, torch.from_numpy(window.lengths[batch.start:batch.stop].astype(np.int32)))
    base = finder.unwrap(model)
    skipped = 0  # tokens of the prompt, in pooling
    if prompt and not getattr(model[1], "include_prompt", True):
        skipped = _prompt_tokens(model, prompt)
    around = graphs.graphs_around(model, base, [stack])
    wide = alone and around and around.can() and around.widen(len(batch), longest)
    fillers = {"input_ids": model.tokenizer.pad_token_id}
    inputs = {name: _pin(device, window.pad(name, batch, wide or longest, fillers.get(name, 0))).to(
        device, non_blocking=True) for name in window.columns}
    if wide:
        moved = lengths.to(device, non_blocking=True)
        found = _replay(around, model, base, stack, {**inputs, "lengths": moved}, skipped)
        if found is not None:
            return found[0]
    with asking([stack], lengths=lengths):  # on the host: then products are of real tokens alone
        return _embed(model, base, inputs, lengths.to(device, non_blocking=True), skipped)


def _prompt_tokens(model, prompt):
    """As sentence-transformers counts them: without a special token at the end."""
    count = next((f for f in (getattr(of, "_get_prompt_length", None) for of in (model[0], model)) if f), None)
    return count(prompt) if count else len(model.tokenizer(prompt)["input_ids"]) - 1


def _replay(around, model, base, stack, tensors, skipped):
    def run(inputs, ran):
        inputs = dict(inputs)
        lengths = inputs.pop("lengths")
        with asking([stack], lengths=lengths, ran=ran):
            return _embed(model, base, inputs, lengths, skipped)
    return around.run((skipped, *tensors, tensors["input_ids"].shape), tensors, run)


def _embed(model, base, inputs, lengths, skipped):
    """The model and what pools its rows.  lengths: on the device."""
    tokens = inputs["input_ids"]
    mask = (torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]).long()
    run = base if graphs.graphs_of(base) is None else base._call_impl  # not by a graph of the base alone
    result = run(**inputs, attention_mask=mask, return_dict=True)
    features = {"input_ids": tokens, "attention_mask": mask, "token_embeddings": result[0]}
    hidden = getattr(result, "hidden_states", None)  # if the model's config asks for them
    if hidden is not None:
        features["all_layer_embeddings"] = hidden
    if skipped:
        features["prompt_length"] = skipped
    for module in list(model)[1:]:
        features = module(features)
    return features["sentence_embedding"]


def _pin(device, t):
    return t.pin_memory() if device.type == "cuda" else t
