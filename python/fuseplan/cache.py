"""The user's cache of libraries: a directory for each content, and for each request a file that names it.

    ~/.cache/fuseplan-python/REQUEST.json    {"directory": "CONTENT", "digest": ..., "searched_s": ...}
    ~/.cache/fuseplan-python/CONTENT/        what `fuseplan export --build` wrote

REQUEST is a hash of all that a library depends on but the plan; CONTENT one of the sources.  What is written goes to
another name first, so that a process that is killed leaves nothing half done.  $FUSEPLAN_PYTHON_CACHE names another
place.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile

_LIBRARY = "libencoder.so"


@contextlib.contextmanager
def _with_advice():
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}; FUSEPLAN_PYTHON_CACHE names another place for libraries",
                      error.filename) from None


def directory():
    named = os.environ.get("FUSEPLAN_PYTHON_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = named or os.path.join(base, "fuseplan-python")
    with _with_advice():
        if not named and base.startswith("~"):
            raise FileNotFoundError(errno.ENOENT, "HOME is not set, and this user has no home", path)
        os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def request_of(**fields):
    return hashlib.sha256(json.dumps(fields, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _digest(library):
    """Of what a process loads of a library."""
    digest = hashlib.sha256()
    for name in _LIBRARY, "encoder.py", "manifest.json":
        with open(os.path.join(library, name), "rb") as file:
            digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


def _is_whole(path, digest):
    try:
        return _digest(path) == digest
    except OSError:
        return False


def find(request):
    """(directory of the library, what is known of it), or None if there is none, or none that is whole."""
    try:
        with open(os.path.join(directory(), request + ".json"), encoding="utf-8") as file:
            about = json.load(file)
        path = os.path.join(directory(), about["directory"])
        return (path, about) if _is_whole(path, about["digest"]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextlib.contextmanager
def lock(request):
    """One process at a time builds a library."""
    path = os.path.join(directory(), request + ".lock")
    with _with_advice():
        file = open(path, "w", encoding="utf-8")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def store(request, build, **about):
    """Calls build(directory), which writes a library there, and keeps it.  Returns what find() does."""
    made = tempfile.mkdtemp(prefix="made-", dir=directory())
    try:
        build(os.path.join(made, "library"))
        source = os.path.join(made, "library")
        digest = _digest(source)
        content = hashlib.sha256(request.encode() + digest.encode()).hexdigest()[:32]
        path = os.path.join(directory(), content)
        if not _is_whole(path, digest):  # else a search has found the plans that were there, and others may load it
            if os.path.exists(path):
                os.rename(path, os.path.join(made, "old"))
            os.rename(source, path)
        text = json.dumps({**about, "directory": content, "digest": digest})
        with open(os.path.join(made, "request"), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(file.name, os.path.join(directory(), request + ".json"))
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return find(request)
