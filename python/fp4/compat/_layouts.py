"""Tracks the layout of block scales: which function made them, and which functions may read them.

Scales of the layouts linear and tiled_128x4 are both matrices of bytes in these packages, and of
equal shape where there is no padding. So the functions that make scales note their layout for the
memory of the result, and the functions that read scales compare. A view of a tensor (.T, .view,
.reshape) has the same memory; a copy has a note only if it is made by these functions. A tensor
that torch has written to since has none: somebody may have put other scales into it.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ..errors import UsageError
from ..tensors import Tiled

TILED, LINEAR = "tiled_128x4", "linear"
#: Scales of groups of rows, whose tiles begin anew: no function reads them as scales of one matrix.
GROUPED = "grouped tiled_128x4"
#: Tiles of 8 rows and 4 columns, which FlashInfer's and vLLM's trtllm kernels read for small M.
#: Here torch makes and reads them: no kernel of fp4 has this layout.
EIGHT = "tiled_8x4"


@dataclasses.dataclass(frozen=True)
class Scales:
    """The known facts about the scales in a buffer: their layout, rows x columns without padding,
    and the function that made them."""

    layout: str
    rows: int
    columns: int
    maker: str

    def __str__(self) -> str:
        return f"{self.layout} scales of {self.rows} x {self.columns} that {self.maker} made"


class _Notes:
    """Notes by storage. A weak reference keeps the identity of a dead storage from being used
    again, so a note never belongs to another buffer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._notes: dict[int, tuple[Any, int, Scales]] = {}
        self._limit = 64

    def add(self, tensor: torch.Tensor, scales: Scales) -> None:
        reference = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
        with self._lock:
            self._notes[reference.cdata] = (reference, _version(tensor), scales)
            if len(self._notes) > self._limit:
                self._notes = {key: note for key, note in self._notes.items()
                               if not note[0].expired()}
                self._limit = max(64, 2 * len(self._notes))

    def find(self, tensor: torch.Tensor) -> Scales | None:
        with self._lock:
            note = self._notes.get(tensor.untyped_storage()._cdata)
            if note is None or note[0].expired() or note[1] != _version(tensor):
                return None
            return note[2]


def _version(tensor: torch.Tensor) -> int:
    """Counts the writes of torch to the tensor or a view of it; torch does not count writes to
    tensors of torch.inference_mode."""
    return 0 if tensor.is_inference() else tensor._version


_NOTES = _Notes()


def note(tensor: torch.Tensor, layout: str, rows: int, columns: int, maker: str) -> torch.Tensor:
    """Notes what the scales in the memory of `tensor` are, and returns it."""
    _NOTES.add(tensor, Scales(layout, rows, columns, maker))
    return tensor


def padded(rows: int, columns: int, high: int = 128) -> tuple[int, int]:
    """The sizes of tiled scales as the packages count them: whole tiles of 128 x 4, or of `high`
    rows."""
    return -(-rows // high) * high, -(-columns // 4) * 4


def to_eight(linear: torch.Tensor) -> torch.Tensor:
    """Linear scales as bytes in tiles of 8 x 4, zero where there is padding."""
    rows, columns = linear.shape
    high, wide = padded(rows, columns, 8)
    full = torch.nn.functional.pad(linear.view(torch.uint8), (0, wide - columns, 0, high - rows))
    return full.view(high // 8, 8, wide // 4, 4).transpose(1, 2).reshape(high, wide)


def from_eight(tiles: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """The linear scales, as bytes, of tiles of 8 x 4."""
    high, wide = padded(rows, columns, 8)
    full = tiles.view(torch.uint8).reshape(high // 8, wide // 4, 8, 4).transpose(1, 2)
    return full.reshape(high, wide)[:rows, :columns].contiguous()


def expect(scales: Any, layout: str, rows: int, columns: int, what: str) -> torch.Tensor:
    """The buffer of `rows` x `columns` scales in `layout`, as rows or as one row of bytes.

    Args:
        scales: a matrix, for tiled scales padded to [128 * i, 4 * j]; or one row of as many bytes;
            or fp4.tiled(...).
    Raises:
        UsageError: the scales have another layout or size, or a layout that cannot be known.
    """
    if isinstance(scales, Tiled):
        return _declared(scales, layout, rows, columns, what)
    if not isinstance(scales, torch.Tensor):
        raise TypeError(f"{what} must be a torch tensor, but got {type(scales).__name__}")
    known = _NOTES.find(scales)
    if known is not None and (known.layout, known.rows, known.columns) != (layout, rows, columns):
        raise UsageError(f"{what} must be {layout} scales of {rows} x {columns}, but got {known}",
                         _remedy(layout) if known.layout != layout else
                         "pass the scales that were made with these codes")
    shape = shape_of(layout, rows, columns)
    if tuple(scales.shape) not in (shape, (math.prod(shape),), _tiles(shape)):
        raise UsageError(f"{what} must be {layout} scales of {rows} x {columns}, a tensor of shape "
                         f"{list(shape)}, but got {list(scales.shape)}", _remedy(layout))
    is_plain = layout == TILED and shape == (rows, columns) and tuple(scales.shape) == shape
    if known is None and is_plain:
        raise UsageError(f"{what} must be tiled_128x4 scales, but a matrix of shape {list(shape)} "
                         "from elsewhere may as well be linear",
                         "if its bytes are tiled, say so: pass fp4.tiled(scales, "
                         f"{rows}, {columns}); if not, tile it with block_scale_interleave")
    if not scales.is_contiguous():
        raise UsageError(f"{what} must be contiguous, but its strides of shape "
                         f"{list(scales.shape)} are not", "no copy is made")
    return scales.reshape(-1) if layout == TILED else scales.reshape(shape)


def shape_of(layout: str, rows: int, columns: int) -> tuple[int, int]:
    """The sizes of a matrix of scales, with what `layout` pads."""
    return {TILED: padded(rows, columns), EIGHT: padded(rows, columns, 8),
            LINEAR: (rows, columns)}[layout]


def kernel_layout(layout: str) -> str:
    """Returns the layout that a kernel writes: torch makes tiles of 8 rows of linear scales."""
    return LINEAR if layout == EIGHT else layout


def laid_out(scales: torch.Tensor, layout: str, rows: int, blocks: int) -> torch.Tensor:
    """The scales that a kernel wrote, as bytes in `layout`."""
    if layout == EIGHT:
        return to_eight(scales.view(torch.uint8).view(rows, blocks))
    return scales.view(torch.uint8).view(shape_of(layout, rows, blocks))


def upright(scales: Any) -> Any:
    """Scales as a matrix whose rows are those of the operand: callers pass b_sf or b_sf.T."""
    if not isinstance(scales, torch.Tensor) or scales.dim() != 2 or scales.stride(0) != 1:
        return scales
    return scales.t()


def results(a: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor, layout: str, block: int,
            maker: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and scales of `a` as callers know them, with a note of their layout."""
    rows, blocks = a.numel() // a.shape[-1], a.shape[-1] // block
    scales = laid_out(scales, layout, rows, blocks)
    codes = codes.view(torch.uint8).view(*a.shape[:-1], a.shape[-1] // 2)
    return codes, note(scales, layout, rows, blocks, maker)


def _tiles(shape: tuple[int, int]) -> tuple[int, ...]:
    return (shape[0] // 128, shape[1] // 4, 512)


def _declared(scales: Tiled, layout: str, rows: int, columns: int, what: str) -> torch.Tensor:
    if layout != TILED or scales.shape != (rows, columns):
        raise UsageError(f"{what} must be {layout} scales of {rows} x {columns}, but got "
                         f"tiled_128x4 scales of {scales.shape[0]} x {scales.shape[1]}")
    if not isinstance(scales.data, torch.Tensor):
        raise TypeError(f"{what} must be a torch tensor, but got {type(scales.data).__name__}")
    size = math.prod(padded(rows, columns))
    if scales.data.numel() != size or not scales.data.is_contiguous():
        raise UsageError(f"{what} must be a contiguous buffer of {size} bytes, but got shape "
                         f"{list(scales.data.shape)}")
    return scales.data.reshape(-1)


def _remedy(layout: str) -> str:
    if layout == EIGHT:
        return "quantize with the layout 8x4"
    if layout == TILED:
        return "quantize with the layout 128x4, or tile linear scales with block_scale_interleave"
    return "quantize with the layout linear; nothing is rearranged silently"
