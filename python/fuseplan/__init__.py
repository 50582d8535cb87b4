"""Runs the encoder layers of a PyTorch model by fused kernels, which the program fuseplan finds, builds and verifies.

    import fuseplan
    model = fuseplan.optimize(model)
    print(fuseplan.explain(model))
    fuseplan.restore(model)
"""

import importlib

__version__ = "0.2.0"  # also of the program: CMakeLists.txt reads it

_FROM = {"optimize": "replace", "restore": "replace", "explain": "replace", "stats": "replace",
         "doctor": "machine", "Wrong": "replace", "encode": "sentences", "tune": "tuning",
         "tune_in_background": "tuning", "calibrate": "calibration", "write_rows": "calibration",
         "saturation": "calibration",
         "Unsupported": "finder", "ProgramError": "program"}
__all__ = list(_FROM)


def __getattr__(name):  # PyTorch is imported when something is used
    if name not in _FROM:
        raise AttributeError(f"module 'fuseplan' has no attribute '{name}'")
    try:
        return getattr(importlib.import_module("." + _FROM[name], __name__), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(f"fuseplan.{name} needs PyTorch, which this Python does not have: pip install torch",
                                  name="torch") from None


def __dir__():  # for completion in notebooks
    return sorted({*globals(), *_FROM})
