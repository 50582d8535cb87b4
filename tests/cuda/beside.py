"""Times the best plans that databases know of a workload in turn, as bench/peers.py does PyTorch's.

    beside.py FUSEPLAN BATCH SEQ_LEN MASK DB...

Prints a line a database: its plan, microseconds a layer, and its time over that of the first one's
plan with the 95 % interval.  Each plan runs with the schedules that its own database knows.
"""

import argparse
import concurrent.futures
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'bench'))
import peers


def main():
    program, batch, seq_len, mask, *databases = sys.argv[1:]
    batch, seq_len = int(batch), int(seq_len)
    a = argparse.Namespace(fuseplan=program, layers=12, dtype='fp16', heads=12, head_size=64,
                           avg_seq_len=None, rounds=100)
    torch = peers.import_torch()
    torch.manual_seed(0)

    def options(db):
        return [*peers.workload_options(a, batch, seq_len, mask), '--db', db]

    with tempfile.TemporaryDirectory() as scratch:
        with concurrent.futures.ThreadPoolExecutor(len(databases)) as pool:
            names = list(pool.map(
                lambda i: peers.export_plan(a, scratch, f'plan_{i}', options(databases[i])),
                range(len(databases))))
        if None in names:
            sys.exit(1)
        x, weights = peers.make_inputs(a, torch, torch.float16, batch, seq_len)
        runs = {name: peers.layers_of(name, x, weights) for name in names}  # a graph needs its layers
        graphs, results = {}, {}
        for name, run in runs.items():
            graphs[name], results[name] = peers.capture(torch, run)
        times = peers.time_graphs(torch, graphs, a.rounds)
        first = times[names[0]]
        same = True
        for name, db in zip(names, databases):
            found = json.loads(peers.run_fuseplan(a, 'query', '--format', 'json', *options(db)))
            us = 1e3 * peers.median(times[name]) / a.layers
            print(f'{batch} {seq_len} {mask}, {os.path.basename(db)}: plan '
                  f'{found["best"]["value"]}, {us:.2f} us, '
                  f'{peers.ratio_text(times[name], first, 3)}', flush=True)
            same = same and peers.differ_by(results[names[0]], results[name]) <= peers.SAME
    if not same:
        print('beside.py: the plans give different results', file=sys.stderr)
        sys.exit(1)


if __name__ == '__main__':
    main()
