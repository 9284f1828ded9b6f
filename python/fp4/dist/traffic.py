"""Counts the bytes that a gather moves."""

from __future__ import annotations

import dataclasses

from ..errors import UsageError
from ..torch.recipes import check_format
from ..torch.scaled import scale_shape


@dataclasses.dataclass(frozen=True)
class Traffic:
    """Bytes that each rank receives.

    Attributes:
        data, scales: the quantized matrix: 4-bit elements, and scales without padding.
        bfloat16: the same matrix in bfloat16.
    """

    data: int
    scales: int
    bfloat16: int

    @property
    def bytes(self) -> int:
        return self.data + self.scales

    @property
    def ratio(self) -> float:
        """The bytes of a gather in bfloat16, divided by those of this one."""
        return self.bfloat16 / self.bytes if self.bytes else float("nan")


def gather_traffic(shape: tuple[int, int], ranks: int, format: str = "nvfp4") -> Traffic:
    """Returns the bytes that each of `ranks` receives from the others when shards of `shape`,
    (rows, columns), are gathered. The amax is four bytes more, once for each quantizer.

    >>> gather_traffic((4096, 4096), 8).ratio
    3.5555555555555554
    """
    check_format(format)
    rows, columns = shape
    if rows < 0 or columns < 2 or columns % 2:
        raise UsageError(f"'shape' must be (rows, an even number of columns), but got {shape}")
    if ranks < 1:
        raise UsageError(f"'ranks' must be at least 1, but got {ranks}")
    blocks = scale_shape(shape, format, "linear")[1]
    others = (ranks - 1) * rows
    return Traffic(others * columns // 2, others * blocks, others * columns * 2)
