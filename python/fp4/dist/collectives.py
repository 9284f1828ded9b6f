"""The amax of all ranks, and quantized shards that become one matrix.

A gather of quantized shards equals the quantized whole, byte for byte, if three things hold. All
shards were quantized with the amax of the whole, so its all-reduce comes before the quantizer. The
padding of tiled scales, which every shard has behind its last row, is removed before the gather,
and the whole is padded once at its end. Third, columnwise shards, [K, M/ranks] each, come to lie
side by side: a gather alone would stack them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..errors import UsageError
from ..torch import functional, recipes
from ..torch.scaled import Scaled, scale_shape
from .groups import Gathering, Group, all_reduce_max, exchange, members


def amax(x: torch.Tensor, group: Group = None) -> torch.Tensor:
    """The largest magnitude of the shards of all ranks, a float32 scalar on each.

    Args:
        x: this rank's shard, [..., K] in bfloat16, float16 or float32. Shards may have different
            sizes, also none. NaN elements are skipped.
        group: a torch.distributed.ProcessGroup, or None for all ranks.

    Raises:
        UsageError: this process is no member of `group`.
    """
    _check_tensor(x)
    members(group, x.device)
    return all_reduce_max(functional.amax(x), group)


def quantize(x: torch.Tensor, group: Group = None, **options: Any) -> Scaled:
    """fp4.torch.quantize of this rank's shard, with the amax of all ranks. Four bytes travel, or
    none where the recipe has no scale of the tensor.

    Args:
        x: the shard, [..., K]; shards may have different rows.
        options: those of fp4.torch.quantize but `amax` and `per_row`. With transpose=True the
            result is a columnwise shard, [K, M], for all_gather(dim=1).

    Raises:
        UsageError: an option or an input that does not fit, before anything travels.
    """
    for name in ("amax", "per_row"):
        if options.get(name) not in (None, False):
            raise UsageError(f"'{name}' must not be given: the amax is that of all ranks",
                             "call fp4.torch.quantize, and fp4.dist.amax where it helps")
    format = recipes.check_format(options.get("format", "nvfp4"))
    recipe = options.get("recipe") or recipes.DEFAULT_RECIPES[format]
    _check_tensor(x)
    members(group, x.device)
    supplied = recipes.is_supplied(recipe) or recipes.is_supplied_decode(recipe)
    if recipes.has_tensor_scale(format, recipe) and not supplied:
        options["amax"] = amax(x, group)
    return functional.quantize(x, **options)


def all_gather(shard: Scaled, dim: int = 0, group: Group = None, *,
               sizes: Sequence[int] | None = None, layout: str = "") -> Scaled:
    """The matrix whose shards the ranks have, on every rank.

    Scales travel without the padding of tiles, and the bytes are those of quantizing the whole. If
    the rows of all shards are multiples of 128, tiles are gathered as they are.

    Args:
        shard: this rank's part, from `quantize` above. For dim=0 [M_r, K]: rows are stacked. For
            dim=1 [R, C_r]: columns come to lie side by side, as those of columnwise shards must.
            C_r is a multiple of the block, 16 or 32.
        sizes: M_r or C_r of every rank. Without it the ranks first exchange and compare sizes,
            formats, recipes and amaxes, for which the host waits. With `sizes` nothing is compared
            and the host does not wait, as CUDA graphs need.
        layout: of the scales of the result, "linear" or "tiled_128x4"; without it the shard's.

    Raises:
        UsageError: on every rank, if the shards do not fit together; on one rank, if its own
            arguments do not fit. Then the other ranks wait for it, as in any collective.
    """
    if not isinstance(shard, Scaled):
        raise TypeError(f"'shard' must be an fp4.torch.Scaled, but got {type(shard).__name__}\n"
                        "note: pass fp4.dist.quantize(shard)")
    layout = recipes.check_layout(layout or shard.layout)
    if dim not in (0, 1):
        raise UsageError(f"'dim' must be 0 or 1, but got {dim}")
    rank, count = members(group, shard.device)
    if sizes is None:
        sizes = _compare(exchange(_facts(shard, dim), group, count), dim, shard.block)
    else:
        _check_sizes(sizes, shard, dim, rank, count)
    if dim == 0:
        return _stacked(shard, list(sizes), layout, group)
    return _side_by_side(shard, list(sizes), layout, group)


def _stacked(shard: Scaled, rows: list[int], layout: str, group: Group) -> Scaled:
    whole = sum(rows), shard.shape[1]
    has_tiles = layout == shard.layout == "tiled_128x4" and not any(size % 128 for size in rows)
    part = shard if has_tiles else functional.swizzle(shard, "linear")
    data, scales = _bytes(part.data), _bytes(part.scales)
    columns, per_row = whole[1] // 2, scale_shape((1, whole[1]), shard.format, "linear")[1]
    if has_tiles:
        per_row = -(-per_row // 4) * 4
    moves = [Gathering(each, [size * width for size in rows], group)
             for each, width in ((data, columns), (scales, per_row))]
    number = shard.amax
    if number is not None and number.dim() == 1:
        number = Gathering(_bytes(number), [4 * size for size in rows],
                           group).rows().view(torch.float32)
    data, scales = (move.rows() for move in moves)
    return _assemble(part, data, scales, number, whole, layout)


def _side_by_side(shard: Scaled, columns: list[int], layout: str, group: Group) -> Scaled:
    rows = shard.shape[0]
    part = functional.swizzle(shard, "linear")
    moves = [Gathering(_bytes(each), [rows * size // per_byte for size in columns], group)
             for each, per_byte in ((part.data, 2), (part.scales, shard.block))]
    data, scales = (torch.cat([piece.view(rows, -1) for piece in move.wait()], dim=1)
                    for move in moves)
    return _assemble(part, data, scales, shard.amax, (rows, sum(columns)), layout)


def _assemble(part: Scaled, data: torch.Tensor, scales: torch.Tensor, number: torch.Tensor | None,
              shape: tuple[int, int], layout: str) -> Scaled:
    scales = scales.view(scale_shape(shape, part.format, part.layout)).view(part.scales.dtype)
    data = data.view(shape[0], shape[1] // 2).view(part.data.dtype)
    whole = Scaled(data, scales, number, shape, part.format, part.layout, part.recipe)
    return functional.swizzle(whole, layout)


def _bytes(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1).view(torch.uint8)


def _facts(shard: Scaled, dim: int) -> dict[str, Any]:
    """Returns what the other ranks must know of a shard, in the order in which it is compared."""
    number = shard.amax
    return {
        "size": shard.shape[dim],
        "a 'dim' of": dim,
        "the format": shard.format,
        "the recipe": shard.recipe,
        "columns of" if dim == 0 else "rows of": shard.shape[1 - dim],
        "amaxes of rank": None if number is None else number.dim(),
        "the amax": number.item() if number is not None and number.dim() == 0 else None,
    }


def _compare(found: list[dict[str, Any]], dim: int, block: int) -> list[int]:
    """The sizes of the shards, or the same error on every rank."""
    first = found[0]
    for rank, facts in enumerate(found):
        for name, value in facts.items():
            if name != "size" and value != first.get(name, value):
                note = ("quantize shards with fp4.dist.quantize, which shares the amax"
                        if name == "the amax" else "nothing was gathered")
                raise UsageError(f"all shards must have {name} {first[name]}, as rank 0 has, but "
                                 f"rank {rank} has {value}", note)
    sizes = [int(facts["size"]) for facts in found]
    _check_columns(sizes, dim, block, first["amaxes of rank"])
    return sizes


def _check_columns(sizes: Sequence[int], dim: int, block: int, amax_rank: int | None) -> None:
    if dim == 0:
        return
    for rank, size in enumerate(sizes):
        if size % block:
            raise UsageError(f"the columns of every shard must be a multiple of {block} for dim=1, "
                             f"but rank {rank} has {size}",
                             "a block that spans two ranks has no common scale; pad the shards")
    if amax_rank == 1:
        raise UsageError("shards for dim=1 must have one amax, but have one for each row")


def _check_sizes(sizes: Sequence[int], shard: Scaled, dim: int, rank: int, count: int) -> None:
    if len(sizes) != count or any(not isinstance(size, int) or size < 0 for size in sizes):
        raise UsageError(f"'sizes' must be {count} sizes, one for each rank, but got "
                         f"{list(sizes)}")
    if sizes[rank] != shard.shape[dim]:
        raise UsageError(f"'sizes[{rank}]' must be the size {shard.shape[dim]} of this rank's "
                         f"shard, but got {sizes[rank]}",
                         "pass the size of each rank's shard, in the order of the ranks")
    _check_columns(sizes, dim, shard.block, None if shard.amax is None else shard.amax.dim())


def _check_tensor(x: Any) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"'x' must be a torch.Tensor, but got {type(x).__name__}")
