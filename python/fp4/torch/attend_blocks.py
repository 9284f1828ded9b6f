"""Attention whose tensor cores scale blocks of queries and keys: MXFP8 and NVFP4."""

from __future__ import annotations

import torch

from ..errors import UsageError
from .attend_programs import BLOCKS, PACKED, SCALES, elements_of
from .row_results import check_tensor, said

Maybe = torch.Tensor | None


def tiled(scales: torch.Tensor, heads: int = 2) -> torch.Tensor:
    """Row-major scales [B, S, H, N] as tiles of 128 rows and 4 columns, each head of a sequence
    with rows of its own. Dimension `heads` has the heads; those of values are [B, H, E, N]."""
    rows = (scales if heads == 1 else scales.transpose(1, 2)).view(torch.uint8)
    rows = torch.nn.functional.pad(rows, (0, -rows.shape[3] % 4, 0, -rows.shape[2] % 128))
    tiles = rows.reshape(-1, 4, 32, rows.shape[3] // 4, 4).permute(0, 3, 2, 1, 4)
    return tiles.reshape(tiles.shape[0], tiles.shape[1], 512).view(scales.dtype)


def check(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, query_scales: torch.Tensor,
          key_scales: Maybe, value_scales: Maybe, others: dict[str, object]) -> None:
    """Refuses operands and scales that no kernel has."""
    for name, given in others.items():
        if given is not None and given != 0:
            raise UsageError(f"'{name}' must be left out beside 'query_scales'",
                             "tiles of 128 rows have their scales together: pad each sequence")
    if key_scales is None:
        raise UsageError("'query_scales' and 'key_scales' must come together, but got one",
                         "one instruction multiplies both")
    packed = query.dtype in PACKED
    if not packed and query.dtype != torch.float8_e4m3fn:
        raise UsageError("'query' must be float8_e4m3fn, float4_e2m1fn_x2 or uint8 beside "
                         f"'query_scales', but got {said(query)}", "quantize it to MXFP8 or NVFP4")
    if key.dtype != query.dtype and not (packed and key.dtype in PACKED):
        raise UsageError(f"'key' must be of the dtype of 'query' beside 'query_scales', but got "
                         f"{said(key)}", "one instruction multiplies both")
    has_rows = value_scales is not None
    if value.dtype not in (PACKED if has_rows and packed else (torch.float8_e4m3fn,)):
        raise UsageError("'value' must be float8_e4m3fn, or with 'value_scales' codes [B, Hk, E, "
                         f"Sk] of the format of 'query', but got {said(value)}",
                         "powers are e4m3, MXFP8 or NVFP4, as values are")
    for name, tensor, scales in (("query", query, query_scales), ("key", key, key_scales),
                                 ("value", value, value_scales)):
        if scales is not None:
            _check_scales(name, tensor, scales, torch.float8_e4m3fn if packed
                          else torch.float8_e8m0fnu)


def _check_scales(name: str, tensor: torch.Tensor, scales: torch.Tensor,
                  dtype: torch.dtype) -> None:
    check_tensor(scales, f"{name}_scales")
    block = BLOCKS[SCALES[dtype]]
    if tensor.dim() != 4:
        raise UsageError(f"'{name}' must be batches x tokens x heads x elements, but got the shape "
                         f"{list(tensor.shape)}", "pass x.view(batches, tokens, heads, -1)")
    shape = (*tensor.shape[:3], -(-elements_of(tensor)[3] // block))
    if scales.dtype != dtype or tuple(scales.shape) != shape:
        raise UsageError(f"'{name}_scales' must be {str(dtype)[6:]} of shape {list(shape)}, but "
                         f"got {said(scales)}", f"each {block} elements of a row have a scale")
