"""The programs behind the functions of fp4.compat that quantize the rows of experts: each is
compiled once for its sizes and kept."""

from __future__ import annotations

import functools

import torch

from ..compiler import Compiled, compile
from ..errors import UsageError
from ._layouts import GROUPED, note
from ._operands import check_input, numbers, rows_of, scalar
from ._programs import element, target

_TILED = "f8E4M3FN, #fp4.scale_layout<tiled_128x4>>"


@functools.lru_cache(maxsize=256)
def ragged(rows: int, groups: int, columns: int, source: str, recipe: str,
           names: tuple[str, str, str], machine: str) -> Compiled:
    """(x [rows, columns], a global scale for each group, offsets [groups + 1]) -> (codes, the
    tiles of scales of all groups).

    Args:
        names: of the arguments, as the caller calls them.
    """
    tiles = 128 * (rows // 128 + groups) * -(-columns // 64)
    outputs = f"(tensor<{rows}x{columns}xf4E2M1FN>, tensor<{tiles}x4x{_TILED})"
    x, scale = f"tensor<{rows}x{columns}x{source}>", f"tensor<{groups}xf32>"
    offsets = f"tensor<{groups + 1}xi64>"
    return compile(f"""
func.func @quantize(%x: {x} {{fp4.name = "{names[0]}"}}, %g: {scale} {{fp4.name = "{names[1]}"}},
    %o: {offsets} {{fp4.name = "{names[2]}"}}) -> {outputs} {{
  %q, %s = fp4.quantize %x amax %g offsets %o
      {{format = #fp4.format<nvfp4>, recipe = #fp4.recipe<{recipe}>, unspecified_rows}}
      : ({x}, {scale}, {offsets}) -> {outputs}
  return %q, %s : tensor<{rows}x{columns}xf4E2M1FN>, tensor<{tiles}x4x{_TILED}
}}
""", target=machine)


@functools.lru_cache(maxsize=256)
def batched(batch: int, rows: int, columns: int, source: str, recipe: str,
            names: tuple[str, str], machine: str) -> Compiled:
    """(x [batch * rows, columns], a global scale for each matrix) -> (codes, the tiles of scales of
    all matrices)."""
    tiles = 128 * batch * -(-rows // 128) * -(-columns // 64)
    every = batch * rows
    outputs = f"(tensor<{every}x{columns}xf4E2M1FN>, tensor<{tiles}x4x{_TILED})"
    x, scale = f"tensor<{every}x{columns}x{source}>", f"tensor<{batch}xf32>"
    groups = ", ".join([str(rows)] * batch)
    return compile(f"""
func.func @quantize(%x: {x} {{fp4.name = "{names[0]}"}},
    %g: {scale} {{fp4.name = "{names[1]}"}}) -> {outputs} {{
  %q, %s = fp4.quantize %x amax %g {{format = #fp4.format<nvfp4>, recipe = #fp4.recipe<{recipe}>,
      groups = array<i64: {groups}>}} : ({x}, {scale}) -> {outputs}
  return %q, %s : tensor<{every}x{columns}xf4E2M1FN>, tensor<{tiles}x4x{_TILED}
}}
""", target=machine)


def quantized_batch(a: torch.Tensor, a_global_sf: torch.Tensor, recipe: str,
                    maker: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and tiles of each matrix of a batch [B, M, K]."""
    check_input(a, "a", (torch.bfloat16, torch.float16), 16)
    if a.dim() != 3 or not a.shape[0] or not a.shape[1]:
        raise UsageError("argument 'a' must be a batch of matrices, [B, M, K], but its shape is "
                         f"{list(a.shape)}", "nvfp4_quantize takes one matrix")
    batch, rows, columns = a.shape
    is_one = isinstance(a_global_sf, torch.Tensor) and a_global_sf.numel() == 1
    scale = (scalar(a_global_sf, "a_global_sf").expand(batch).contiguous() if is_one else
             numbers(a_global_sf, "a_global_sf", batch, (torch.float32,)))
    program = batched(batch, rows, columns, element(a.dtype), recipe, ("a", "a_global_sf"),
                      target(a))
    codes, scales = program(rows_of(a), scale)
    scales = note(scales.view(torch.uint8), GROUPED, batch * rows, columns // 16, maker)
    return codes.view(torch.uint8).view(batch, rows, columns // 2), scales
