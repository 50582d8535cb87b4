"""Times of calls with lengths by two exported libraries of one workload: what a change of the library costs.

    lengths_times.py BEFORE AFTER [BxS...]

The directories were written by `fuseplan export --name NAME`, with two names, for a CUDA GPU, and built by
make.  Prints the microseconds of a call by each, and their ratio, for each size of the library, or for the
batches given: without lengths, and with lengths of 0.6 S in the mean, on the host and on the GPU.  A time is the
median over ROUNDS of calls back to back; the libraries take turns.
"""

import importlib
import pathlib
import statistics
import sys

import torch

ROUNDS = 31
ROUND_US = 20000


def load_library(directory):
    """The module of a library, and its layers on drawn weights."""
    path = next(pathlib.Path(directory).glob('*.pc.in'))
    sys.path.insert(0, directory)
    library = importlib.import_module(path.name.removesuffix('.pc.in'))
    torch.manual_seed(1)
    drawn = {name: torch.randn(shape, device='cuda', dtype=library._dtype) * 0.03 + name.startswith('gamma')
             for name, shape in zip(library._NAMES, library._shapes())}
    return library, library.Layers([drawn] * library.info.layers)


def time_us(function, calls):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(calls):
        function()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / calls


def compare(before, after, x, lengths):
    """Microseconds of a call by each."""
    functions = [lambda: before(x, lengths), lambda: after(x, lengths)]
    for function in functions:
        calls = max(2, int(ROUND_US / time_us(function, 10)))
    samples = [[], []]
    for i in range(ROUNDS):
        for which in (0, 1) if i % 2 == 0 else (1, 0):
            samples[which].append(time_us(functions[which], calls))
    return [statistics.median(s) for s in samples]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    library, before = load_library(sys.argv[1])
    _, after = load_library(sys.argv[2])
    sizes = [tuple(map(int, size.split('x'))) for size in sys.argv[3:]] or library.sizes()
    with torch.no_grad():
        for batch, seq_len in sizes:
            x = torch.randn(batch, seq_len, library._hidden, device='cuda', dtype=library._dtype)
            shares = torch.linspace(0.2, 1, batch) if batch > 1 else torch.tensor([0.6])
            lengths = (shares * seq_len).ceil().int()
            for name, given in ('no lengths', None), ('on the host', lengths), ('on the GPU', lengths.cuda()):
                us = compare(before, after, x, given)
                print(f'({batch},{seq_len}) {name}: {us[0]:.1f} us before, {us[1]:.1f} us after, '
                      f'{us[1] / us[0]:.4f} times', flush=True)


if __name__ == '__main__':
    main()
