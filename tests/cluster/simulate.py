#!/usr/bin/env python3
"""simulate.py: how long a sweep takes on 1 to 10,000 GPUs, by a discrete-event model.

usage: simulate.py table [TIMES]          a table of what saturates
       simulate.py compare TIMES          predicted beside measured seconds of the runs in TIMES
       simulate.py picture OUT.svg TIMES  hours over GPUs, and what compare prints, as a picture
       simulate.py record DB...           print the times of real sweeps, in the form of TIMES

A task is a shard: it starts when the scheduler comes to it, and searches one row after another.  A row starts its
worker, needs kernels, some of which the node's cache has, times trials, holds finals, and saves all that the shard has
so far.  Tasks share the scheduler, the cores of their node and the file system; each serves in the order of asking.
"""
import datetime
import heapq
import math
import random
import sqlite3
import sys

SCHEDULE_S = 0.085  # of Slurm, to start and end a task of an array: 200 took 17 s
STORE_S = 2.5 / 129000  # of one core, to export or import a trial
TRIAL_BYTES = 800  # of a trial as text
SAVE_TIMES = 20  # so many times longer than saving took a run waits before it saves again
FILES_BYTES_S = 2e9  # of the file system that all nodes share
FILES_S = 0.005  # of it, to make and rename a file
FAMILY_ROWS = 60  # rows of a model and type: 12 sizes, 5 masks

# What a search on an H200 takes: 16 to 29 s with an empty cache, 8 to 14 s with a full one.
H200 = {
    "start_s": [2, 2.5, 3],
    "kernel_s": [1.5, 1.7, 2, 2.5, 3.5, 8],  # of one core, equally likely
    "trial_s": [0.006, 0.012, 0.018, 0.024, 0.03],
    "finals_s": [2],
    "kernels": [90],  # of a row whose family the cache does not know
    "kernels_more": [9],  # of a further row
    "trials": [300],
    "devices_per_node": [8],
    "cores_per_device": [16],
    "beside": [1],  # compilers run while the device times
}


class Server:
    """Serves one after the other, in the order of asking."""

    def __init__(self):
        self.free_at = 0.0
        self.busy_s = 0.0

    def serve(self, now, seconds):
        self.free_at = max(self.free_at, now) + seconds
        self.busy_s += seconds
        return self.free_at


class Sweep:
    """rows on so many devices.  ready: the caches have all kernels; saves: results leave as text."""

    def __init__(self, times, devices, rows, ready=False, saves=True, seed=1):
        self.t, self.devices, self.rows, self.ready, self.saves = times, devices, rows, ready, saves
        self.random = random.Random(seed)
        self.scheduler, self.files = Server(), Server()
        self.per_node = int(times["devices_per_node"][0])
        self.nodes = [Server() for _ in range(math.ceil(devices / self.per_node))]
        self.known = [set() for _ in self.nodes]
        self.spent = dict.fromkeys(("start", "compile", "measure", "save"), 0.0)

    def mean(self, name, count):
        """The sum of count draws; of many, their mean suffices."""
        values, mean = self.t[name], sum(self.t[name]) / len(self.t[name])
        return count * mean if count > 40 else sum(self.random.choice(values) for _ in range(int(count)))

    def compile(self, now, task, family):
        """When the kernels of a row are there."""
        node = task // self.per_node
        new = "kernels_more" if family in self.known[node] else "kernels"
        self.known[node].add(family)
        count = 0 if self.ready else self.t[new][0]
        cores = self.t["cores_per_device"][0] * min(self.per_node, self.devices)
        return self.nodes[node].serve(now, self.mean("kernel_s", count) / cores)

    def save(self, now, trials):
        """When all that a shard has is written."""
        if not self.saves:
            return now
        return self.files.serve(now + trials * STORE_S, FILES_S + trials * TRIAL_BYTES / FILES_BYTES_S)

    def task(self, number):
        """Yields when it wants to go on."""
        now = yield self.scheduler.serve(0, SCHEDULE_S)
        save_from = 0.0
        share = range(number * self.rows // self.devices, (number + 1) * self.rows // self.devices)
        for done, row in enumerate(share, 1):
            begin = now
            started = now + self.mean("start_s", 1)
            measure_s = self.mean("trial_s", self.t["trials"][0]) + self.mean("finals_s", 1)
            compiled = self.compile(now, number, row // FAMILY_ROWS)
            meanwhile = self.t["beside"][0] * measure_s
            now = yield max(started + meanwhile, compiled) + measure_s - meanwhile
            self.spent["start"] += started - begin
            self.spent["measure"] += measure_s
            self.spent["compile"] += max(0, now - started - measure_s)
            if now >= save_from or done == len(share):
                saved = yield self.save(now, done * self.t["trials"][0])
                self.spent["save"] += saved - now
                save_from = saved + SAVE_TIMES * (saved - now)
                now = saved

    def run(self):
        """The seconds until all is collected."""
        tasks = [self.task(i) for i in range(min(self.devices, self.rows))]
        queue = [(next(t), i) for i, t in enumerate(tasks)]
        heapq.heapify(queue)
        end = 0.0
        while queue:
            end, i = heapq.heappop(queue)
            try:
                heapq.heappush(queue, (tasks[i].send(end), i))
            except StopIteration:
                pass
        self.collect_s = self.rows * self.t["trials"][0] * STORE_S if self.saves else 0
        self.end_s = end + self.collect_s
        return self.end_s

    def shares(self):
        """Of the devices' time until the end, in percent; what is left is waiting for a task, or for others."""
        out = {name: 100 * s / self.end_s / min(self.devices, self.rows) for name, s in self.spent.items()}
        out["collect"] = 100 * self.collect_s / self.end_s
        out["scheduler"] = 100 * self.scheduler.busy_s / self.end_s
        out["files"] = 100 * self.files.busy_s / self.end_s
        return out


# ---- what is printed --------------------------------------------------------------------------


def table(times):
    names = ("start", "compile", "measure", "save", "collect", "scheduler", "files")
    print(f"{'rows':>7} {'GPUs':>6} {'hours':>8} {'speed-up':>8} " + " ".join(f"{n:>9}" for n in names))
    for rows in (100, 1000, 10000, 100000):
        alone = rows * (Sweep(times, 1, 60, saves=False).run() / 60)
        for devices in (1, 10, 100, 1000, 10000):
            if devices > rows:
                continue
            s = Sweep(times, devices, rows)
            end = s.run()
            shares = s.shares()
            print(f"{rows:7} {devices:6} {end / 3600:8.2f} {alone / end:8.1f} "
                  + " ".join(f"{shares[n]:7.1f} %" for n in names))


def read_times(path):
    """Lines of a name and numbers; 'run' lines are sweeps that were measured: rows, ready, seconds."""
    times, runs = {}, []
    with open(path, encoding="utf-8") as f:
        for words in (line.split("#")[0].split() for line in f):
            if words and words[0] == "run":
                runs.append((int(words[1]), words[2] == "full", float(words[3])))
            elif words:
                times[words[0]] = [float(w) for w in words[1:]]
    return times, runs


def predictions(path):
    """Of each run in TIMES: rows, the cache, predicted and measured seconds."""
    times, runs = read_times(path)
    for rows, ready, seconds in runs:
        yield rows, "full" if ready else "empty", Sweep(times, 1, rows, ready, saves=False).run(), seconds


def compare(path):
    print(f"{'rows':>5} {'cache':>6} {'predicted s':>12} {'measured s':>11} {'ratio':>6}")
    for rows, cache, predicted, seconds in predictions(path):
        print(f"{rows:5} {cache:>6} {predicted:12.1f} {seconds:11.1f} {predicted / seconds:6.2f}")


def quantiles(values, count=9):
    values = sorted(values)
    return " ".join(f"{values[(2 * i + 1) * len(values) // (2 * count)]:.3g}" for i in range(count))


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def record(paths):
    """Of databases of real sweeps.  A kernel's time is that of its compiler, by the share of the cores that it had; a
    trial's is the gap to the one before it, in searches that built nothing."""
    kernels, gaps, starts, finals, counts, built = [], [], [], [], [], []
    for path in paths:
        db = sqlite3.connect(path)
        for search, begin, end in db.execute("SELECT id, started_utc, ended_utc FROM search ORDER BY started_utc"):
            rows = db.execute("SELECT kind, build_s, stored_utc FROM trial WHERE search = ? ORDER BY stored_utc, id",
                              (search,)).fetchall()
            own = [b for kind, b, _ in rows if kind == "segment" and b > 0]
            at = [seconds(begin)] + [seconds(t) for kind, _, t in rows if kind != "final"]
            kernels += own
            built.append(len(own))
            counts.append(len(at) - 1)
            finals.append(seconds(end) - at[-1])
            if not own:
                gaps += [b - a for a, b in zip(at, at[1:])]
    print("kernel_s", quantiles(kernels))
    print("trial_s", quantiles(gaps))
    print("finals_s", quantiles(finals, 3))
    print("kernels", max(built))
    print("trials", round(sum(counts) / len(counts)))


# ---- the picture ------------------------------------------------------------------------------


def beside(path):
    """Predicted over measured seconds; a filled circle is a sweep that compiled."""
    left, top, size, most = 740, 20, 220, 160
    at = lambda seconds: size * seconds / most
    yield f'<path d="M{left} {top + size}l{size} {-size}" stroke="#222" stroke-dasharray="2 4"/>'
    for tick in range(0, most + 1, 40):
        yield (f'<path d="M{left} {top + size - at(tick):.0f}h{size}M{left + at(tick):.0f} {top}v{size}" stroke="#ddd"/>'
               f'<text x="{left + at(tick):.0f}" y="{top + size + 16}" text-anchor="middle">{tick}</text>'
               f'<text x="{left - 6}" y="{top + size - at(tick) + 4:.0f}" text-anchor="end">{tick}</text>')
    for rows, cache, predicted, measured in predictions(path):
        x, y = left + at(measured), top + size - at(predicted)
        yield (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" stroke="#222" fill="{"#fff" if cache == "full" else "#222"}"/>'
               f'<text x="{x + 7:.1f}" y="{y + 4:.1f}">{rows} rows</text>')
    for line, text in enumerate(("predicted over measured seconds,", "sweeps on a CPU: the cache was", "empty ●, full ○")):
        yield f'<text x="{left + size / 2:.0f}" y="{top + size + 40 + 16 * line}" text-anchor="middle">{text}</text>'


def picture(path, times):
    left, top, width, height = 60, 20, 520, 330
    x = lambda devices: left + width * math.log10(devices) / 4
    y = lambda hours: top + height * (3 - math.log10(hours)) / 6
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1020 400" font-family="sans-serif" font-size="12">',
           '<rect width="1020" height="400" fill="#fff"/>']
    for e in range(5):
        out.append(f'<path d="M{x(10 ** e):.0f} {top}v{height}" stroke="#ddd"/>'
                   f'<text x="{x(10 ** e):.0f}" y="{top + height + 16}" text-anchor="middle">{10 ** e:,}</text>')
    for e, label in ((-3, "4 s"), (-2, "36 s"), (-1, "6 min"), (0, "1 h"), (1, "10 h"), (2, "4 days"), (3, "6 weeks")):
        out.append(f'<path d="M{left} {y(10.0 ** e):.0f}h{width}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{y(10.0 ** e) + 4:.0f}" text-anchor="end">{label}</text>')
    out.append(f'<text x="{left + width / 2:.0f}" y="390" text-anchor="middle">GPUs</text>')
    for rows, colour in ((100, "#1b9e77"), (1000, "#7570b3"), (10000, "#d95f02"), (100000, "#222")):
        points = [d for d in (1, 3, 10, 32, 100, 316, 1000, 3162, 10000) if d <= rows]
        hours = [Sweep(H200, d, rows).run() / 3600 for d in points]
        alone = rows * Sweep(H200, 1, 60, saves=False).run() / 60 / 3600
        line = " ".join(f"{x(d):.1f},{y(h):.1f}" for d, h in zip(points, hours))
        ideal = " ".join(f"{x(d):.1f},{y(alone / d):.1f}" for d in (points[0], points[-1]))
        out.append(f'<polyline points="{ideal}" fill="none" stroke="{colour}" stroke-dasharray="2 4"/>'
                   f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
                   f'<text x="{x(points[-1]) + 6:.0f}" y="{y(hours[-1]) + 4:.0f}" fill="{colour}">{rows:,} rows</text>')
    out += [*beside(times), "</svg>\n"]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(out))


def main(words):
    if words[:1] == ["table"] and len(words) <= 2:
        table(read_times(words[1])[0] if len(words) > 1 else H200)
    elif words[:1] == ["picture"] and len(words) == 3:
        picture(words[1], words[2])
    elif words[:1] == ["compare"] and len(words) == 2:
        compare(words[1])
    elif words[:1] == ["record"]:
        record(words[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
