"""The programs behind the functions of fp4.compat: each is compiled once and kept."""

from __future__ import annotations

import functools

import torch

from ..compiler import Compiled, compile
from ._layouts import TILED

_TILED = ", #fp4.scale_layout<tiled_128x4>"
_ELEMENTS = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}
_BLOCKS = {"nvfp4": (16, "f8E4M3FN"), "mxfp4": (32, "f8E8M0FNU"), "mxfp8_e4m3": (32, "f8E8M0FNU")}


def element(dtype: torch.dtype) -> str:
    """The MLIR name of an element type of matrices that are not quantized."""
    return _ELEMENTS[dtype]


def target(tensor: torch.Tensor) -> str:
    """Returns the target to compile for: the GPU of the tensor, or for CPU tensors the sm_100a of
    the simulator."""
    if tensor.device.type != "cuda":
        return "sm_100a"
    major, minor = torch.cuda.get_device_capability(tensor.device)
    return f"sm_{major}{minor}a"


@functools.lru_cache(maxsize=256)
def quantizer(columns: int, source: str, recipe: str, layout: str, name: str, scale: str,
              machine: str, kind: str = "nvfp4") -> Compiled:
    """(x [M, columns]; with `scale` also a scalar) -> (codes [M, columns/2], scales). Codes of 8
    bits are [M, columns].

    Args:
        name, scale: what the caller calls the arguments; no scale: the recipe has none.
    """
    block, scales = _BLOCKS[kind]
    blocks, codes = columns // block, "f8E4M3FN" if kind == "mxfp8_e4m3" else "f4E2M1FN"
    tiled = _TILED if layout == TILED else ""
    outputs = f"(tensor<?x{columns}x{codes}>, tensor<?x{blocks}x{scales}{tiled}>)"
    given = f', %g: tensor<f32> {{fp4.name = "{scale}"}}' if scale else ""
    return compile(f"""
func.func @quantize(%x: tensor<?x{columns}x{source}> {{fp4.name = "{name}"}}{given}) -> {outputs} {{
  %q, %s = fp4.quantize %x{" amax %g" if scale else ""}
      {{format = #fp4.format<{kind}>, recipe = #fp4.recipe<{recipe}>}}
      : (tensor<?x{columns}x{source}>{", tensor<f32>" if scale else ""}) -> {outputs}
  return %q, %s : tensor<?x{columns}x{codes}>, tensor<?x{blocks}x{scales}{tiled}>
}}
""", target=machine)


def dequantizer(rows: int, columns: int, result: str, recipe: str, layout: str,
                names: tuple[str, ...], machine: str, kind: str = "nvfp4") -> Compiled:
    """(codes [M, columns/2], scales; with a third name also a scalar) -> [M, columns]. Only tiled
    scales need to know `rows` when they are compiled: their buffer does not tell."""
    size = str(rows) if layout == TILED else "?"
    return _dequantizer(size, columns, result, recipe, layout, names, machine, kind)


@functools.lru_cache(maxsize=256)
def _dequantizer(size: str, columns: int, result: str, recipe: str, layout: str,
                 names: tuple[str, ...], machine: str, kind: str) -> Compiled:
    block, scales = _BLOCKS[kind]
    blocks = columns // block
    linear, matrix = f"tensor<{size}x{blocks}x{scales}>", f"tensor<{size}x{columns}x"
    stored = linear.replace(">", f"{_TILED}>") if layout == TILED else linear
    given = f', %g: tensor<f32> {{fp4.name = "{names[2]}"}}' if len(names) > 2 else ""
    move = f"%l = fp4.unswizzle_scales %s : {stored} -> {linear}" if layout == TILED else ""
    return compile(f"""
func.func @dequantize(
    %q: {matrix}f4E2M1FN> {{fp4.name = "{names[0]}", fp4.dims = ["M", "K"]}},
    %s: {stored} {{fp4.name = "{names[1]}", fp4.dims = ["M", ""]}}{given}) -> {matrix}{result}> {{
  {move}
  %y = fp4.dequantize %q scaled %{"l" if move else "s"}{" amax %g" if given else ""}
      {{format = #fp4.format<{kind}>, recipe = #fp4.recipe<{recipe}>}}
      : ({matrix}f4E2M1FN>, {linear}{", tensor<f32>" if given else ""}) -> {matrix}{result}>
  return %y : {matrix}{result}>
}}
""", target=machine)


@functools.lru_cache(maxsize=64)
def swizzler(columns: int, name: str, machine: str, scales: str = "f8E4M3FN") -> Compiled:
    """(scales [M, columns]) -> the same in the layout tiled_128x4."""
    kind = f"tensor<?x{columns}x{scales}"
    return compile(f"""
func.func @swizzle(%s: {kind}> {{fp4.name = "{name}"}}) -> {kind}{_TILED}> {{
  %t = fp4.swizzle_scales %s : {kind}> -> {kind}{_TILED}>
  return %t : {kind}{_TILED}>
}}
""", target=machine)


@functools.lru_cache(maxsize=256)
def product(rows: int, columns: int, result: str, alpha: str, names: tuple[str, ...], machine: str,
            kind: str = "nvfp4") -> Compiled:
    """(a [M, columns/2], its scales, b [rows, columns/2], its scales, alpha) -> [M, rows].

    Args:
        alpha: "" for none, "scalar", or "rows" for a factor of each row of a.
        names: of the arguments, as the caller calls them.
    """
    block, scales = _BLOCKS[kind]
    blocks = columns // block
    a, b = f"tensor<?x{columns}xf4E2M1FN>", f"tensor<{rows}x{columns}xf4E2M1FN>"
    sa, sb = (f"tensor<{size}x{blocks}x{scales}{_TILED}>" for size in ("?", rows))
    lhs, rhs = f"!fp4.scaled<{kind}, {a}, {sa}>", f"!fp4.scaled<{kind}, {b}, {sb}>"
    given = {"": "", "scalar": ", tensor<f32>", "rows": ", tensor<?x1xf32>"}[alpha]
    dims = ', fp4.dims = ["M", ""]' if alpha == "rows" else ""
    last = (f',\n    %alpha: {given[2:]} {{fp4.name = "{names[4]}"{dims}}}' if alpha else "")
    return compile(f"""
func.func @product(
    %a: {a} {{fp4.name = "{names[0]}", fp4.dims = ["M", "K"]}},
    %sa: {sa} {{fp4.name = "{names[1]}", fp4.dims = ["M", ""]}},
    %b: {b} {{fp4.name = "{names[2]}", fp4.dims = ["N", "K"]}},
    %sb: {sb} {{fp4.name = "{names[3]}", fp4.dims = ["N", ""]}}{last})
    -> tensor<?x{rows}x{result}> {{
  %lhs = fp4.scaled %a, %sa : {lhs}
  %rhs = fp4.scaled %b, %sb : {rhs}
  %y = fp4.matmul %lhs, %rhs{" alpha %alpha" if alpha else ""}
      : ({lhs}, {rhs}{given}) -> tensor<?x{rows}x{result}>
  return %y : tensor<?x{rows}x{result}>
}}
""", target=machine)
