#!/usr/bin/env python3
"""Runs commands in each of which one call of the system fails: of each kind of call the first FIRST, and DRAWN that a
seed gives.

    tests/stress/faults.py FUSEPLAN LIBRARY SEED COMMAND=FIRST,DRAWN...

LIBRARY is inject.c's; FAULTS_KIND names the only kind, if it is set.  A command survives a fault if it ends by itself,
with success or with exit status 1 and a message; if it leaves no descriptor open and no file behind; and if its
database is whole and holds no failure, as the candidates are fine."""

import collections
import mmap
import os
import random
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile

LIMIT_S, FAILURES_MAX = 120, 40
WORKLOAD = '--target cpu -b 1 -s 8 -m causal -H 1 -W 4 -L 1'

# The database that a command begins with; whether everything is compiled; whether it starts a worker, whose calls fail
# too.
Command = collections.namedtuple('Command', 'before warm worker words')
COMMANDS = {
    'query': Command('full.db', True, False, f'query {WORKLOAD}'),
    'import': Command(None, True, False, 'db import full.txt'),
    'bench': Command(None, True, True, f'bench 0 {WORKLOAD} --baseline none'),
    'compile': Command(None, False, True, f'bench 0 {WORKLOAD} --baseline none'),
    'search': Command(None, True, True, f'search {WORKLOAD} --baseline 43690,41115 --budget 2 --strategy random'),
}

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'inject.c'), encoding='utf-8') as source:
    KINDS = re.findall(r'X\((\w+), E\w+\)', source.read())


class Shared:
    """What inject.c calls struct inject, in the file "inject"."""

    INTS = len(KINDS) + 5  # behind the program's name

    def __init__(self):
        with open('inject', 'wb+') as file:
            file.truncate(16 + 4 * self.INTS)
            self.bytes = mmap.mmap(file.fileno(), 0)

    def arm(self, program, kind=0, number=0):
        self.bytes[:] = struct.pack(f'16s{self.INTS}i', program.encode(), kind, number, *[0] * (self.INTS - 2))

    def read(self):
        _, _, _, fired, *calls, left_open, exited = struct.unpack(f'16s{self.INTS}i', self.bytes)
        return fired, calls, left_open if exited else 0


class Faults:
    def __init__(self, fuseplan, library, seed):
        self.fuseplan, self.library, self.rng = os.path.abspath(fuseplan), os.path.abspath(library), random.Random(seed)
        self.runs = self.survived = self.failures = 0
        self.dir = tempfile.mkdtemp(prefix='fuseplan-faults-')
        os.chdir(self.dir)
        os.makedirs('tmp')
        os.makedirs('cache')
        binaries = os.environ.get('FUSEPLAN_TEST_BINARIES')
        if binaries:
            os.makedirs(binaries, exist_ok=True)
            os.symlink(binaries, 'cache/binaries')
        self.shared = Shared()
        os.environ.update(FUSEPLAN_INJECT=os.path.abspath('inject'), FUSEPLAN_DB='work/t.db', TMPDIR='tmp',
                          HOME=self.dir)
        self.must_pass('bench')
        subprocess.run([self.fuseplan, 'db', 'export', '-o', 'full.txt'], check=True)
        shutil.copy('work/t.db', 'full.db')

    def run(self, command, program, kind=0, number=0):
        """Its status, None past the limit.  "work" is a directory with nothing but the database, and the cache holds
        nothing unless warm."""
        shutil.rmtree('work', ignore_errors=True)
        os.makedirs('work')
        if command.before:
            shutil.copy(command.before, 'work/t.db')
        if not command.warm:
            shutil.rmtree('cold', ignore_errors=True)
        self.shared.arm(program, kind, number)
        env = dict(os.environ, FUSEPLAN_CACHE='cache' if command.warm else 'cold', LD_PRELOAD=self.library,
                   FUSEPLAN_PASS='LD_PRELOAD')  # to the worker too
        with open('out', 'wb') as out, open('err', 'wb') as err, subprocess.Popen(
                [self.fuseplan, *command.words.split()], stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env,
                start_new_session=True) as process:
            signal.alarm(LIMIT_S)
            try:
                return process.wait()
            except TimeoutError:
                os.killpg(process.pid, signal.SIGKILL)
                return None
            finally:
                signal.alarm(0)

    def must_pass(self, name, program='none'):
        """Runs a command without a fault; how many calls of each kind the program makes."""
        status = self.run(COMMANDS[name], program)
        if status != 0:
            sys.exit(f'faults: {name} fails without a fault: {status}: {self.said()}')
        return self.shared.read()[1]

    @staticmethod
    def said():
        with open('err', encoding='utf-8', errors='replace') as file:
            return file.read()

    def check_end(self, command, status):
        """Yields what is wrong with how a command ended."""
        said = self.said()
        left_open = self.shared.read()[2]
        if status not in (0, 1):
            yield 'it did not end in time' if status is None else f'exit status {status}'
        elif status == 1 and 'fuseplan' not in said and 'loading shared libraries' not in said:
            yield 'exit status 1 without a message'
        if left_open > 0:
            yield f'{left_open} descriptors are left open'
        temporary = 'cache/temporary' if command.warm else 'cold/temporary'
        for directory in ['tmp', 'work'] + ([temporary] if 'out of memory' not in said else []):
            for name in os.listdir(directory) if os.path.exists(directory) else []:
                if not (directory == 'work' and name.startswith('t.db')):
                    yield f"'{directory}/{name}' is left"

    def check_database(self):
        """Yields what is wrong with the database; a command may have made none."""
        if not os.path.exists('work/t.db'):
            return
        check = subprocess.run([self.fuseplan, 'db', 'check'], capture_output=True, text=True, check=False)
        if check.returncode == 3:
            return  # nothing is in it
        if check.returncode != 0:
            yield f'the database is not whole: {check.stdout}{check.stderr}'
            return
        handle = sqlite3.connect('work/t.db')
        failed = handle.execute("SELECT count(*) FROM trial WHERE status = 'failed'").fetchone()[0]
        handle.close()
        if failed > 0:
            yield f'{failed} failures are stored of candidates that are fine'

    def run_fault(self, name, program, kind, number):
        command = COMMANDS[name]
        status = self.run(command, program, kind, number)
        fired = self.shared.read()[0]
        wrong = [*self.check_end(command, status), *self.check_database()]
        self.runs += fired
        self.survived += fired and not wrong
        if wrong:
            print(f'{name}: {KINDS[kind]} call {number} of {program} fails:', '; '.join(wrong), flush=True)
            self.failures += 1

    def run_program(self, name, program, first, drawn):
        only, before = os.environ.get('FAULTS_KIND'), self.runs
        for kind, calls in enumerate(self.must_pass(name, program)):
            if calls == 0 or only not in (None, KINDS[kind]):
                continue
            runs, survived = self.runs, self.survived
            others = range(first + 1, calls + 1)
            numbers = [*range(1, min(calls, first) + 1), *(self.rng.choices(others, k=drawn) if others else [])]
            for number in numbers:
                if self.failures < FAILURES_MAX:
                    self.run_fault(name, program, kind, number)
            print(f'{name:7} {program:16} {KINDS[kind]:12} {calls:7} calls {self.runs - runs:6} faults '
                  f'{self.survived - survived:6} survived', flush=True)
        if self.runs == before and only is None and first + drawn > 0:
            sys.exit('faults: no call was made to fail')


def expire(*_):
    raise TimeoutError


def main():
    shares = [re.fullmatch(r'([a-z]+)=(\d+),(\d+)', text) for text in sys.argv[4:]]
    if not shares or not all(share and share[1] in COMMANDS for share in shares):
        sys.exit(f'usage: faults.py FUSEPLAN LIBRARY SEED COMMAND=FIRST,DRAWN..., COMMAND of {", ".join(COMMANDS)}')
    if os.environ.get('FAULTS_KIND', KINDS[0]) not in KINDS:
        sys.exit(f'faults: FAULTS_KIND is none of {", ".join(KINDS)}')
    signal.signal(signal.SIGALRM, expire)
    faults = Faults(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    for share in shares:
        faults.run_program(share[1], 'fuseplan', int(share[2]), int(share[3]))
        if COMMANDS[share[1]].worker:
            faults.run_program(share[1], 'fuseplan-worker', int(share[2]), int(share[3]))
    print(f'{faults.runs} faults, {faults.survived} survived')
    os.chdir('/')
    shutil.rmtree(faults.dir)
    sys.exit(faults.failures > 0)


main()
