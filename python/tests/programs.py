"""Programs and arrays that the tests share. `ml_dtypes` and `torch` are None where they are not
installed."""

import importlib
import pathlib
import types
from typing import Any

import fp4
import numpy as np


def optional(name: str) -> types.ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


ml_dtypes: Any = optional("ml_dtypes")
torch: Any = optional("torch")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

#: An amax, a quantizer, a quantizer with tiled scales, and what takes their results.
QUANTIZE = """
func.func @amax(%x: tensor<?x64xbf16> {fp4.name = "x"}) -> tensor<f32> {
  %a = fp4.amax %x : tensor<?x64xbf16> -> tensor<f32>
  return %a : tensor<f32>
}
func.func @linear(%x: tensor<?x64xbf16> {fp4.name = "x"}, %a: tensor<f32> {fp4.name = "a"})
    -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x64xbf16>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
  return %q, %s : tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>
}
func.func @tiled(%x: tensor<?x64xbf16> {fp4.name = "x"}, %a: tensor<f32> {fp4.name = "a"})
    -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x64xbf16>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>,
         tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
func.func @dequantize(%q: tensor<?x64xf4E2M1FN> {fp4.name = "q", fp4.dims = ["M", "K"]},
                      %s: tensor<?x4xf8E4M3FN> {fp4.name = "s", fp4.dims = ["M", "K/16"]},
                      %a: tensor<f32> {fp4.name = "a"}) -> tensor<?x64xbf16> {
  %y = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>}
      : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<f32>) -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}
"""


def product(rows: str = "?", dims: str = 'fp4.dims = ["M", ""], ') -> str:
    """Y[rows, 32] = X[rows, 64] * W[32, 64]^T of NVFP4 operands with tiled scales."""
    tiled = "#fp4.scale_layout<tiled_128x4>"
    x = f"!fp4.scaled<nvfp4, tensor<{rows}x64xf4E2M1FN>, tensor<{rows}x4xf8E4M3FN, {tiled}>>"
    w = f"!fp4.scaled<nvfp4, tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN, {tiled}>>"
    return f"""
func.func @product(
    %x: tensor<{rows}x64xf4E2M1FN> {{{dims}fp4.name = "x"}},
    %sx: tensor<{rows}x4xf8E4M3FN, {tiled}> {{{dims}fp4.name = "sx"}},
    %w: tensor<32x64xf4E2M1FN> {{fp4.name = "w"}},
    %sw: tensor<32x4xf8E4M3FN, {tiled}> {{fp4.name = "sw"}},
    %alpha: tensor<f32> {{fp4.name = "alpha"}}) -> tensor<{rows}x32xf32> {{
  %lhs = fp4.scaled %x, %sx : {x}
  %rhs = fp4.scaled %w, %sw : {w}
  %y = fp4.matmul %lhs, %rhs alpha %alpha : ({x}, {w}, tensor<f32>) -> tensor<{rows}x32xf32>
  return %y : tensor<{rows}x32xf32>
}}
"""


def bf16_bits(values: Any) -> Any:
    """bf16 as uint16, rounded towards zero: NumPy needs no ml_dtypes for it."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return (bits >> 16).astype(np.uint16)


def floats(bits: Any) -> Any:
    """The float32 values of bf16 in any form."""
    return (np.asarray(bits).view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def matrix(rows: int = 3, columns: int = 64, seed: int = 1) -> Any:
    return bf16_bits(np.random.default_rng(seed).standard_normal((rows, columns)))


_compiled: "dict[str, fp4.Compiled]" = {}


def compiled(text: str = QUANTIZE) -> fp4.Compiled:
    if text not in _compiled:
        _compiled[text] = fp4.compile(text)
    return _compiled[text]


def operands() -> "tuple[Any, ...]":
    """Arguments of `product`: 130 x 64 and 32 x 64 NVFP4 operands with tiled scales, and alpha."""
    x, w = matrix(130), matrix(32, seed=2)
    ax, aw = (compiled()(v, function="amax") for v in (x, w))
    qx, sx = compiled()(x, ax, function="tiled")
    qw, sw = compiled()(w, aw, function="tiled")
    return qx, sx, qw, sw, np.float32(ax * aw / 2688**2)
