"""Arrays of other packages as operands: what they are, and which operand they fit.

Nothing is converted, transposed, swizzled or made contiguous: an array either has the bytes that
the operand has, or the call raises an error before anything runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from . import _dlpack
from ._dlpack import CPU
from .errors import UsageError
from .manifest import Operand, Type

# The names of element types that NumPy with ml_dtypes and torch share. The first is what a result
# has; the others are views of the same bytes, which arguments may be.
_DTYPES: dict[str, tuple[str, ...]] = {
    "bf16": ("bfloat16", "uint16"),
    "f16": ("float16",),
    "f32": ("float32",),
    "i64": ("int64",),
    "i32": ("int32",),
    "i8": ("uint8", "int8"),
    "f4E2M1FN": ("float4_e2m1fn_x2", "uint8"),
    "f6E2M3FN": ("float6_e2m3fn", "uint8"),
    "f6E3M2FN": ("float6_e3m2fn", "uint8"),
    "f8E4M3FN": ("float8_e4m3fn", "uint8"),
    "f8E5M2": ("float8_e5m2", "uint8"),
    "f8E8M0FNU": ("float8_e8m0fnu", "uint8"),
}


@dataclasses.dataclass(frozen=True)
class Tiled:
    """Block scales in the layout tiled_128x4 together with their logical shape, (rows, columns);
    `tiled` makes it."""

    data: Any
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        if not isinstance(self.shape, tuple) or len(self.shape) != 2:
            raise TypeError(f"'shape' must be (rows, columns), but got {self.shape!r}")
        for name, value in zip(("rows", "columns"), self.shape):
            if not isinstance(value, int):
                raise TypeError(f"'{name}' must be an int, but got {type(value).__name__}")
            if not 0 <= value < 2**63:
                raise UsageError(f"'{name}' must be from 0 to 2^63 - 1, but got {value}")


def tiled(data: Any, rows: int, columns: int) -> Tiled:
    """Says how many rows and columns of scales a tiled buffer has.

    The size of a buffer in the layout tiled_128x4 does not tell the rows. If the function has a
    static shape, or names the dimension with fp4.dims on another argument too, a plain array is
    enough.

    Args:
        data: uint8 or float8, of shape [bytes] or [ceil(rows/128), ceil(columns/4), 512].
        rows: the rows of the matrix that the scales are of.
        columns: scales in a row, K/16 for NVFP4 and K/32 for MXFP4.
    """
    return Tiled(data, (rows, columns))


@dataclasses.dataclass(frozen=True)
class View:
    """The memory of an array, which `owner` keeps alive."""

    owner: Any = dataclasses.field(repr=False)
    package: str  #: "numpy", "torch", "cupy", ...: what results of the call become
    dtype: str
    shape: tuple[int, ...]
    address: int
    device: int  #: CPU, or the number of a CUDA device
    logical: tuple[int, int] | None = None  #: of a Tiled
    strides: tuple[int, ...] | None = None  #: in elements of `dtype`; None: dense
    namespace: Any = dataclasses.field(default=None, repr=False)  #: array API, of other packages

    def __str__(self) -> str:
        return f"{self.package} {self.dtype}[{', '.join(map(str, self.shape))}]"


def view(value: Any, what: str, stream: int = 1, strided: bool = False) -> View:
    """The memory of a NumPy array, a torch tensor, a DLPack object, or a Tiled of one. Another
    package makes `stream`, in the numbers of DLPack, wait for its work on an array on a GPU. Arrays
    of NumPy and torch may have gaps between rows if the operand is `strided`."""
    if isinstance(value, Tiled):
        return dataclasses.replace(view(value.data, what, stream), logical=value.shape)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return _view_torch(value, what, strided)
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _view_numpy(numpy.asarray(value), what, strided)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _view_other(value, what, stream)
    raise TypeError(f"{what} must be a NumPy array, a torch tensor or a DLPack object, but got "
                    f"{type(value).__name__}\nnote: pass numpy.asarray(x, dtype)")


def _view_other(value: Any, what: str, stream: int) -> View:
    found = _dlpack.read(value, what, stream)
    if found.device == CPU:
        return View(found.owner, "numpy", found.dtype, found.shape, found.address, CPU)
    namespace = _namespace_of(value, what)
    return View((value, found.owner), str(getattr(namespace, "__name__", namespace)), found.dtype,
                found.shape, found.address, found.device, namespace=namespace)


def _namespace_of(value: Any, what: str) -> Any:
    """Returns the object that has `empty` for the results: the array namespace, or the package, as
    of CuPy."""
    with contextlib.suppress(Exception):
        return value.__array_namespace__()
    package = sys.modules.get(type(value).__module__.partition(".")[0])
    if not hasattr(package, "empty"):
        raise UsageError(f"{what} must have __array_namespace__, which makes the results, but got "
                         f"{type(value).__name__}",
                         "torch.from_dlpack(x) makes a torch tensor of it")
    return package


def _strides(shape: tuple[int, ...], strides: Sequence[int], what: str,
             strided: bool) -> tuple[int, ...]:
    """The strides of an array with gaps, in elements, where an argument takes them."""
    if strided:
        if (strides[-1] == 1 or shape[-1] == 1) and min(strides) >= 0:
            return tuple(strides)
        raise UsageError(f"{what} must have rows of adjacent elements at ascending addresses, but "
                         f"its strides of shape {list(shape)} are {list(strides)}",
                         "no copy is made; pass x.contiguous(), or a slice whose rows have gaps "
                         "between them")
    raise not_contiguous(what, shape)


def _view_numpy(array: Any, what: str, strided: bool) -> View:
    strides = None
    if not array.flags.c_contiguous:
        in_elements = [stride // array.itemsize for stride in array.strides]
        strides = _strides(array.shape, in_elements, what, strided)
    if not array.dtype.isnative:
        raise UsageError(f"{what} must have the byte order of this machine, but got {array.dtype}",
                         "convert it with x.astype(x.dtype.newbyteorder('='))")
    return View(array, "numpy", array.dtype.name, array.shape, array.ctypes.data, CPU,
                strides=strides)


def _view_torch(tensor: Any, what: str, strided: bool) -> View:
    if tensor.device.type not in ("cpu", "cuda"):
        raise UsageError(f"{what} must be on the CPU or a CUDA device, but is on {tensor.device}",
                         "move it with .cpu() or .cuda()")
    check_dense(tensor, what)
    if tensor.requires_grad:
        raise UsageError(f"{what} must not require a gradient: a call records none",
                         "pass x.detach()")
    if tensor.is_neg() or tensor.is_conj():
        raise UsageError(f"{what} must have its own values, but negates or conjugates another's",
                         "pass x.resolve_neg() or x.resolve_conj()")
    strides = None
    if not tensor.is_contiguous():
        strides = _strides(tuple(tensor.shape), tensor.stride(), what, strided)
    try:
        address = tensor.data_ptr()
    except RuntimeError as error:
        raise UsageError(f"{what} must have memory, but got {type(tensor).__name__}: "
                         f"{error}") from error
    if not address and tensor.numel():
        raise UsageError(f"{what} must have memory, but its storage is empty",
                         "its storage was resized to 0, or it stands for zeros: pass x.clone()")
    device = tensor.device.index if tensor.device.type == "cuda" else CPU
    dtype = str(tensor.dtype).removeprefix("torch.")
    return View(tensor, "torch", dtype, tuple(tensor.shape), address, device, strides=strides)


def check_dense(tensor: Any, what: str) -> None:
    """A UsageError for a torch tensor without strides: sparse, nested, or of MKL-DNN."""
    torch = sys.modules["torch"]
    if tensor.is_nested:
        raise UsageError(f"{what} must be a dense tensor, but it is nested",
                         "pad it with torch.nested.to_padded_tensor")
    if tensor.layout != torch.strided:
        raise UsageError(f"{what} must be a dense tensor, but its layout is {tensor.layout}",
                         "make it dense with .to_dense()")


def not_contiguous(what: str, shape: Sequence[int]) -> UsageError:
    return UsageError(f"{what} must be contiguous and row-major, but its strides of shape "
                      f"{list(shape)} are not",
                      "no copy is made. x.contiguous() makes one, but transposing packed 4-bit "
                      "data moves pairs of elements: transpose before you quantize. An argument "
                      "with fp4.strided takes rows with gaps between them")


def logical_sizes(found: View, operand: Operand, named: dict[str, int]) -> tuple[int, ...]:
    """The sizes of `operand` in elements for the array `found`. `named` has the sizes of named
    dimensions that other arguments have, and receives those of this one."""
    what = f"argument '{operand.name}'"
    _check_dtype(found, operand.type, what)
    if not operand.type.is_tiled:
        if found.logical is not None:
            is_linear = operand.type.layout == "linear"
            raise UsageError(f"{what} has the layout {operand.type.layout}, but got a tiled buffer",
                             "pass linear scales, or compile with fp4.swizzle_scales"
                             if is_linear else "pass the bytes that fp4.prepack gives")
        sizes = _linear_sizes(found, operand.type, what)
    else:
        sizes = _tiled_sizes(found, operand, named, what)
    for name, size in zip(operand.dims, sizes):
        if name.isidentifier() and named.setdefault(name, size) != size:
            raise UsageError(f"{what} must have {named[name]} for dimension '{name}', as another "
                             f"argument has, but got {size}",
                             f"arguments with the dimension '{name}' have one size in a call")
    return sizes


def _check_dtype(found: View, expected: Type, what: str) -> None:
    accepted = _DTYPES[expected.element]
    if found.dtype in accepted:
        return
    note = f"nothing is converted; pass an array of {accepted[0]}"
    if found.dtype == "float4_e2m1fn":
        note = "two elements share a byte, the even column in the low nibble; pass uint8 [.., K/2]"
    elif found.dtype == "int8":
        note = "pass x.view('uint8'): the bytes are not numbers"
    raise UsageError(f"{what} must be {expected} ({' or '.join(accepted)}), but got {found}", note)


def _linear_sizes(found: View, expected: Type, what: str) -> tuple[int, ...]:
    pattern = expected.buffer_shape
    fits = len(pattern) == len(found.shape) and all(
        wanted in (-1, size) for wanted, size in zip(pattern, found.shape))
    if not fits:
        shape = ", ".join("?" if size < 0 else str(size) for size in pattern)
        packed = " of bytes, two elements in each" if expected.element == "f4E2M1FN" else ""
        raise UsageError(f"{what} must be {expected}, an array of shape [{shape}]{packed}, but got "
                         f"{found}", "sizes other than ? are part of the program: pad the array, "
                         "or compile for its shape")
    scale = 2 if expected.element == "f4E2M1FN" else 1
    last = len(expected.shape) - 1
    return tuple((size * scale if i == last else size) if wanted < 0 else wanted
                 for i, (wanted, size) in enumerate(zip(expected.shape, found.shape)))


def _tiled_sizes(found: View, operand: Operand, named: dict[str, int],
                 what: str) -> tuple[int, ...]:
    names: Iterable[str] = operand.dims or ("",) * len(operand.type.shape)
    sizes = found.logical or tuple(
        named.get(name, -1) if size < 0 else size
        for size, name in zip(operand.type.shape, names))
    if any(size < 0 for size in sizes):
        raise UsageError(f"{what} is {operand.type}, and its buffer does not tell its rows",
                         "pass fp4.tiled(x, rows, columns)")
    if len(sizes) != len(operand.type.shape) or any(
            wanted not in (-1, size) for wanted, size in zip(operand.type.shape, sizes)):
        raise UsageError(f"{what} must be {operand.type}, but got a tiled buffer of "
                         f"{'x'.join(map(str, sizes))} scales")
    shape = Type(sizes, operand.type.element, operand.type.layout).buffer_shape
    if found.shape not in (shape, (math.prod(shape),)):
        note = "the tiles are blocks of 512 bytes, so their array has three dimensions or one"
        if len(found.shape) == 2:
            note += "; pass x.reshape(-1) if the bytes are tiled already, never linear scales"
        raise UsageError(f"{what} must be tiled scales of shape {list(shape)} or "
                         f"[{math.prod(shape)}], but got {found}", note)
    return sizes


def empty(like: View | None, kind: Type, stream: int = 1) -> View:
    """A new array for a result of type `kind`, of the package and the device of `like`. Another
    package makes `stream` wait for what it did with this memory before."""
    if like is None or like.package == "numpy":
        import numpy

        return view(numpy.empty(kind.buffer_shape, numpy_dtype(kind.element, kind.item_bytes)),
                    "a result")
    if like.package == "torch":
        return view(_empty_torch(kind, like.device), "a result")
    found = _empty_other(like, kind, stream)
    if found.device != like.device:
        raise UsageError(f"results must be on cuda:{like.device}, as the arguments, but "
                         f"{like.package} makes them on cuda:{found.device}",
                         f"make cuda:{like.device} its current device")
    return found


def check_result(value: Any, found: View, kind: Type, what: str, like: View | None) -> None:
    """A UsageError where the caller's array `found` of `value` cannot receive a result of type
    `kind`, of the package and the device of `like`."""
    _check_dtype(found, kind, what)
    shape = kind.buffer_shape
    if found.shape != shape and (not kind.is_tiled or found.shape != (math.prod(shape),)):
        raise UsageError(f"{what} must be {kind}, an array of shape {list(shape)}, but got {found}")
    if like is not None and (found.package, found.device) != (like.package, like.device):
        raise UsageError(f"{what} must be of {like.package} on {_place(like)}, as the arguments, "
                         f"but is of {found.package} on {_place(found)}")
    flags = getattr(value, "flags", None)
    if found.package == "numpy" and (not getattr(flags, "writeable", False) or
                                     not hasattr(value, "__setitem__")):
        raise UsageError(f"{what} must be a NumPy array that can be written, which this "
                         f"{type(value).__name__} cannot")


def is_canonical(found: View, kind: Type) -> bool:
    """Returns True if `found` is as `empty` makes it."""
    return (found.dtype == _DTYPES[kind.element][0] and found.shape == kind.buffer_shape
            and found.strides is None)


def _place(found: View) -> str:
    return "the CPU" if found.device == CPU else f"cuda:{found.device}"


def _empty_other(like: View, kind: Type, stream: int) -> View:
    """Makes an array of the element's dtype, or of its bytes if the package has or exports no such
    dtype."""
    failure: Exception | None = None
    for name in (_DTYPES[kind.element][0], f"uint{8 * kind.item_bytes}"):
        dtype = getattr(like.namespace, name, None)
        try:
            if dtype is not None:
                array = _make_other(like, kind.buffer_shape, dtype)
                return dataclasses.replace(view(array, "a result", stream), owner=array)
        except (UsageError, TypeError, ValueError) as error:
            failure = error
    raise UsageError(f"{like.package} must make arrays of {kind.element} or of its bytes, but has "
                     "no such dtype that it exports", "pass tensors of torch") from failure


def _make_other(like: View, shape: tuple[int, ...], dtype: Any) -> Any:
    try:
        return like.namespace.empty(shape, dtype=dtype, device=like.owner[0].device)
    except (TypeError, AttributeError):  # CuPy's takes no device
        return like.namespace.empty(shape, dtype=dtype)


@functools.cache
def numpy_dtype(element: str, size: int) -> Any:
    """The NumPy dtype of results; unsigned integers of the same width where NumPy has none."""
    import numpy

    with contextlib.suppress(ImportError):
        importlib.import_module("ml_dtypes")  # NumPy knows its types then
    try:
        return numpy.dtype(_DTYPES[element][0])
    except TypeError:
        return numpy.dtype(f"uint{8 * size}")


def _empty_torch(kind: Type, device: int) -> Any:
    torch = sys.modules["torch"]
    where = "cpu" if device == CPU else f"cuda:{device}"
    dtype = getattr(torch, _DTYPES[kind.element][0], None)
    if dtype is None or kind.item_bytes > 1:
        return torch.empty(kind.buffer_shape, dtype=dtype or torch.uint8, device=where)
    return torch.empty(kind.buffer_shape, dtype=torch.uint8, device=where).view(dtype)
