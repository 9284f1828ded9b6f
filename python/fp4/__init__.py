"""fp4: compile 4-bit block-scaled programs, and run them on a GPU or in the simulator.

    compiled = fp4.compile(pathlib.Path("examples/nvfp4_linear.mlir"))
    y = compiled(x, w, verify=True)      # numpy or torch; CPU tensors run in the simulator

docs/guides/python.md shows each step.
"""

from ._library import library as _load
from ._library import text as _text
from .builder import Builder, FunctionBuilder, Hadamard, ScaledValue, Value
from .compiler import PHASES, Compiled, Kernel, compile
from .device import Device
from .errors import (
    CacheWarning,
    CompileError,
    DeviceError,
    Error,
    HazardError,
    InternalError,
    MismatchError,
    SimulationError,
    UsageError,
)
from .manifest import Function, Manifest, Operand, Type
from .program import Program, load
from .tensors import Tiled, tiled

__all__ = [
    "PHASES", "Builder", "CacheWarning", "CompileError", "Compiled", "Device", "DeviceError",
    "Error", "Function", "FunctionBuilder", "Hadamard", "HazardError", "InternalError", "Kernel",
    "Manifest", "MismatchError", "Operand", "Program", "ScaledValue", "SimulationError", "Tiled",
    "Type", "UsageError", "Value", "__version__", "compile", "load", "tiled", "version",
]

#: The version of this package; version() is that of the library that it found.
__version__ = "0.1.0"


def version() -> str:
    """The version of the library, "0.1.0"."""
    return _text(_load().fp4_version())
