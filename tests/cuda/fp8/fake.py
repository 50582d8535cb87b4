#!/usr/bin/env python3
"""What e4m3 operands cost an embedding model in accuracy, by rounding alone: no GPU, no kernel.

usage: fake.py MODEL_DIR SENTENCES [--count N] [--sets all|few] [--kinds KIND...]

MODEL_DIR   a BERT of HuggingFace, as all-MiniLM-L6-v2
SENTENCES   a text file, one a line: the first 256 calibrate, the next N are measured

Tensors are rounded where plans store them.  fp16 is: GEMMs' inputs, weights, q, k, v, and results
of layernorms are rounded to fp16, all else is fp32.  A set of bits names the GEMMs whose operands
become e4m3 then.  A KIND names scales of weights, and of inputs:

    pow2      a power of two a tensor, amax in (224, 448]; inputs static, amax in (112, 224]
    amax      amax / 448 a tensor; inputs static
    channel   amax / 448 an output channel; inputs as amax
    token     as channel; inputs dynamic, amax / 448 a token
"""
import argparse
import itertools
import math
import time

import torch
import transformers

LIMIT, CALIBRATION, BATCH = 448.0, 256, 64
GEMMS = ("qkv", "out", "ffn1", "ffn2")
KINDS = ("pow2", "amax", "channel", "token")


def half(x):
    return x.half().float()


def e4m3(x, scale):
    """The nearest values of e4m3, saturated."""
    return (x / scale).clamp(-LIMIT, LIMIT).to(torch.float8_e4m3fn).float() * scale


def power_of_two(amax, limit):
    """The least power of two that divides amax to limit or less."""
    return 2.0 ** math.ceil(math.log2(amax / limit))


class Gemm(torch.nn.Module):
    """A linear layer, or several of the same input as one, with rounded operands."""

    def __init__(self, linears, name):
        super().__init__()
        self.name = name
        self.exact = torch.cat([l.weight for l in linears]).detach()
        self.bias = torch.cat([l.bias for l in linears]).detach()
        self.weight, self.kind = self.exact, None
        self.amax, self.saturated, self.seen = 0.0, 0, 0

    def prepare(self, kind):
        """kind: None for fp32, "half", or of KINDS."""
        self.kind, self.saturated, self.seen = kind, 0, 0
        weight = self.exact if kind is None else half(self.exact)
        if kind == "pow2":
            weight = e4m3(weight, power_of_two(weight.abs().max().item(), LIMIT))
        elif kind == "amax":
            weight = e4m3(weight, weight.abs().max() / LIMIT)
        elif kind in ("channel", "token"):
            weight = e4m3(weight, weight.abs().amax(1, keepdim=True) / LIMIT)
        self.weight = weight

    def scale(self, x):
        if self.kind == "pow2":
            return power_of_two(self.amax, LIMIT / 2)
        if self.kind == "token":
            return x.abs().amax(-1, keepdim=True).clamp(min=1e-6) / LIMIT
        return self.amax / LIMIT

    def forward(self, x):
        if self.kind is None:
            self.amax = max(self.amax, x.abs().max().item())
        else:
            x = half(x)
            if self.kind != "half":
                scale = self.scale(x)
                self.saturated += (x.abs() > scale * LIMIT).sum().item()
                self.seen += x.numel()
                x = e4m3(x, scale)
        y = torch.nn.functional.linear(x, self.weight, self.bias)
        return half(y) if self.kind is not None and self.name == "qkv" else y


class Part(torch.nn.Module):
    """q, k or v: the first of them runs the GEMM, and the others take their columns."""

    def __init__(self, gemm, index, store):
        super().__init__()
        self.gemm, self.index, self.store = [gemm], index, store

    def forward(self, x):
        if self.index == 0:
            self.store["y"] = self.gemm[0](x).chunk(3, dim=-1)
        return self.store["y"][self.index]


class Model:
    def __init__(self, directory):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
        self.bert = transformers.AutoModel.from_pretrained(directory, dtype=torch.float32).eval()
        self.gemms, self.rounding = [], False
        for layer in self.bert.encoder.layer:
            own, store = layer.attention.self, {}
            qkv = Gemm([own.query, own.key, own.value], "qkv")
            own.query, own.key, own.value = (Part(qkv, i, store) for i in range(3))
            out = layer.attention.output.dense = Gemm([layer.attention.output.dense], "out")
            ffn1 = layer.intermediate.dense = Gemm([layer.intermediate.dense], "ffn1")
            ffn2 = layer.output.dense = Gemm([layer.output.dense], "ffn2")
            self.gemms += [qkv, out, ffn1, ffn2]
            for norm in (layer.attention.output.LayerNorm, layer.output.LayerNorm):
                norm.register_forward_hook(self.round_stored)
        self.bert.embeddings.LayerNorm.register_forward_hook(self.round_stored)

    def round_stored(self, _module, _inputs, output):
        return half(output) if self.rounding else output

    def prepare(self, kind, bits):
        """kind: None for fp32; bits: names of GEMMS."""
        self.rounding = kind is not None
        for gemm in self.gemms:
            gemm.prepare(None if kind is None else kind if gemm.name in bits else "half")

    def batches(self, sentences):
        """Sentences of the same length together: there is no padding."""
        by_length = {}
        for i, ids in enumerate(self.tokenizer(sentences, truncation=True, max_length=128).input_ids):
            by_length.setdefault(len(ids), []).append((i, ids))
        for same in by_length.values():
            for at in range(0, len(same), BATCH):
                yield [i for i, _ in same[at:at + BATCH]], \
                    torch.tensor([ids for _, ids in same[at:at + BATCH]])

    @torch.inference_mode()
    def run(self, batches, count, reference=None):
        """Embeddings, hidden states of each layer, and their error against those of a reference."""
        embeddings, states, off, norm = torch.zeros(count, self.bert.config.hidden_size), [], None, None
        for number, (places, ids) in enumerate(batches):
            hidden = torch.stack(self.bert(ids, output_hidden_states=True).hidden_states)
            embeddings[places] = torch.nn.functional.normalize(hidden[-1].mean(1), dim=-1)
            if reference is None:
                states.append(hidden.half())
                continue
            exact = reference[number].float()
            each = ((hidden - exact) ** 2).double().sum((1, 2, 3)), (exact ** 2).double().sum((1, 2, 3))
            off, norm = each if off is None else (off + each[0], norm + each[1])
        return embeddings, states, None if off is None else (off / norm).sqrt().tolist()


def neighbours(embeddings):
    near = embeddings @ embeddings.T
    near.fill_diagonal_(-2)
    return near.topk(10, dim=1).indices


def agreement(exact, other):
    return (exact[:, :, None] == other[:, None, :]).any(2).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("sentences")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--sets", choices=("all", "few"), default="all")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    args = parser.parse_args()
    lines = open(args.sentences, encoding="utf-8").read().splitlines()
    model, measured = Model(args.model), lines[CALIBRATION:CALIBRATION + args.count]
    if len(measured) < args.count:
        parser.error(f"{args.sentences} has {len(lines)} lines, fewer than {CALIBRATION + args.count}")
    model.prepare(None, ())
    for _, ids in model.batches(lines[:CALIBRATION]):
        with torch.inference_mode():
            model.bert(ids)
    static = [gemm.amax for gemm in model.gemms]
    batches = list(model.batches(measured))
    print(f"{args.count} sentences, {sum(ids.numel() for _, ids in batches)} tokens; calibrated by {CALIBRATION}")
    exact, states, _ = model.run(batches, args.count)
    for gemm, amax in zip(model.gemms, static):
        gemm.amax = amax
    nearest = neighbours(exact)
    print("| scales | e4m3 GEMMs | cosine: mean | 1 % | top-10 agreement | error of the stack | by the sum of squares | saturated at most | error after each layer |\n"
          "|---|---|---|---|---|---|---|---|---|")
    sets = [s for n in range(1, 5) for s in itertools.combinations(GEMMS, n)]
    if args.sets == "few":
        sets = [s for s in sets if len(s) in (1, 4)]
    errors = {}
    for kind, bits in [("-", ())] + [(k, s) for k in args.kinds for s in sets]:
        since = time.time()
        model.prepare(kind, bits)
        got, _, layers = model.run(batches, args.count, states)
        cosine = (got * exact).sum(1)
        errors[kind, bits] = layers[-1]
        base = errors["-", ()] ** 2
        squares = base + sum(errors[kind, (b,)] ** 2 - base for b in bits)
        saturated = max((g.saturated / g.seen for g in model.gemms if g.seen), default=0)
        print(f"| {kind} | {' '.join(bits) or 'none: fp16'} | {cosine.mean():.5f} | {cosine.quantile(0.01):.5f} | "
              f"{agreement(nearest, neighbours(got)):.3f} | {layers[-1]:.2e} | {math.sqrt(squares):.2e} | {saturated:.1e} | "
              f"{' '.join(f'{e:.1e}' for e in layers[1:])} |  <!-- {time.time() - since:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()
