"""What this machine has for fuseplan; needs no PyTorch."""

import json

from . import program


def doctor():
    """What this machine has for fuseplan and what it lacks: a dict of program (its path), version, torch (PyTorch's
    version or None), gpu (its name or None), and checks, a list of dicts as `fuseplan doctor --format json` writes it."""
    checks = json.loads(program.run("doctor", "--format", "json", check=False))
    try:
        import torch
    except ModuleNotFoundError:
        torch = None
    return {"program": program.find(), "version": program.run("--version").strip(),
            "torch": torch and torch.__version__,
            "gpu": torch.cuda.get_device_name() if torch and torch.cuda.is_available() else None, "checks": checks}
