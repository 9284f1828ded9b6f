"""Rotations of heads by their positions, as FlashInfer and vLLM have them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch

from ..errors import UsageError
from ..torch.norm_programs import Norm
from ..torch.rotation_programs import Rotation, rotation
from ..torch.row_results import check_number
from ..torch.strides import dense, placed_heads
from ._operands import check_tensor, type_of
from ._programs import element, target

HALVES = (torch.bfloat16, torch.float16)
FLOATS = (*HALVES, torch.float32)
INTEGERS = (torch.int64, torch.int32)


def rotated(x: Any, name: str, dtypes: tuple[torch.dtype, ...], size: int, cos_sin: torch.Tensor,
            positions: torch.Tensor, is_neox: bool) -> torch.Tensor:
    """The tensor `x`, which has heads of `size` columns for each position, rotated.

    Args:
        dtypes: those that `x` may have.
        cos_sin, positions: as `angles` and `places` return them.
    """
    _check_dtype(x, name, dtypes)
    sizes, leading = tuple(x.shape), tuple(positions.shape)
    rest = math.prod(sizes[len(leading):])
    if size <= 0 or sizes[:len(leading)] != leading or rest % size:
        raise UsageError(f"argument '{name}' must have heads of {size} columns for positions of "
                         f"shape {list(leading)}, but got {type_of(x)}",
                         "each token has a position")
    _check_angles(cos_sin, size)
    if not x.numel():
        return torch.empty_like(x, memory_format=torch.contiguous_format)
    heads = x.detach().reshape(positions.numel(), -1, size)
    what = Rotation(heads.shape[1], size, element(x.dtype), cos_sin.shape[1],
                    element(cos_sin.dtype), not is_neox)
    return _run(what, heads, positions, cos_sin).view(x.shape)


def normed(qkv: torch.Tensor, heads: tuple[int, int, int], size: int, eps: float,
           weights: tuple[Any, Any], cos_sin: torch.Tensor, positions: torch.Tensor,
           is_neox: bool) -> None:
    """Replaces the heads of q and k in `qkv` by their RMSNorm by x * (r * weight), rotated and
    rounded once. Both are one kernel, and a copy follows."""
    _check_dtype(qkv, "qkv", HALVES)
    check_number(eps, "eps")
    tokens, width = positions.numel(), sum(heads) * size
    if size <= 0 or min(heads) < 0 or qkv.shape != (tokens, width) or not qkv.is_contiguous():
        raise UsageError(f"argument 'qkv' must be contiguous and of shape [{tokens}, {width}], but "
                         f"got {type_of(qkv)} with strides {qkv.stride()}",
                         "it has the heads of q, k and v of each position, and is written")
    for value, name in zip(weights, ("q_weight", "k_weight")):
        check_tensor(value, name)
        if value.dtype != qkv.dtype or tuple(value.shape) != (size,):
            raise UsageError(f"argument '{name}' must be {str(qkv.dtype)[6:]} of shape [{size}], "
                             f"but got {type_of(value)}", "it has the dtype of 'qkv'")
    _check_angles(cos_sin, size)
    count = heads[0] + heads[1]
    if not tokens or not count:
        return
    source = element(qkv.dtype)
    norm = Norm(size, source, "rms", float(eps), source, is_factor_first=True, elements="f32")
    what = Rotation(count, size, source, cos_sin.shape[1], element(cos_sin.dtype), not is_neox,
                    norm, has_head_weights=True)
    table = torch.cat([value.detach().expand(number, size)
                       for value, number in zip(weights, heads)])
    taken = qkv.detach().view(tokens, -1, size)[:, :count]
    taken.copy_(_run(what, taken, positions, cos_sin, table).view(taken.shape))


def angles(cos_sin: Any, dtypes: tuple[torch.dtype, ...] = FLOATS) -> torch.Tensor:
    """The table of cosines and sines, checked."""
    _check_dtype(cos_sin, "cos_sin_cache", dtypes)
    if cos_sin.dim() != 2 or cos_sin.shape[1] % 2 or not cos_sin.shape[1]:
        raise UsageError("argument 'cos_sin_cache' must be a matrix with an even number of "
                         f"columns, but got {type_of(cos_sin)}",
                         "a row has the cosines, then the sines of a position")
    return dense(cos_sin.detach())


def places(positions: Any, name: str, dtypes: tuple[torch.dtype, ...],
           dimensions: tuple[int, ...] = (1,)) -> torch.Tensor:
    """The positions, checked, as int64."""
    _check_dtype(positions, name, dtypes)
    if positions.dim() not in dimensions:
        raise UsageError(f"argument '{name}' must have {' or '.join(map(str, dimensions))} "
                         f"dimensions, but got {type_of(positions)}",
                         "each token has a position: pass positions.flatten()")
    return positions.long().contiguous()  # type: ignore[no-any-return]


def _check_dtype(value: Any, name: str, dtypes: tuple[torch.dtype, ...]) -> None:
    check_tensor(value, name)
    if value.dtype not in dtypes:
        names = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
        raise UsageError(f"argument '{name}' must be {names}, but got {type_of(value)}",
                         f"nothing is converted; pass {name}.to({dtypes[0]})")


def _check_angles(cos_sin: torch.Tensor, size: int) -> None:
    if cos_sin.shape[1] > size:
        raise UsageError(f"argument 'cos_sin_cache' must have at most {size} columns, those of a "
                         f"head, but got {type_of(cos_sin)}",
                         "a column of a head has a cosine or a sine")


def _run(what: Rotation, heads: torch.Tensor, positions: torch.Tensor, cos_sin: torch.Tensor,
         *weights: torch.Tensor) -> torch.Tensor:
    """The result of the program; heads with gaps are read where they are."""
    placed, strided = placed_heads(heads)
    program = rotation(dataclasses.replace(what, strided=strided), target(heads))
    result: torch.Tensor = program(placed, positions.view(-1), cos_sin, *weights)
    return result
