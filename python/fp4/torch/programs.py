"""The programs behind the operations of fp4.torch: each is compiled once and kept.

The number of rows is dynamic. Columns are static, and so are the rows of the right side of a
matmul: another size is another program, which the first call with it compiles.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import shutil
import threading
from collections.abc import Iterator
from typing import Any

import torch

from .. import _cache, _library
from ..builder import Builder, FunctionBuilder, Hadamard, ScaledValue
from ..compiler import Compiled, compile
from ..device import Device
from ..formats import find_format
from ..program import Program

ELEMENTS = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}
_TILED = "tiled_128x4"


def _compile(builder: Builder, target: str) -> Runnable:
    # Errors show the program: the lines of Python that built it are those of this file.
    return compile_text(builder.text(), target)


@dataclasses.dataclass(frozen=True)
class Cached:
    """A program of the cache on disk, in the place of a Compiled."""

    found: Program

    def program(self, device: Device | None = None) -> Program:
        return self.found if device is None else self.found.on(device)

    def __call__(self, *tensors: Any, **options: Any) -> Any:
        return self.found(*tensors, **options)


Runnable = Compiled | Cached

_assembles = threading.local()


@contextlib.contextmanager
def assembling() -> Iterator[None]:
    """Programs for GPUs that this thread compiles meanwhile have cubins, if there is a ptxas."""
    _assembles.value = True
    try:
        yield
    finally:
        _assembles.value = False


def compile_text(text: str, target: str, pdl: str = "chosen") -> Runnable:
    """Takes a program from the cache, or compiles it for a target, or for a GPU and its product:
    "sm_90a/h200", or "sm_90a/" where fp4 does not know the product (execution.py). `pdl` is that of
    fp4.compile."""
    name, gpu, device = target.partition("/")
    codes = ("cubin", "ptx") if gpu else ("ptx",)
    keys = [_cache.Key(text, name, device, code, pdl) for code in codes]
    assemble = bool(gpu) and getattr(_assembles, "value", False) and has_assembler()
    for key in keys[:1] if assemble else keys:
        found = _cache.find(key)
        if found is not None:
            return Cached(found)
    compiled = compile(text, target=name, device=device or None, name="fp4.torch",
                       assemble=assemble, pdl=pdl)
    _compiled.append(keys[0] if assemble else keys[-1])
    _cache.keep(keys[0] if assemble else keys[-1], compiled)
    return compiled


_compiled: list[_cache.Key] = []  # threads append


def compilations() -> int:
    """The number of programs that this process has compiled."""
    return len(_compiled)


@functools.cache
def has_assembler() -> bool:
    """Returns True if the compiler finds a ptxas, as lib/Target/Ptxas.cpp does. The driver
    assembles where there is none."""
    named = os.environ.get("FP4_PTXAS")
    if named:
        return named != "none"  # one that is missing is an error
    roots = (os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"))
    places = [os.path.join(root, "bin") for root in roots if root]
    packages = _library.PATH.parent.parent.parent  # libfp4.so lies in fp4/lib
    places += [str(packages / "nvidia" / name / "bin") for name in ("cu13", "cuda_nvcc")]
    return shutil.which("ptxas") is not None or any(
        os.access(os.path.join(place, "ptxas"), os.X_OK) for place in places)


@functools.lru_cache(maxsize=256)
def amax(columns: int, source: str, per_row: bool, strided: bool, target: str) -> Runnable:
    """(x [M, columns]) -> amax, one number or [M]."""
    builder = Builder()
    f = builder.function("amax")
    x = f.argument("x", ("M", columns), source, strided=strided)
    f.returns(f.amax(x, per_row=per_row))
    return _compile(builder, target)


@functools.lru_cache(maxsize=256)
def hadamard_amax(columns: int, sign_mask: int, target: str) -> Runnable:
    """(x [M, columns]) -> the amax of x, and that of x transformed along M."""
    builder = Builder()
    f = builder.function("hadamard_amax")
    x = f.argument("x", ("M", columns))
    f.returns(*f.hadamard_amax(x, Hadamard(sign_mask=sign_mask), dimension=0))
    return _compile(builder, target)


@functools.lru_cache(maxsize=256)
def hadamard(columns: int, dimension: int, size: int, sign_mask: int, target: str) -> Runnable:
    """(x [M, columns]) -> x transformed along `dimension`."""
    builder = Builder()
    f = builder.function("hadamard")
    x = f.argument("x", ("M", columns))
    f.returns(f.hadamard(x, Hadamard(size, sign_mask), dimension=dimension))
    return _compile(builder, target)


@dataclasses.dataclass(frozen=True)
class Quantizer:
    """The facts that decide the program of a quantizer; FunctionBuilder.quantize has the details.

    Attributes:
        columns, source: of the input, [M, columns], and its element type.
        outputs: "rowwise", "columnwise" or "both".
        amaxes: 0 without a scale of the tensor, 1, or 2 where the columnwise output has its own.
        per_row: rows have amaxes of their own.
        sign_mask: of the Hadamard transform of the columnwise output, or None.
        strided: rows of the input have gaps between them.
    """

    columns: int
    source: str
    format: str
    recipe: str
    layout: str
    outputs: str = "rowwise"
    amaxes: int = 1
    per_row: bool = False
    stochastic: bool = False
    square: bool = False
    sign_mask: int | None = None
    strided: bool = False


@functools.lru_cache(maxsize=256)
def quantizer(what: Quantizer, target: str) -> Runnable:
    """(x, amax if there is one, columnwise_amax if there are two, rng if stochastic) -> codes and
    scales of each output."""
    builder = Builder()
    f = builder.function("quantize")
    x = f.argument("x", ("M", what.columns), what.source, strided=what.strided)
    amax, columnwise_amax = (
        f.argument(name, ("M",) if what.per_row else (), "f32") if index < what.amaxes else None
        for index, name in enumerate(("amax", "columnwise_amax")))
    rng = f.argument("rng", (2,), "i64") if what.stochastic else None
    transform = None if what.sign_mask is None else Hadamard(sign_mask=what.sign_mask)
    block = (16, 16) if what.square else None
    if what.outputs == "both":
        f.returns(*f.quantize_both(
            x, what.format, amax=amax, columnwise_amax=columnwise_amax, recipe=what.recipe,
            layout=what.layout, rng=rng, block=block, columnwise_hadamard=transform,
            per_row=what.per_row))
    else:
        f.returns(f.quantize(
            x, what.format, amax=amax, recipe=what.recipe, layout=what.layout, rng=rng, block=block,
            columnwise=what.outputs == "columnwise", hadamard=transform, per_row=what.per_row))
    return _compile(builder, target)


@functools.lru_cache(maxsize=256)
def dequantizer(columns: int, result: str, format: str, recipe: str, amax_rank: int,
                target: str) -> Runnable:
    """(data [M, columns/2], linear scales, amax unless amax_rank is -1) -> [M, columns]."""
    builder = Builder()
    f = builder.function("dequantize")
    value = _matrix(f, "", "M", columns, format, "linear")
    amax = f.argument("amax", ("M",)[:amax_rank], "f32") if amax_rank >= 0 else None
    value = dataclasses.replace(value, amax=amax, recipe=recipe)
    f.returns(f.dequantize(value, result, per_row=amax_rank == 1))
    return _compile(builder, target)


def _matrix(f: FunctionBuilder, name: str, rows: int | str, columns: int, format: str,
            layout: str) -> ScaledValue:
    """Arguments with the data and the scales of a matrix."""
    facts = find_format(format)
    data = f.argument(f"data{name}", (rows, columns), facts.data)
    scales = f.argument(f"scales{name}", (rows, -(-columns // facts.block)), facts.scales, layout)
    return f.scaled(data, scales, format)


@functools.lru_cache(maxsize=256)
def swizzler(columns: int, format: str, target: str) -> Runnable:
    """(scales [M, columns]) -> the same in the layout tiled_128x4."""
    builder = Builder()
    f = builder.function("swizzle")
    scales = f.argument("scales", ("M", columns), find_format(format).scales)
    f.returns(f.swizzle_scales(f.scaled(scales, scales, format)).scales)
    return _compile(builder, target)


@functools.lru_cache(maxsize=256)
def unswizzler(rows: int, columns: int, format: str, target: str) -> Runnable:
    """(tiled scales) -> linear ones. The buffer does not tell its rows, so they are static."""
    builder = Builder()
    f = builder.function("unswizzle")
    scales = f.argument("scales", (rows, columns), find_format(format).scales, _TILED)
    f.returns(f.unswizzle_scales(f.scaled(scales, scales, format)).scales)
    return _compile(builder, target)


@dataclasses.dataclass(frozen=True)
class Product:
    """The facts that decide the program of a matmul: [M, columns] times the transpose of [rows,
    columns].

    Attributes:
        recipes: of the two operands, or () where they have no scale of the tensor.
        amax_ranks: of the scales of the tensors: 1 where every row has one.
    """

    columns: int
    rows: int
    result: str
    format: str
    recipes: tuple[str, ...] = ()
    amax_ranks: tuple[int, int] = (0, 0)


@functools.lru_cache(maxsize=256)
def product(what: Product, target: str) -> Runnable:
    """(a [M, K/2], its scales, b [N, K/2], its scales; with recipes also the numbers from which
    alpha is computed, of a and of b) -> [M, N]."""
    builder = Builder()
    f = builder.function("product")
    sizes: tuple[int | str, ...] = ("M", what.rows)
    operands = [_matrix(f, name, size, what.columns, what.format, _TILED)
                for name, size in zip(("_a", "_b"), sizes)]
    alpha = None
    if what.recipes:
        operands = [
            dataclasses.replace(operand, recipe=recipe,
                                amax=f.argument(f"amax{name}", (size,)[:rank], "f32"))
            for operand, recipe, name, size, rank in zip(operands, what.recipes, ("_a", "_b"),
                                                         sizes, what.amax_ranks)]
        alpha = f.matmul_alpha(*operands)
    f.returns(f.matmul(*operands, alpha=alpha, element=what.result))
    return _compile(builder, target)
