#!/usr/bin/env python3
"""side_by_side.py BIN [--tools] <LINES: runs cuda_segments with the words of each line, many at a time.

There are as many at a time as this process may use cores.  Each has two of them, for the threads of its worker and for
compilers, and one of the visible GPUs.  Of lines that differ in sizes and masks alone the first one compiles what the
others find compiled.  With --tools a line's first word is a tool of compute-sanitizer that looks at the run.

What is wrong is printed as soon as it is known: a line each, which ends in the run's command.  A table comes at the
end, also where a signal brings it about.  Exits 1 unless all runs have ended and nothing was wrong."""
import collections
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

MOST_S = 240  # of a run
SAID_MOST = 10  # lines of one run
RESULT = re.compile(r'(\S+) (\(\d+,\d+\)) .*: (\d+) kernels, (\d+) failed, (\d+) refused, largest error (\S+) of (\S+) '
                    r'allowed; built in (\S+) s, the oracle and the first one (\S+) s, the others (\S+) s$')
# Lines of the frame of compute-sanitizer's log that are no finding: details, and that the worker was killed at its end.
NO_FINDING = re.compile(r'=========( *$|  |.*(COMPUTE-SANITIZER| SUMMARY: |process didn\'t terminate successfully|'
                        r'Target application returned an error))')
REFUSED = re.compile(r'refused: .*?: \d+-\d+ (\S+) .*?: (.*)')
SAYING = threading.Lock()
SIZES = {'-a', '-H', '-F', '-D'}


def code_of(words):
    """What the compiled code depends on: all but sizes, lengths, and batch, length and mask at the end."""
    kept = [w for at, w in enumerate(words) if w not in SIZES and (at == 0 or words[at - 1] not in SIZES)]
    return tuple(kept[:-3])


def say(line):
    """At once, and whole: threads share standard output."""
    with SAYING:
        sys.stdout.write(line + '\n')
        sys.stdout.flush()


def text_of(path):
    """What a file holds by now."""
    try:
        with open(path, errors='replace') as file:
            return file.read()
    except FileNotFoundError:
        return ''


def read_log(text):
    """The findings in a log of compute-sanitizer, each with the place that the tool names first."""
    lines, found = text.splitlines(), []
    for at, line in enumerate(lines):
        if line.startswith('=========') and not NO_FINDING.match(line):
            place = next((' ' + detail[9:].strip() for detail in lines[at + 1:at + 3]
                          if re.match('========= +(at|in) ', detail)), '')
            found.append(line[9:].strip() + place)
    return found


class Run:
    """A line, and what became of it."""

    def __init__(self, line, tools):
        self.words = line.split()
        self.tool = self.words.pop(0) if tools else None
        self.code = code_of(self.words)
        self.wrong, self.refused, self.result, self.process = [], [], None, None

    def command(self, bin_dir, log):
        if self.tool is None:
            return [f'{bin_dir}/cuda_segments'] + self.words
        return ['compute-sanitizer', '--tool', self.tool, '--target-processes', 'all', '--require-cuda-init', 'no',
                '--log-file', log, f'{bin_dir}/cuda_segments', '-d', '200'] + self.words

    def say(self, text):
        self.wrong.append(text)
        if len(self.wrong) <= SAID_MOST:
            by = f'compute-sanitizer --tool {self.tool} ' if self.tool else ''
            say(f'FAILED: {text} <- {by}cuda_segments {" ".join(self.words)}')

    def kill(self, how):
        try:
            os.killpg(self.process.pid, how)
        except ProcessLookupError:
            pass

    def has_ended(self):
        """Waits a moment for that."""
        try:
            return self.process.wait(0.2) is not None
        except subprocess.TimeoutExpired:
            return False

    def read(self, lines):
        for line in lines:
            self.result = RESULT.match(line) or self.result
            if REFUSED.match(line):
                self.refused.append('{}: {}'.format(*REFUSED.match(line).groups()))
            if line.startswith('FAILED: '):
                self.say(line[8:])

    def follow(self, output, log):
        """Says what is wrong in what the run and the tool write, until the run ends."""
        until, read, found, ended = time.monotonic() + MOST_S, 0, 0, False
        while not ended:
            ended = self.has_ended()
            lines, findings = text_of(output).splitlines(), read_log(text_of(log))
            if not ended:  # more may come of the last ones
                lines, findings = lines[:-1], findings[:-1]
            self.read(lines[read:])
            for finding in findings[found:]:
                self.say(f'{self.tool}: {finding}')
            read, found = max(read, len(lines)), max(found, len(findings))
            if time.monotonic() > until and not ended:
                self.say(f'not ended after {MOST_S} s')
                self.kill(signal.SIGKILL)
                until = float('inf')

    def judge(self, output, log):
        """Says what is wrong with how the run ended.  compute-sanitizer has an exit status of its own."""
        lines, status = text_of(output).splitlines(), self.process.returncode
        counted = [int(n) for n in re.findall(r' SUMMARY: (\d+) ', text_of(log))]
        if self.result is None or (status != 0 and self.tool is None):
            self.say(f'exit status {status}: {lines[-1] if lines else ""}')
        elif self.tool is not None and not counted:
            self.say(f'{self.tool} sums nothing up')
        elif any(counted):
            self.say(f'{self.tool} counts {sum(counted)}')

    def start(self, command, environment, output, log):
        with open(output, 'w') as out:
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=subprocess.STDOUT, start_new_session=True)
        self.follow(output, log)

    def go(self, bin_dir, environment, build, stopped):
        """build: what compiles, or None; no tool looks at a compiler."""
        with tempfile.TemporaryDirectory() as place:
            output, log = f'{place}/output', f'{place}/log'
            if build is not None:
                self.start([f'{bin_dir}/cuda_segments', '-b'] + self.words, environment, output, log)
                build()
            if not self.wrong and not stopped():
                self.start(self.command(bin_dir, log), environment, output, log)
            if not self.wrong and not stopped():
                self.judge(output, log)


class All:
    """The runs, and who takes the next one."""

    def __init__(self, bin_dir, tools, lines):
        self.bin_dir = bin_dir
        self.waiting = [Run(line, tools) for line in lines]
        self.count = len(self.waiting)
        self.running, self.ended, self.compiled, self.stopped = [], [], set(), False
        self.changed = threading.Condition()

    def next(self):
        """The first run whose code is compiled already, or that nobody compiles; None where there is none left."""
        with self.changed:
            while self.waiting and not self.stopped:
                compiling = {run.code for run in self.running} - self.compiled
                for run in self.waiting:
                    if run.code not in compiling:
                        self.waiting.remove(run)
                        self.running.append(run)
                        return run
                self.changed.wait(1)
            return None

    def work(self, cores, gpu):
        os.sched_setaffinity(0, cores)  # of this thread, and of what it starts
        environment = dict(os.environ, **({'CUDA_VISIBLE_DEVICES': gpu} if gpu else {}))
        while (run := self.next()) is not None:
            builds = run.tool is not None and run.code not in self.compiled
            try:
                run.go(self.bin_dir, environment, (lambda: self.compile(run)) if builds else None, lambda: self.stopped)
            except OSError as error:
                run.say(str(error))
            self.compile(run)
            with self.changed:
                self.running.remove(run)
                self.ended.append(run)

    def compile(self, run):
        """Notes that a run's code is compiled."""
        with self.changed:
            self.compiled.add(run.code)
            self.changed.notify_all()

    def stop(self, *_):
        how = signal.SIGKILL if self.stopped else signal.SIGTERM
        self.stopped = True
        for run in list(self.running):
            if run.process is not None:
                run.kill(how)

    def done(self):
        """Those of which something is known: a signal may have ended others."""
        return [run for run in self.ended if run.result is not None or run.wrong]

    def wrong(self):
        return sum(len(run.wrong) for run in self.ended)

    def all_right(self):
        return self.count > 0 and len(self.done()) == self.count and self.wrong() == 0 and not self.stopped


def visible_gpus():
    """Their numbers; one that is None where nobody says."""
    listed = os.environ.get('CUDA_VISIBLE_DEVICES')
    if listed is None:
        try:
            listed = subprocess.run(['nvidia-smi', '--query-gpu=index', '--format=csv,noheader'], capture_output=True,
                                    text=True, check=True).stdout.replace('\n', ',')
        except (OSError, subprocess.CalledProcessError):
            listed = ''
    return [gpu for gpu in listed.split(',') if gpu] or [None]


def table(runs):
    """Rows for each type and shape, and for each type; or for each tool."""
    rows = {}
    for run in runs:
        names = [run.tool] if run.tool else []
        if run.result is not None:
            kind, shape, kernels, failed, refused, error, allowed, *seconds = run.result.groups()
            names = names or [f'{kind} {shape}', f'{kind} all']
        for name in names:
            row = rows.setdefault(name, [0] * 9)
            row[0] += 1
            row[4] += len(run.wrong)
            if run.result is not None:
                for at, number in enumerate([kernels, failed, refused]):
                    row[1 + at] += int(number)
                row[5] = max(row[5], float(error) / float(allowed))
                for at, number in enumerate(seconds):
                    row[6 + at] += float(number)
    say('| | runs | kernels | failed | refused | wrong | largest error, of allowed | built, s | oracle, s | kernels, s |')
    say('|---' * 10 + '|')
    for name, row in sorted(rows.items()):
        say(f'| {name} | ' + ' | '.join(map(str, row[:5])) + f' | {row[5]:.2f} | ' +
            ' | '.join(f'{s:.0f}' for s in row[6:]) + ' |')


def main():
    bin_dir, tools = sys.argv[1], sys.argv[2:] == ['--tools']
    started, cores, gpus = time.monotonic(), sorted(os.sched_getaffinity(0)), visible_gpus()
    runs = All(bin_dir, tools, [line for line in sys.stdin if line.strip()])
    signal.signal(signal.SIGTERM, runs.stop)
    signal.signal(signal.SIGINT, runs.stop)
    os.nice(10)  # gives way to parts that compute little
    threads = [threading.Thread(target=runs.work, daemon=True, args=(
        {cores[2 * at % len(cores)], cores[(2 * at + 1) % len(cores)]}, gpus[at % len(gpus)])) for at in range(len(cores))]
    for thread in threads:
        thread.start()
    said = stopped = started
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.1)
        now = time.monotonic()
        if not runs.stopped:
            stopped = now
        elif now - stopped > 5:
            runs.stop()
        if now - said >= 30:
            said = now
            say(f'# {len(runs.done())} of {runs.count} runs after {now - started:.0f} s')
    table(runs.done())
    refused = collections.Counter(re.sub(r'\d[\d.]*', 'N', reason) for run in runs.done() for reason in run.refused)
    for reason, count in refused.most_common(10):
        say(f'{count} refused: {reason}')
    say(f'{len(runs.done())} of {runs.count} runs ended in {time.monotonic() - started:.0f} s, {len(cores)} side by side: '
        f'{runs.wrong()} wrong')
    return 0 if runs.all_right() else 1


with tempfile.TemporaryDirectory() as cache:
    os.environ.setdefault('FUSEPLAN_CACHE', cache)
    sys.exit(main())
