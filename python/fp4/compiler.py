"""The compiler: from the text of a program to code."""

from __future__ import annotations

import ctypes
import dataclasses
import operator
import os
import pathlib
import re
import threading
import weakref
from collections.abc import Mapping
from typing import Any

from . import _library as c
from .builder import Builder
from .device import Device
from .errors import Error, UsageError
from .manifest import Manifest
from .program import Program

#: The names that Compiled.ir knows, in order (docs/concepts/phases.md).
PHASES = ("parsed", "fused", "planned", "tiles", "roles", "pipelined",
          "scheduled", "nvvm", "ptx")


@dataclasses.dataclass(frozen=True)
class Kernel:
    """The code of one kernel module. `cubin` is empty without assemble=True."""

    name: str
    ptx: str
    cubin: bytes = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class _Source:
    text: str
    name: str
    target: str
    ptxas: str | None
    remarks: bool
    pdl: str
    device: str | None
    dims: tuple[tuple[str, int], ...]


class _Session:
    """An fp4_compiler with a loaded program. One thread at a time uses it."""

    def __init__(self, source: _Source) -> None:
        self.library = c.library()
        if not hasattr(self.library, "fp4_compiler_create"):
            raise ImportError(f"'{c.PATH}' is the runtime and has no compiler\nnote: install "
                              "the package fp4-compiler, or set FP4_LIBRARY to the path of "
                              "libfp4.so")
        self.heard = heard = list[str]()
        # The callback refers to the list alone: a cycle would keep the compiler until Python looks
        # for one.
        self.callback = c.DiagnosticFunction(lambda context, text: heard.append(c.text(text)))
        options = c.CompilerOptions(size=ctypes.sizeof(c.CompilerOptions))
        options.target = c.encode(source.target, "'target'")
        options.ptxas = None if source.ptxas is None else c.encode(source.ptxas, "'ptxas'")
        options.remarks = source.remarks
        options.pdl = c.encode(source.pdl, "'pdl'")
        options.device = None if source.device is None else c.encode(source.device, "'device'")
        options.diagnostic = self.callback
        handle = ctypes.c_void_p()
        self.library.fp4_compiler_create(ctypes.byref(options), ctypes.byref(handle))
        self.handle = handle.value
        weakref.finalize(self, self.library.fp4_compiler_destroy, self.handle)
        self.call("load_text", c.encode(source.text, "'text'"), c.encode(source.name, "'name'"))
        for dim, size in source.dims:
            self.call("specialize", c.encode(dim, "a name in 'dims'"), size)

    def call(self, name: str, *arguments: Any) -> None:
        """Calls fp4_compiler_NAME. The diagnostics become part of the message of the error."""
        before = len(self.heard)
        try:
            getattr(self.library, f"fp4_compiler_{name}")(self.handle, *arguments)
        except Error as error:
            said = "".join(self.heard[before:]).rstrip("\n")
            if not said:
                raise
            raise type(error)(f"{error.message}\n{said}", error.note) from None

    def ir(self) -> str:
        return c.text(self.library.fp4_compiler_get_ir(self.handle))

    def kernels(self) -> tuple[Kernel, ...]:
        kernels = []
        for index in range(self.library.fp4_compiler_get_num_kernels(self.handle)):
            code = c.KernelCode()
            self.call("get_kernel", index, ctypes.byref(code))
            ptx = ctypes.string_at(code.ptx, code.ptx_size)
            cubin = ctypes.string_at(code.cubin, code.cubin_size) if code.cubin else b""
            kernels.append(Kernel(c.text(code.module), ptx.decode(), cubin))
        return tuple(kernels)


class Compiled:
    """A compiled program; `compile` makes it.

    `compiled(x, w)` is `compiled.program()(x, w)`.

    Attributes:
        kernels: name, PTX and cubin of each kernel module.
        manifest: functions and the types of their operands, and the resources of the kernels.
        remarks: warnings of the compiler, and with remarks=True what it said about fusions.
        target: "sm_100a".
    """

    def __init__(self, source: _Source, assemble: bool) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._ir: dict[str, str] = {}
        self._program: Program | None = None
        self._session = _Session(source)
        self._session.call("compile_to", b"cubin" if assemble else b"ptx")
        self._ir["cubin" if assemble else "ptx"] = self._session.ir()
        self.target = source.target
        self.kernels = self._session.kernels()
        manifest = self._session.library.fp4_compiler_get_manifest(self._session.handle)
        self.manifest = Manifest(c.text(manifest))
        self.remarks = tuple(self._session.heard)

    def ir(self, phase: str) -> str:
        """The program after `phase` as text: one of fp4.PHASES, of which "parsed" is the program as
        it was written."""
        if not isinstance(phase, str):
            raise TypeError(f"'phase' must be a str, but got {type(phase).__name__}")
        if phase not in PHASES:
            raise UsageError(f"unknown phase '{phase}'", f"the phases are {', '.join(PHASES)}")
        with self._lock:
            if phase not in self._ir:
                session = _Session(self._source)
                if phase != "parsed":
                    session.call("compile_to", phase.encode())
                self._ir[phase] = session.ir()
            return self._ir[phase]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a library, which `load` reads and fp4-run runs. The file is never half written."""
        encoded = c.encode(path, "'path'")
        with self._lock:
            self._session.call("write_library", encoded)

    def program(self, device: Device | None = None) -> Program:
        """The program in this process, on `device`, or where the tensors of a call are."""
        with self._lock:
            if self._program is None:
                handle = ctypes.c_void_p()
                self._session.call("get_program", ctypes.byref(handle))
                assert handle.value
                self._program = Program(handle.value)
            return self._program if device is None else self._program.on(device)

    def __call__(self, *tensors: Any, **options: Any) -> Any:
        return self.program()(*tensors, **options)

    def __repr__(self) -> str:
        functions = "; ".join(map(str, self.manifest.functions.values()))
        return f"<fp4.Compiled for {self.target}: {functions}>"


def compile(text: str | os.PathLike[str] | Builder, *, target: str = "sm_100a",
            dims: Mapping[str, int] | None = None, assemble: bool = False,
            ptxas: str | os.PathLike[str] | None = None, remarks: bool = False,
            name: str | None = None, pdl: str = "chosen", device: str | None = None,
            overlap: None = None) -> Compiled:
    """Compiles a program to PTX.

    Args:
        text: a program in the fp4 dialect (docs/reference/semantics.md), or the path of one as
            pathlib.Path, or an fp4.Builder.
        target: "sm_100a" or another name of the target table.
        dims: sizes, in elements, of the dimensions that arguments name with fp4.dims.
        assemble: also make cubins. The assembler is ptxas; no GPU is needed.
        ptxas: its path; without it $FP4_PTXAS, else the one that is found.
        remarks: report which fusions fired, and why others did not, in Compiled.remarks.
        name: what diagnostics call the text.
        pdl: which kernels begin while the one before them ends (programmatic dependent
            launch): "chosen" by plans, "none" or "all". No result depends on it.
        device: the product that plans are for, such as "h200"; without it all of the target.
        overlap: the former name of `pdl`, which is refused.

    Raises:
        CompileError: the program does not parse, verify or compile, no argument has a dimension of
            `dims`, or ptxas is missing.
    """
    if overlap is not None:
        raise UsageError("'overlap' is called 'pdl' now", f"pass pdl={overlap!r}")
    if isinstance(text, os.PathLike):
        name = name or os.fspath(text)
        text = _read(pathlib.Path(text))
    elif isinstance(text, Builder):
        text = text.text(locations=True)
    c.encode(text, "'text'")
    if re.fullmatch(r"[^\n{}%]+\.mlir", text):
        raise UsageError(f"'text' must be the text of a program, but got the name '{text}'",
                         f"pass pathlib.Path('{text}')")
    sizes = tuple(_dims(dims)) if dims is not None else ()
    path = None if ptxas is None else os.fspath(ptxas)
    source = _Source(text, name or "program.mlir", target, path, bool(remarks), pdl, device,
                     sizes)
    return Compiled(source, assemble)


def _read(path: pathlib.Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read '{path}': {error}", "pass a file with MLIR text") from error


def _dims(dims: Mapping[str, int]) -> list[tuple[str, int]]:
    if not isinstance(dims, Mapping):
        raise TypeError(f"'dims' must map names to sizes, but got {type(dims).__name__}")
    sizes = []
    for name, size in dims.items():
        c.encode(name, "a name in 'dims'")
        if not hasattr(size, "__index__"):
            raise TypeError(f"the size of '{name}' must be an int, but got {type(size).__name__}")
        number = operator.index(size)
        if not 0 < number < 2**63:
            raise UsageError(f"the size of '{name}' must be positive and below 2^63, but got "
                             f"{number}")
        sizes.append((name, number))
    return sizes
