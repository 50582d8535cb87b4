#!/usr/bin/env python3
"""Searches with random faults, for hours; or until so many workloads are done, whose candidates are all right, so that
little is compiled.

    tests/stress/soak.py FUSEPLAN HOURS [SEED [WORKLOADS]]

Two lanes share a database in a directory below the working directory, which stays if anything is wrong.  The steady
lane is one process that searches one small workload after the other while its workers are killed: its memory, its
descriptors and its files must stay flat.  The faulty lane runs one search after the other with a compiler that plants
wrong candidates, and does something drawn to each: kills it, interrupts it, kills its compilers, takes its room away.
A search that was cut short is run again until its workload is done.

SIGINT and SIGTERM end it before its time, with all that it judges at its end.

Exit 1 if a trial is lost, doubled or wrongly failed, if memory, descriptors or files grow, or if anything is left
running."""

import collections
import ctypes
import hashlib
import json
import math
import os
import random
import resource
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

SAMPLE_S, TELL_S = 1, 60   # between two samples, between two lines of progress
STUCK_S, END_S = 600, 2    # no search of a workload takes so long; nor the end of what a search had started
KILLS_APART_S = 4          # between two kills of the same kind, at least
# Nobody else of a search is killed before it has stored so many more trials: the second death in a row would be the
# candidate's.
TRIALS_APART = 2
MOST_FAULTY_RUNS = 3       # of a workload
STEADY_LAYERS, FAULTY_LAYERS = 1, 2
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

# Segments that faulty_cc.sh makes fail: the reason, and whether they do each time.
PLANTED = {'8-9': ('launch', True), '11-12': ('wrong', True), '6-7': ('compile', True), '12-13': ('timeout', False)}

# What is done to a search, by what (a signal, a resource and the most of it, a file that lets a candidate fail once),
# how it may end but for exit 0, and how often it is drawn.
Fault = collections.namedtuple('Fault', 'name act which exit_code weight')
FAULTS = [
    Fault('nothing', '', None, 0, 4),
    Fault('fuseplan killed', 'signal', signal.SIGKILL, 0, 8),
    Fault('interrupted', 'signal', signal.SIGINT, 130, 3),
    Fault('terminated', 'signal', signal.SIGTERM, 130, 2),
    Fault('hung up', 'signal', signal.SIGHUP, 130, 2),
    Fault('suspended', 'suspend', None, 0, 2),
    Fault('disk full', 'lack', (resource.RLIMIT_FSIZE, 4 << 20), 1, 4),
    Fault('no descriptors', 'lack', (resource.RLIMIT_NOFILE, 640), 1, 1),
    Fault('no address space', 'lack', (resource.RLIMIT_AS, 1 << 30), 1, 1),
    Fault('binaries lost', 'lose', None, 0, 4),
    Fault('binaries damaged', 'spoil', None, 0, 3),
    Fault('candidate crashed once', 'flag', 'crash', 0, 3),
    Fault('candidate left a daemon', 'flag', 'daemon', 0, 3),
    Fault('candidate hung', 'flag', 'hang', 0, 1),
]
STOPPED = Fault('the end', 'signal', signal.SIGINT, 130, 0)

complaints = 0


def complain(text):
    global complaints
    complaints += 1
    print('WRONG:', text, flush=True)


# ---- processes and files


def tasks():
    """PID, parent, state and name of all processes."""
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
                name, rest = file.read().split('(', 1)[1].rsplit(')', 1)
        except OSError:
            continue
        yield int(pid), int(rest.split()[1]), rest.split()[0], name


def tasks_below(*roots):
    """Names of the processes that descend from one of these, by PID, without it and without zombies."""
    known = list(tasks())
    below, found = set(roots), None
    while found != len(below):
        found = len(below)
        below |= {pid for pid, parent, _, _ in known if parent in below}
    return {pid: name for pid, _, state, name in known if pid in below and pid not in roots and state != 'Z'}


def expect_end(other, after):
    """Waits until nothing below this process runs but another lane: after the end of a search.  Seconds.  Where this
    process gets no processor the others may not run either: a look counts as 0.2 s at most."""
    spent_s, looked_s = 0, time.monotonic()
    while True:
        for pid, parent, state, _ in list(tasks()):
            if parent == os.getpid() and state == 'Z' and pid != other.pid():
                os.waitpid(pid, 0)
        kept = {other.pid(), *tasks_below(other.pid())} if other.pid() else set()
        left = {pid: name for pid, name in tasks_below(os.getpid()).items() if pid not in kept}
        if not left:
            return spent_s
        spent_s, looked_s = spent_s + min(time.monotonic() - looked_s, 0.2), time.monotonic()
        if spent_s > END_S:
            for pid, name in left.items():
                complain(f"'{name}' still runs {END_S} s after '{after}'")
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def files_below(directory):
    return sum(len(dirs) + len(files) for _, dirs, files in os.walk(directory))


def usage(pid):
    """KiB and descriptors of a process."""
    with open(f'/proc/{pid}/status', encoding='utf-8') as file:
        kib = next(int(line.split()[1]) for line in file if line.startswith('VmRSS:'))
    return kib, len(os.listdir(f'/proc/{pid}/fd'))


class Lane:
    """One fuseplan at a time, with a cache and a temporary directory of its own."""

    def __init__(self, program, root, name):
        self.program, self.dir, self.process, self.runs = program, os.path.join(root, name), None, 0
        self.compiler = None
        for made in ('cache/binaries', 'tmp', 'locks'):
            os.makedirs(self.path(made))
        binaries = os.environ.get('FUSEPLAN_TEST_BINARIES')
        if binaries:  # what suites have compiled; links, not copies: a lane may remove them, never change them
            try:
                for entry in os.scandir(binaries):
                    if entry.is_file():
                        os.link(entry.path, self.path('cache/binaries/' + entry.name))
            except OSError:
                pass  # another file system: then it compiles its own

    def path(self, name):
        return os.path.join(self.dir, name)

    def plant(self):
        self.compiler = shutil.copy(os.path.join(os.path.dirname(__file__), 'faulty_cc.sh'), self.path('compiler'))

    def touch_binaries(self, spoil, rng):
        """Removes some of its binaries, or cuts them short.  Others may have a link to the old file, or have it
        loaded."""
        for entry in sorted(os.listdir(self.path('cache/binaries'))):
            path = self.path('cache/binaries/' + entry)
            if rng.randrange(12) > 0:
                continue
            with open(path, 'rb') as file:
                begin = file.read(4001)
            os.unlink(path)
            if spoil and len(begin) > 4000:
                with open(path, 'wb') as file:
                    file.write(begin[:4000])

    def start(self, arguments, limit=None):
        """Starts fuseplan with little of a resource.  It dies with this program."""
        compiler = (self.compiler or 'cc') + ' -O0 -g0'  # soon done
        env = dict(os.environ, FUSEPLAN_DB=self.path('../results.db'), FUSEPLAN_CACHE=self.path('cache'),
                   FUSEPLAN_LOCK_DIR=self.path('locks'), FUSEPLAN_CC=compiler, TMPDIR=self.path('tmp'),
                   FUSEPLAN_CONFIG='off', OMP_WAIT_POLICY='passive')
        if self.compiler:
            env['FUSEPLAN_SANDBOX'] = 'off'  # faulty candidates remove flags

        def prepare():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if limit:
                resource.setrlimit(limit[0], (limit[1], resource.getrlimit(limit[0])[1]))

        with open(self.path('log'), 'wb') as log:
            self.process = subprocess.Popen([self.program, *arguments.split()], stdout=log, stderr=log, env=env,
                                            close_fds=False, preexec_fn=prepare)
        self.started_s = time.monotonic()
        self.runs += 1

    def pid(self):
        """0: nothing runs."""
        return self.process.pid if self.process and self.process.poll() is None else 0

    def said(self):
        with open(self.path('log'), encoding='utf-8', errors='replace') as file:
            return file.read().rstrip('\n').rpartition('\n')[2]

    def events(self):
        """What its search says; a run that was killed leaves half a line."""
        if not os.path.exists(self.path('events')):
            return []
        with open(self.path('events'), encoding='utf-8') as file:
            return [json.loads(line) for line in file if line.endswith('\n')]

    def began(self):
        """Whether its search says that it works: signals are caught from then on."""
        return any(event['event'] == 'step' for event in self.events())

    def temporary_files(self):
        return files_below(self.path('tmp')) + files_below(self.path('cache/temporary'))

    def stop(self):
        if self.pid():
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGINT)
        self.process.wait()


# ---- what was stored, against what was reported


class Told:
    """Plans as the events of runs reported them.  once: of one workload, of which each plan is measured once."""

    def __init__(self, once):
        self.once, self.count, self.plans = once, collections.Counter(), {}

    def read(self, events):
        for event in events:
            if event['event'] != 'plan':
                continue
            plan = event['plan']
            self.count[plan['value']] += 1
            if self.once and self.count[plan['value']] > 1:
                complain(f'plan {plan["value"]} was measured twice')
            self.plans[plan['value']] = plan['status'] == 'failed', plan.get('ms')


class Account:
    """Trials as they were stored.  Workloads of FAULTY_LAYERS layers fail where their lane's compiler plants faults,
    and nowhere else; all other trials go well."""

    TRIALS = """
        SELECT trial.id, kind, trial.status, reason_code, reason, layers, trial.study, trial.plan, trial.schedule,
          median_ms, stored_utc, coalesce(plan.segments,
            CASE first_op WHEN last_op THEN first_op ELSE first_op || '-' || last_op END)
        FROM trial JOIN study ON study.id = study JOIN workload ON workload.id = workload
        LEFT JOIN plan ON plan.value = trial.plan LEFT JOIN schedule ON schedule.id = trial.schedule
        LEFT JOIN segment ON segment.id = schedule.segment
        WHERE trial.id > ? AND trial.id <= ? ORDER BY trial.id"""

    def __init__(self, path, planted):
        self.path, self.planted, self.handle = path, planted, None
        self.last_id, self.failed, self.hash = 0, 0, hashlib.sha256()
        self.stored = collections.Counter()  # by layers

    def rows(self, sql, *values):
        if self.handle is None and os.path.exists(self.path):
            self.handle = sqlite3.connect(f'file:{self.path}?mode=ro', uri=True, timeout=10)
        if self.handle is None or not self.handle.execute(
                "SELECT 1 FROM sqlite_master WHERE name = 'failure'").fetchall():
            return []  # somebody is about to make it
        return self.handle.execute(sql, values).fetchall()

    def judge(self, row):
        ident, kind, status, code, reason, layers, *_, segments = row
        may_fail = self.planted and layers == FAULTY_LAYERS
        planted = [PLANTED[s] for s in str(segments).split() if may_fail and s in PLANTED]
        failed = status == 'failed'
        self.failed += failed
        if failed and code not in [reason for reason, _ in planted]:
            complain(f'trial {ident} failed, and nothing was planted: {kind} {segments}: {code}: {reason}')
        if not failed and any(always for _, always in planted):
            complain(f'trial {ident} has a planted fault and is {status}: {segments}')

    def take(self):
        """Takes the trials stored since the last call."""
        for row in self.rows(self.TRIALS, self.last_id, 1 << 62):
            if row[0] != self.last_id + 1:
                complain(f'after trial {self.last_id} comes trial {row[0]}')
            self.last_id = row[0]
            self.stored[row[5]] += 1
            self.hash.update(repr(row).encode())
            self.judge(row)

    def check_whole(self):
        """Whether all trials taken are as they were."""
        again = hashlib.sha256()
        for row in self.rows(self.TRIALS, 0, self.last_id):
            again.update(repr(row).encode())
        if not self.stored[STEADY_LAYERS] or not self.stored[FAULTY_LAYERS]:
            complain('a lane has stored no trial')
        if again.digest() != self.hash.digest():
            complain(f'{sum(self.stored.values())} trials were stored, and not all are there as they were')

    def match(self, told, layers, seq_len, untold):
        """Each plan reported is stored as it was reported.  At most `untold` plans are stored of which no event says: a
        kill may come between the two.  seq_len 0: of all workloads of so many layers."""
        found = collections.Counter()
        for plan, status, ms in self.rows(
                'SELECT trial.plan, trial.status, median_ms FROM trial JOIN study ON study.id = study'
                ' JOIN workload ON workload.id = workload'
                " WHERE kind = 'plan' AND layers = ?1 AND (?2 = 0 OR seq_len = ?2)", layers, seq_len):
            found[plan] += 1
            failed = status == 'failed'
            if told.once and plan in told.plans and (failed != told.plans[plan][0] or not (
                    failed or math.isclose(ms, told.plans[plan][1], rel_tol=1e-6))):
                complain(f'plan {plan} of {seq_len} tokens was reported as {told.plans[plan]} and is stored as {ms} ms '
                         f'({status})')
        missing = sum((told.count - found).values())
        if missing:
            complain(f'{missing} plans of {seq_len} tokens were reported and are not stored')
        more = sum((found - told.count).values())
        if more > untold:
            complain(f'{more} plans of {seq_len} tokens are stored of which no event says, {untold} may be')


# ---- both lanes


class Turn:
    """When somebody of a kind may be killed again."""

    def __init__(self, lane, layers, worker):
        self.lane, self.layers, self.worker = lane, layers, worker
        self.next_s = self.stored = self.kills = 0


class Soak:
    def __init__(self, program, root, seed, planted):
        self.rng = random.Random(seed)
        self.account = Account(os.path.join(root, 'results.db'), planted)
        self.steady, self.faulty = Lane(program, root, 'steady'), Lane(program, root, 'faulty')
        if planted:
            self.faulty.plant()
        self.turns = [Turn(self.steady, STEADY_LAYERS, True), Turn(self.faulty, FAULTY_LAYERS, True),
                      Turn(self.faulty, FAULTY_LAYERS, False)]
        self.samples, self.counts = [], collections.Counter()
        self.fault, self.told, self.act_s, self.resume_s = None, Told(True), math.inf, math.inf
        self.seq_len = self.runs_of_workload = self.kills_of_workload = self.kills_of_run = self.done = 0
        self.started_s = self.told_s = time.monotonic()
        self.sampled_s = self.longest_end_s = 0

    def between(self, low, high):
        """The short ones as often as the long ones."""
        return low * (high / low) ** self.rng.random()

    def start_steady(self):
        self.steady.start(f'search -q --target cpu -m causal -H 1 -W 4 -L {STEADY_LAYERS} --budget 64'
                          f' --events {self.steady.path("events")} -b {",".join(map(str, range(1, 65)))}'
                          f' -s {",".join(map(str, range(8, 72)))}')

    def draw_fault(self):
        if self.runs_of_workload >= MOST_FAULTY_RUNS:
            return FAULTS[0]
        if not self.account.planted:  # each in turn, but for those of candidates
            usable = [f for f in FAULTS if f.act != 'flag']
            return usable[(self.faulty.runs + 1) % len(usable)]
        return self.rng.choices(FAULTS, [f.weight for f in FAULTS])[0]

    def start_faulty(self):
        if self.runs_of_workload == 0:
            self.seq_len = 8 + self.done % 4000
        self.fault = fault = self.draw_fault()
        self.counts[fault.name] += 1
        self.act_s = self.resume_s = math.inf
        self.kills_of_run, limit = 0, None
        if fault.act in ('lose', 'spoil'):
            self.faulty.touch_binaries(fault.act == 'spoil', self.rng)
        if fault.act == 'lack':
            limit = fault.which[0], int(self.between(fault.which[1] / 64, fault.which[1]))
        if fault.act in ('signal', 'suspend', 'flag'):
            self.act_s = time.monotonic() + self.between(0.01, 20 if self.account.planted else 2)
        self.forget('events')
        self.faulty.start(f'search -q --target cpu -b 1 -s {self.seq_len} -m causal -H 1 -W 4 -L {FAULTY_LAYERS}'
                          f' --budget {24 if self.account.planted else 6} --events {self.faulty.path("events")}', limit)
        self.runs_of_workload += 1

    def forget(self, *names):
        for name in names:
            if os.path.exists(self.faulty.path(name)):
                os.unlink(self.faulty.path(name))

    def act(self):
        """Does to the search what is due."""
        now = time.monotonic()
        if now > self.resume_s:
            self.faulty.process.send_signal(signal.SIGCONT)
        if now < self.act_s:
            return
        self.act_s = math.inf
        if self.fault.act == 'signal':
            self.faulty.process.send_signal(self.fault.which)
            self.kills_of_workload += self.fault.which == signal.SIGKILL
        elif self.fault.act == 'suspend':
            self.faulty.process.send_signal(signal.SIGSTOP)
            self.resume_s = now + self.between(0.1, 4)
        else:
            with open(self.faulty.path(self.fault.which), 'wb'):
                pass

    def kill_one(self, turn):
        now = time.monotonic()
        dies_itself = turn.lane == self.faulty and self.fault.act == 'flag'
        if now < turn.next_s or not turn.lane.pid() or dies_itself:
            return
        self.account.take()
        if self.account.stored[turn.layers] < turn.stored + TRIALS_APART:
            return
        drawn = [pid for pid, name in tasks_below(turn.lane.pid()).items()
                 if name != 'fuseplan' and (name == 'fuseplan-worker') == turn.worker]  # fuseplan: a supervisor
        if not drawn:
            return
        try:
            os.kill(self.rng.choice(drawn), self.rng.choice([signal.SIGKILL] * 3 + [signal.SIGTERM]))
        except ProcessLookupError:
            return
        self.account.take()  # those of the meantime do not count
        turn.next_s = now + KILLS_APART_S + self.between(0.1, 10)
        turn.stored = self.account.stored[turn.layers]
        turn.kills += 1
        self.kills_of_run += turn.lane == self.faulty

    def names_kill(self, said):
        """Whether a message names the signal that hit a compiler twice, or any program while the search looked at its
        compiler."""
        return (any(word in said for word in ('Killed', 'Terminated', 'terminated')) and
                self.kills_of_run > (1 if 'failed twice' in said else 0))

    def judge_end(self):
        code, said = self.faulty.process.returncode, self.faulty.said()
        spent_s = time.monotonic() - self.faulty.started_s
        killed = (self.fault.act == 'signal' and code == -self.fault.which and
                  (code == -signal.SIGKILL or not self.faulty.began()))
        if not (code == 0 or killed or 0 < code == self.fault.exit_code or code == 1 and self.names_kill(said)):
            complain(f"'{self.fault.name}' ended with exit status {code}: {said}")
        if spent_s > STUCK_S:
            complain(f"'{self.fault.name}' took {spent_s:.0f} s")
        if not killed and self.faulty.began() and self.faulty.temporary_files():  # else it did not come to sweep
            complain(f"'{self.fault.name}' left {self.faulty.temporary_files()} files")

    def end_faulty(self):
        cut = self.faulty.process.returncode != 0
        self.longest_end_s = max(self.longest_end_s, expect_end(self.steady, self.fault.name))
        self.judge_end()
        self.told.read(self.faulty.events())
        self.account.take()
        self.account.match(self.told, FAULTY_LAYERS, self.seq_len, self.kills_of_workload)
        if cut:
            return
        self.done += 1
        self.runs_of_workload = self.kills_of_workload = 0
        self.told = Told(True)
        self.forget('crash', 'hang', 'daemon')

    def tell(self):
        self.account.take()
        print(f'{time.monotonic() - self.started_s:6.0f} s  {self.account.last_id} trials, {self.faulty.runs} searches'
              f' with faults, {self.kills()} killed, {complaints} wrong', flush=True)

    def kills(self):
        return ', '.join(f'{t.kills} {os.path.basename(t.lane.dir)} {"workers" if t.worker else "compilers"}'
                         for t in self.turns)

    def tick(self):
        now = time.monotonic()
        if not self.steady.pid():
            sys.exit(f'the steady lane ended by itself, with status {self.steady.process.returncode}: '
                     f'{self.steady.said()}')
        if now - self.sampled_s >= SAMPLE_S:
            self.sampled_s = now
            self.samples.append((*usage(self.steady.pid()), self.steady.temporary_files()))
        if now - self.told_s >= TELL_S:
            self.told_s = now
            self.tell()
        if not self.faulty.pid():
            if self.faulty.runs:
                self.end_faulty()
            self.start_faulty()
        self.act()
        for turn in self.turns:
            self.kill_one(turn)

    def finish(self):
        """Ends both lanes."""
        self.faulty.stop()
        if self.fault.act != 'lack' or self.faulty.process.returncode != self.fault.exit_code:  # which was faster
            self.fault = STOPPED
        self.steady.stop()
        self.end_faulty()
        steady = Told(False)
        steady.read(self.steady.events())
        self.account.match(steady, STEADY_LAYERS, 0, 0)
        self.account.check_whole()
        self.faulty.start('db check')
        if self.faulty.process.wait() != 0:
            complain(f"'db check': {self.faulty.said()}")

    def judge_samples(self):
        """What the steady lane may not need more and more of: the first quarter warms up."""
        quarter = len(self.samples) // 4
        print(f'steady lane: {len(self.samples)} samples{", too few to judge" if quarter < 50 else ""}')
        for i, (name, more, share) in enumerate([('KiB', 2048, 0.02), ('descriptors', 0, 0), ('files', 0, 0)]):
            if quarter < 50:
                break
            second, last = (statistics.median(sample[i] for sample in self.samples[quarter * k:quarter * (k + 1)])
                            for k in (1, 3))
            print(f'  {second:.0f} {name} in the second quarter, {last:.0f} in the last')
            if last > second * (1 + share) + more:
                complain(f'{name} grew')

    def summarize(self):
        self.tell()
        print(f'{self.account.failed} trials failed as planted; faulty lane: {self.done} workloads')
        for fault in FAULTS:
            print(f'  {fault.name:24} {self.counts[fault.name]}')
        self.judge_samples()
        print(f'all that a search had started was gone {self.longest_end_s:.2f} s after it at most\n{complaints} wrong')


def main():
    if not 3 <= len(sys.argv) <= 5:
        sys.exit('usage: soak.py FUSEPLAN HOURS [SEED [WORKLOADS]]')
    program, hours, seed, workloads = os.path.abspath(sys.argv[1]), *(sys.argv[2:] + ['0', 'inf'][len(sys.argv) - 3:])
    root = tempfile.mkdtemp(prefix='soak-', dir=os.getcwd())
    print('in', root)
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)  # what the lanes leave behind becomes a child of this one
    soak = Soak(program, root, int(seed), len(sys.argv) < 5)
    stop = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.append(True))
    soak.start_steady()
    while time.monotonic() < soak.started_s + 3600 * float(hours) and soak.done < float(workloads) and not stop:
        soak.tick()
        time.sleep(0.02)
    soak.finish()
    soak.summarize()
    if complaints == 0:
        shutil.rmtree(root)
    sys.exit(complaints > 0)


main()
