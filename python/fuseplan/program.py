"""Calls the program fuseplan."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time


class ProgramError(RuntimeError):
    """The program failed: its own message.  status: its exit status."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status


NOTHING_KNOWN = 3  # an exit status


def find():
    """The path of the program: $FUSEPLAN, or the first on PATH, or the one that was installed beside this package."""
    named = os.environ.get("FUSEPLAN")
    if named and os.path.isfile(named) and os.access(named, os.X_OK):
        return named
    here = os.path.dirname(os.path.abspath(__file__))  # PREFIX/share/fuseplan/python/fuseplan
    beside = os.path.normpath(os.path.join(here, "../../../../bin/fuseplan"))
    found = None if named else shutil.which("fuseplan") or (beside if os.access(beside, os.X_OK) else None)
    if found is None:
        raise ProgramError(f"'{named}', which FUSEPLAN names, is no program" if named else
                           "the program fuseplan is not on PATH: install it by './run install', or name it in the "
                           "variable FUSEPLAN", 127)
    return os.path.abspath(found)


def _environment():
    """Of the program: settings files name places, and no sizes beside those of a model."""
    jobs = f"-j{len(os.sched_getaffinity(0))}"  # of make, which builds libraries
    return {"FUSEPLAN_CONFIG": "places", "MAKEFLAGS": jobs, **os.environ}


def run(*words, progress=None, check=True):
    """Standard output of `fuseplan WORDS`.  progress: called with each event of cli.md's --events.  check: False: what
    fails is no error if it has written something."""
    line = [find(), *map(str, words)]
    out, err, status = _run(line, progress)
    if status != 0 and (check or not out):
        raise ProgramError(_last_message(err) or f"'{' '.join(line)}' exits with status {status}", status)
    return out


def _run(line, progress):
    """(standard output, standard error, exit status)"""
    with contextlib.ExitStack() as undo:
        alive, held, reading, writing = *os.pipe(), *os.pipe()
        undo.callback(os.close, held)
        undo.callback(os.close, alive)
        events = undo.enter_context(os.fdopen(reading))  # without progress none come
        try:
            process = subprocess.Popen([*line, *(["--events", f"/dev/fd/{writing}"] if progress else [])],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, env=_environment(), pass_fds=[alive] + [writing] * bool(progress))
        finally:
            os.close(writing)
        _tie(process, alive)
        texts = {}
        readers = [threading.Thread(target=lambda name=name, pipe=pipe: texts.update({name: pipe.read()}))
                   for name, pipe in (("out", process.stdout), ("err", process.stderr))]
        for reader in readers:
            reader.start()
        try:
            for event in events:
                progress(json.loads(event))
            process.wait()
        except BaseException:  # Ctrl-C, too: the program stores what it has measured
            process.terminate()
            raise
        finally:
            status = process.wait()
            for reader, pipe in zip(readers, (process.stdout, process.stderr)):
                reader.join()
                pipe.close()
    return texts["out"], texts["err"], status


def _tie(process, alive):
    """Lets SIGTERM end a process where this one ends before it, as by SIGKILL: then the last writer of the pipe `alive`
    is gone, of which the system tells the owner.  PR_SET_PDEATHSIG would tell of the end of a thread, and has to be set
    by the child."""
    fcntl.fcntl(alive, fcntl.F_SETOWN, process.pid)
    fcntl.fcntl(alive, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(alive, fcntl.F_SETFL, os.O_ASYNC)


def _last_message(err):
    """The program's own message; with what a compiler said, if it speaks of that."""
    lines = err.strip().splitlines() or [""]
    message = ([line for line in lines if line.startswith("fuseplan")] or lines)[-1]
    return "\n".join(lines[-20:]) if "above" in message else message


def version():
    """What the program is: its version, and its file's size and time, which differ between builds."""
    place = os.stat(find())
    return f"{run('--version').strip()} {place.st_size} {place.st_mtime_ns}"


@contextlib.contextmanager
def reported(what, progress):
    """What is to be called with each event, or None.  progress: see optimize()."""
    bar = Bar(what) if progress is True else progress or None
    try:
        yield bar
    finally:
        if isinstance(bar, Bar):
            bar.close()


class Bar:
    """A line of progress on stderr, which notebooks show, too; rewritten, or where it cannot be every 10 s anew."""

    def __init__(self, what, file=None):
        self.what, self.file, self.begun, self.told = what, file or sys.stderr, time.monotonic(), 0.0
        self.best, self.width = "", 0
        self.rewrites = self.file.isatty() or "ipykernel" in sys.modules

    def __call__(self, event):
        if event.get("event") == "plan" and event.get("best"):
            self.best = f", best {event['best']['ms']:.3f} ms"
        elapsed = time.monotonic() - self.begun
        if event.get("event") not in ("step", "plan") or elapsed - self.told < (0.1 if self.rewrites else 10):
            return
        self.told = elapsed
        part = f" {event['done']} of {event['total']}" if event.get("total") else ""
        left = f", {event['left_s']:.0f} s left" if event.get("left_s") else ""
        self.show(f"{self.what}: {event.get('phase', 'plans')}{part}{self.best}, {elapsed:.0f} s{left}")

    def show(self, text):
        end = "" if self.rewrites else "\n"
        begin = "\r" if self.rewrites else ""
        print(begin + text.ljust(self.width), end=end, file=self.file, flush=True)
        self.width = len(text)

    def close(self):
        if self.rewrites and self.width:
            self.show("")
            print("\r", end="", file=self.file, flush=True)
