"""benchmarks/micro/cuda.py, the few calls of the CUDA driver. The module is loaded from its file
under another name, because a module `cuda` on the path hides the package of the bindings, which
other libraries import."""
from __future__ import annotations

import importlib.util
import pathlib
from typing import Any

_spec = importlib.util.spec_from_file_location(
    "micro_cuda", pathlib.Path(__file__).resolve().parent.parent / "micro" / "cuda.py")
assert _spec and _spec.loader
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
Device: Any = _module.Device
