#!/usr/bin/env python3
"""collect.py: what it takes to collect the texts of many shards.

usage: collect.py FUSEPLAN [TEXTS [TRIALS]]     (100 texts of 1000 trials)

Each text has a row's study: one search, trials of segments and plans, and 10 finals of 200 samples.  Collected twice,
the second time adds nothing.  Fails if a row is not done, or above 60 s of processors and 400 MB for a million trials.
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

FINALS, SAMPLES, SEGMENTS = 10, 200, 200
CPU_S, MEMORY_MB = 60, 400  # of a million trials; a tenth of the memory is for the program itself
TIMES = {"status": "ok", "stored_utc": "2026-01-01T00:00:00.000Z", "ci_low_ms": 1.0, "ci_high_ms": 3.0,
         "layers_timed": 1, "relative_error": 2.5e-7, "build_s": 0.75, "verify_s": 0.015625, "time_s": 0.0625}
CONDITIONS = json.dumps({"waited_share": 0.0, "other_cores": 0.0, "stopped_share": 0.0})


def plans(program, count):
    """So many values of plans, with choices for their segments; the first segment's differ."""
    said = subprocess.run([program, "translate", "40000..49999", "--format", "ndjson"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    out = []
    for plan in map(json.loads, said.splitlines()):
        if plan["canonical"] == plan["value"] and plan["segments"][0] == [0, 0] and len(out) < count:
            ends = ["%d-%d" % (lo, hi) if lo < hi else str(lo) for lo, hi in plan["segments"]]
            out.append((plan["value"], ["%s generated lowering=tiled row_block=%d col_block=even" % (
                end, 128 if i > 0 else 1 + len(out)) for i, end in enumerate(ends)]))
    return out


def shard(row, made):
    """The text of a row: a batch of so many sequences."""
    label, search = "%016x" % row, "%032x" % row
    text = "b=%d s=8 h=1 w=8 f=32 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full" % row
    workload = {"text": text, "batch": row, "seq_len": 8, "mask": "full", "heads": 1, "head_size": 8, "ffn": 32,
                "layers": 1, "eps": 1e-5, "dtype": "fp32", "lengths": "full"}
    target = {"kind": "cpu", "device": "a processor", "uuid": "1", "capability": "avx2", "units": 2,
              "driver": "Linux 6.1", "compiler": "gcc 12", "libraries": "OpenBLAS"}
    yield {"format": "fuseplan results", "version": 1}
    yield {"study": label, "inputs": {"init": "uniform", "seed": 0}, "protocol": "7",
           "created_utc": TIMES["stored_utc"], "target": target, "workload": workload}
    yield {"study": label, "search": search, "strategy": "guided", "options": "{}", "started_utc": TIMES["stored_utc"],
           "ended_utc": TIMES["stored_utc"], "stopped_by": "converged"}
    of_search = {**TIMES, "search": search, "conditions": CONDITIONS}
    for i, (value, choices) in enumerate(made):
        if i < FINALS:
            samples = [1 + (i * SAMPLES + k) / 4096 for k in range(SAMPLES)]
            yield {"study": label, "trial": "final", "value": value, "comparison": search,
                   "median_ms": statistics.median(samples), "sample_count": SAMPLES, **of_search,
                   "choices": choices, "samples_ms": samples}
        elif i < FINALS + SEGMENTS:
            yield {"study": label, "trial": "segment", "choices": choices[:1], "median_ms": 1 + i / 4096,
                   "sample_count": 15, **of_search}
        else:
            yield {"study": label, "trial": "plan", "value": value, "median_ms": 2.0, "sample_count": 15,
                   **of_search, "choices": choices}


def collect(program, where):
    """Collects, and returns the seconds of processors, and the most memory of any child so far in MB."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([program, "sweep", "collect", "table", "saved", "--target", "cpu", "--format", "ndjson",
                           "--db", "all.db", "-q"], cwd=where, stdout=subprocess.PIPE, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0 or any(row["state"] != "done" for row in rows):
        sys.exit("FAILED: exit %d, rows that are not done: %s" % (
            done.returncode, [row for row in rows if row["state"] != "done"][:3]))
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, after.ru_maxrss / 1024,
            time.monotonic() - begin)


def main(program, texts=100, trials=1000):
    with tempfile.TemporaryDirectory() as where:
        os.mkdir(where + "/saved")
        with open(where + "/table", "w") as table:
            table.writelines("-H 1 -W 8 -L 1 -s 8 -b %d\n" % (row + 1) for row in range(texts))
        size, made = 0, plans(program, trials)
        for row in range(texts):
            path = "%s/saved/%d-of-%d.host.1.ndjson" % (where, row, texts)
            with open(path, "w") as text:
                text.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in shard(row + 1, made))
            size += os.path.getsize(path)
        print("%d texts of %d trials, %.0f MB" % (texts, trials, size / 1e6), flush=True)
        for what in "first", "again":
            cpu, memory, wall = collect(program, where)
            print("%s: %.1f s of processors, %.1f s, %.0f MB of memory, a database of %.0f MB" % (
                what, cpu, wall, memory, os.path.getsize(where + "/all.db") / 1e6), flush=True)
            share = texts * trials / 1e6
            if cpu > CPU_S * (share + 0.02) or memory > MEMORY_MB * (0.9 * share + 0.1):
                sys.exit("FAILED: above %.1f s or %.0f MB" % (CPU_S * (share + 0.02), MEMORY_MB * (0.9 * share + 0.1)))


main(os.path.abspath(sys.argv[1]), *map(int, sys.argv[2:]))
