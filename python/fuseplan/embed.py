"""fuseplan-embed MODEL < sentences > vectors.npy: embeddings of lines, by sentence-transformers' MODEL."""

import argparse
import sys


def _shape(text):
    batch, seq_len = text.lower().split("x")
    return int(batch), int(seq_len)


def main():
    p = argparse.ArgumentParser(prog="fuseplan-embed", description="Writes the embeddings of the lines of standard "
                                "input to standard output, as an array (N,D) of numpy.")
    p.add_argument("model", metavar="MODEL", help="a name or a folder that SentenceTransformer takes")
    p.add_argument("--device", help="such as cuda:1")
    p.add_argument("--half", action="store_true", help="compute in fp16")
    p.add_argument("--prompt-name", metavar="NAME", help="one of the model's prompts")
    p.add_argument("--shapes", metavar="BxS", type=_shape, nargs="+", help="batches and tokens that are to be fast")
    p.add_argument("--time-limit", metavar="SECONDS", type=float, help="search for the fastest plans first")
    a = p.parse_args()
    if sys.stdout.isatty():
        p.error("standard output is a terminal: redirect it to a file, such as > vectors.npy")
    try:
        import numpy as np
        from sentence_transformers import SentenceTransformer
    except ModuleNotFoundError as error:
        sys.exit(f"fuseplan-embed: needs sentence-transformers, and this Python has no {error.name}: "
                 "pip install sentence-transformers")
    from . import ProgramError, Wrong, encode, optimize
    sys.stdin.reconfigure(newline="\n")
    try:
        model = SentenceTransformer(a.model, device=a.device).eval()
        model = model.half() if a.half else model
        optimize(model, a.shapes, a.time_limit)
        vectors = encode(model, [line.rstrip("\n") for line in sys.stdin], prompt_name=a.prompt_name)
        np.save(sys.stdout.buffer, vectors)
    except (OSError, ValueError, ProgramError, Wrong) as error:
        sys.exit(f"fuseplan-embed: {error}")


if __name__ == "__main__":
    main()
