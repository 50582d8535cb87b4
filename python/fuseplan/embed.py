"""fuseplan-embed MODEL < sentences > vectors.npy: embeddings of lines, by sentence-transformers' MODEL."""

import argparse
import sys


class _Parser(argparse.ArgumentParser):

    def error(self, message):  # in one line, as the program says it
        self.exit(2, f"{self.prog}: {message}; '{self.prog} --help' lists all options\n")


def _shape(text):
    batch, _, seq_len = text.lower().partition("x")
    if not (batch.isdecimal() and seq_len.isdecimal() and int(batch) > 0 and int(seq_len) > 0):
        raise ValueError(f"--shapes: '{text}' is no shape; expected BxS, batch and tokens, such as 8x64")
    return int(batch), int(seq_len)


def _read_lines(file):
    for number, line in enumerate(file, 1):
        try:
            yield line.decode().removesuffix("\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"standard input, line {number}: byte {error.start + 1} of {len(line)} is no UTF-8; "
                             "convert it, such as by iconv") from None


def _load(name, device):
    import torch
    from sentence_transformers import SentenceTransformer
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):  # the latter where PyTorch has no CUDA
        gpus = ", ".join(f"cuda:{i}" for i in range(torch.cuda.device_count()))
        raise ValueError(f"--device: PyTorch has no '{device}' here; expected {gpus or 'cpu'}") from None
    try:
        return SentenceTransformer(name, device=device).eval()
    except Exception as error:  # of all that reads a model's files
        raise ValueError(f"SentenceTransformer cannot load '{name}': {error or type(error).__name__}") from error


def _embed(a):
    shapes, lines = [_shape(text) for text in a.shapes], list(_read_lines(sys.stdin.buffer))
    import numpy as np

    from . import encode, optimize
    model = _load(a.model, a.device)
    optimize(model.half() if a.half else model, shapes or None, a.time_limit)
    np.save(sys.stdout.buffer, encode(model, lines, prompt_name=a.prompt_name))


def main():
    p = _Parser(prog="fuseplan-embed", usage="%(prog)s [OPTION...] MODEL < sentences > vectors.npy",
                description="Writes the embeddings of the lines of standard input to standard output, as an array "
                "(N,D) of numpy.")
    p.add_argument("model", metavar="MODEL", nargs="?", help="a name or a folder that SentenceTransformer takes")
    p.add_argument("--device", help="such as cuda:1")
    p.add_argument("--half", action="store_true", help="compute in fp16")
    p.add_argument("--prompt-name", metavar="NAME", help="one of the model's prompts")
    p.add_argument("--shapes", metavar="BxS", nargs="+", default=[], help="batches and tokens that are to be fast")
    p.add_argument("--time-limit", metavar="SECONDS", type=float, help="search for the fastest plans first")
    a = p.parse_args()
    if a.model is None and len(a.shapes) > 1:
        a.model = a.shapes.pop()  # the word behind shapes is one of theirs to argparse
    if a.model is None:
        p.error("MODEL is missing")
    if sys.stdout.isatty():
        p.error("standard output is a terminal: redirect it to a file, such as > vectors.npy")
    try:
        _embed(a)
    except KeyboardInterrupt:
        _fail(p, 130, "interrupted")
    except ValueError as error:
        _fail(p, 2, error)
    except ModuleNotFoundError as error:
        _fail(p, 1, f"needs sentence-transformers, and this Python has no {error.name}: pip install "
              "sentence-transformers")
    except (OSError, RuntimeError) as error:
        from . import Wrong
        _fail(p, 3 if isinstance(error, Wrong) else 1, error)


def _fail(p, status, why):
    p.exit(status, f"{p.prog}: {' '.join(str(why).split())}\n")


if __name__ == "__main__":
    main()
