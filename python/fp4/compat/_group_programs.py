"""The programs behind the functions of fp4.compat that quantize the rows of experts: each is
compiled once for its sizes and kept."""

from __future__ import annotations

import functools

from ..compiler import Compiled, compile

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
