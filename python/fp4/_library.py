"""libfp4 through ctypes: where it is, and the types of include/fp4-c."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import platform
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from .errors import UsageError, make_error

MAX_RANK = 4

DiagnosticFunction = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
AllocateFunction = ctypes.CFUNCTYPE(c_uint64, c_void_p, c_uint64, c_uint64)
FreeFunction = ctypes.CFUNCTYPE(None, c_void_p, c_uint64, c_uint64)


class CompilerOptions(ctypes.Structure):
    """fp4_compiler_options"""

    _fields_ = [("size", c_uint64), ("target", c_char_p), ("ptxas", c_char_p),
                ("remarks", c_int32), ("diagnostic", DiagnosticFunction), ("context", c_void_p),
                ("pdl", c_char_p), ("device", c_char_p)]


class KernelCode(ctypes.Structure):
    """fp4_kernel_code"""

    _fields_ = [("module", c_char_p), ("ptx", c_void_p), ("ptx_size", c_uint64),
                ("cubin", c_void_p), ("cubin_size", c_uint64)]


class DeviceOptions(ctypes.Structure):
    """fp4_device_options"""

    _fields_ = [("size", c_uint64), ("target", c_char_p), ("check", c_char_p),
                ("policy", c_char_p), ("seed", c_uint64), ("timeline", c_char_p),
                ("threads", c_uint32)]


class Tensor(ctypes.Structure):
    """fp4_tensor"""

    _fields_ = [("address", c_uint64), ("bytes", c_uint64), ("element", c_int32),
                ("layout", c_int32), ("rank", c_int32), ("sizes", c_int64 * MAX_RANK),
                ("strides", c_int64 * MAX_RANK)]


class Allocator(ctypes.Structure):
    """fp4_allocator"""

    _fields_ = [("context", c_void_p), ("allocate", AllocateFunction), ("free", FreeFunction)]


class CallOptions(ctypes.Structure):
    """fp4_call_options"""

    _fields_ = [("size", c_uint64), ("stream", c_uint64), ("allocator", POINTER(Allocator))]


# Argument types of each function. The functions of the first table return an fp4_error, which
# _check raises.
_CHECKED: dict[str, list[Any]] = {
    "fp4_compiler_create": [POINTER(CompilerOptions), POINTER(c_void_p)],
    "fp4_compiler_load_text": [c_void_p, c_char_p, c_char_p],
    "fp4_compiler_specialize": [c_void_p, c_char_p, c_int64],
    "fp4_compiler_compile_to": [c_void_p, c_char_p],
    "fp4_compiler_get_kernel": [c_void_p, c_size_t, POINTER(KernelCode)],
    "fp4_compiler_write_library": [c_void_p, c_char_p],
    "fp4_compiler_get_program": [c_void_p, POINTER(c_void_p)],
    "fp4_device_open": [c_char_p, POINTER(DeviceOptions), POINTER(c_void_p)],
    "fp4_device_close": [c_void_p],
    "fp4_device_allocate": [c_void_p, c_uint64, POINTER(c_uint64)],
    "fp4_device_free": [c_void_p, c_uint64],
    "fp4_device_copy_to": [c_void_p, c_uint64, c_void_p, c_uint64],
    "fp4_device_copy_from": [c_void_p, c_void_p, c_uint64, c_uint64],
    "fp4_device_synchronize": [c_void_p],
    "fp4_program_load": [c_char_p, POINTER(c_void_p)],
    "fp4_program_describe": [c_void_p, c_char_p, POINTER(Tensor), c_size_t, POINTER(Tensor),
                             c_size_t],
    "fp4_executable_create": [c_void_p, c_void_p, POINTER(c_void_p)],
    "fp4_executable_describe": [c_void_p, c_char_p, POINTER(Tensor), c_size_t, POINTER(Tensor),
                                c_size_t],
    "fp4_executable_get_function": [c_void_p, c_char_p, POINTER(c_void_p)],
    "fp4_function_call": [c_void_p, POINTER(Tensor), c_size_t, POINTER(Tensor), c_size_t,
                          POINTER(CallOptions)],
    "fp4_executable_verify": [c_void_p, c_char_p, POINTER(Tensor), c_size_t, POINTER(Tensor),
                              c_size_t],
    "fp4_xla_add": [c_char_p, c_void_p],
    "fp4_tvm_ffi_add": [c_void_p, c_char_p, c_char_p],
}
_OTHERS: dict[str, tuple[Any, list[Any]]] = {
    "fp4_version": (c_char_p, []),
    "fp4_error_get_kind": (c_int32, [c_void_p]),
    "fp4_error_get_message": (c_char_p, [c_void_p]),
    "fp4_error_get_note": (c_char_p, [c_void_p]),
    "fp4_error_destroy": (None, [c_void_p]),
    "fp4_compiler_destroy": (None, [c_void_p]),
    "fp4_compiler_get_ir": (c_char_p, [c_void_p]),
    "fp4_compiler_get_manifest": (c_char_p, [c_void_p]),
    "fp4_compiler_get_num_kernels": (c_size_t, [c_void_p]),
    "fp4_device_get_name": (c_char_p, [c_void_p]),
    "fp4_device_get_selector": (c_char_p, [c_void_p]),
    "fp4_device_get_target": (c_char_p, [c_void_p]),
    "fp4_device_is_hardware": (c_int32, [c_void_p]),
    "fp4_find_product": (c_char_p, [c_char_p]),
    "fp4_program_get_manifest": (c_char_p, [c_void_p]),
    "fp4_program_destroy": (None, [c_void_p]),
    "fp4_executable_destroy": (None, [c_void_p]),
}


def find_library() -> pathlib.Path:
    """The library that `import fp4` found. $FP4_LIBRARY wins; then come the one of the wheel and
    the build tree of a checkout, with the compiler before the one without (libfp4rt.so)."""
    named = os.environ.get("FP4_LIBRARY")
    if named:
        if pathlib.Path(named).is_file():
            return pathlib.Path(named).resolve()
        raise ImportError(f"FP4_LIBRARY must name libfp4.so or libfp4rt.so, but '{named}' is no "
                          "file\nnote: build it with 'ninja -C build FP4C', or unset FP4_LIBRARY")
    package = pathlib.Path(__file__).resolve().parent
    folders = [package / "lib", package.parent.parent / "build" / "lib"]
    for name in ("libfp4.so", "libfp4rt.so"):
        for folder in folders:
            if (folder / name).is_file():
                return folder / name
    looked = " and ".join(f"'{folder}'" for folder in folders)
    raise ImportError(f"fp4 must have libfp4.so, but it is neither in {looked}\nnote: install the "
                      "package with 'pip install .', or build with 'ninja -C build FP4C', or set "
                      "FP4_LIBRARY to the path of libfp4.so")


def _check(library: ctypes.CDLL) -> Any:
    """An errcheck that raises an fp4_error and destroys it."""

    def check(error: int | None, function: Any, arguments: Any) -> None:
        del function, arguments
        if not error:
            return
        kind = library.fp4_error_get_kind(error)
        message = text(library.fp4_error_get_message(error))
        note = text(library.fp4_error_get_note(error))
        library.fp4_error_destroy(error)
        raise make_error(kind, message, note)

    return check


#: Machines of wheels, by the number in the header of an ELF file.
_MACHINES = {62: "x86_64", 183: "aarch64"}


def wrong_machine(path: pathlib.Path) -> str:
    """Returns what is wrong with a file of another machine, of which the loader says that there is
    none; an empty string for a file of this machine."""
    with path.open("rb") as file:
        header = file.read(20)
    machine = _MACHINES.get(int.from_bytes(header[18:20], "little"), "another machine")
    if not header.startswith(b"\x7fELF") or machine == platform.machine():
        return ""
    return (f"'{path}' must be for {platform.machine()}, on which this Python runs, but is for "
            f"{machine}")


def _check_machine(path: pathlib.Path) -> None:
    if wrong := wrong_machine(path):
        raise ImportError(f"{wrong}\nnote: install the wheels of this machine with 'pip install "
                          "--force-reinstall fp4-runtime fp4-compiler'")


def _check_version(loaded: Any) -> None:
    """Refuses a library of another version, as two wheels of different releases have it."""
    from . import __version__ as ours

    loaded.fp4_version.restype = c_char_p
    theirs = text(loaded.fp4_version())
    if theirs != ours:
        package = pathlib.Path(__file__).resolve().parent
        raise ImportError(f"'{PATH}' must have version {ours} of the package in '{package}', but "
                          f"has {theirs}\nnote: 'pip install fp4-runtime=={ours} "
                          f"fp4-compiler=={ours}' installs one version; in a checkout 'ninja -C "
                          "build FP4C' builds it")


PATH = find_library()


@functools.cache
def library() -> Any:
    """libfp4, which is loaded at the first use; an ImportError where the loader refuses it."""
    try:
        loaded = ctypes.CDLL(str(PATH))
    except OSError as error:
        _check_machine(PATH)
        raise ImportError(f"cannot load '{PATH}': {error}\nnote: libfp4.so needs libMLIR.so and "
                          "libLLVM.so of LLVM 22; libfp4rt.so runs libraries without "
                          "them") from error
    if not hasattr(loaded, "fp4_version"):
        raise ImportError(f"'{PATH}' is neither libfp4.so nor libfp4rt.so: it has no function "
                          "fp4_version\nnote: unset FP4_LIBRARY, or name one of the two")
    _check_version(loaded)
    check = _check(loaded)
    for name, arguments in _CHECKED.items():
        if (function := getattr(loaded, name, None)) is not None:
            function.argtypes, function.restype, function.errcheck = arguments, c_void_p, check
    for name, (result, arguments) in _OTHERS.items():
        if (function := getattr(loaded, name, None)) is not None:
            function.argtypes, function.restype = arguments, result
    return loaded


def text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


def encode(value: object, what: str) -> bytes:
    """A C string of a str or a path."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, but got {type(value).__name__}")
    if "\0" in value:
        raise UsageError(f"{what} must not contain a NUL character, but has one at "
                         f"{value.index(chr(0))}")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{what} must be Unicode, but has half of a surrogate pair at "
                         f"{error.start}") from error
