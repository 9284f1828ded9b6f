"""The error of quantized weights, the layers that a budget of bits keeps, and the report."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from ..errors import UsageError
from ._linears import Linear, units


@dataclasses.dataclass(frozen=True)
class Loss:
    """The squares of a weight and of its error, summed in float64.

    Attributes:
        signal: sum of w^2.
        noise: sum of (w - q)^2.
    """

    signal: float
    noise: float

    @property
    def relative(self) -> float:
        """Norm of the error over the norm of the weight; 0 for a weight of zeros."""
        return math.sqrt(self.noise / self.signal) if self.signal else 0.0

    @property
    def sqnr(self) -> float | None:
        """Signal to quantization noise in decibels; None where there is no noise."""
        return 10 * math.log10(self.signal / self.noise) if self.noise and self.signal else None

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.signal + other.signal, self.noise + other.noise)


#: Rows of a weight that are converted to float64 at a time.
_ROWS = 1024


def loss_of(weight: torch.Tensor, decoded: torch.Tensor) -> Loss:
    """The loss of a weight [R, K] whose quantized numbers are `decoded`."""
    total = Loss(0.0, 0.0)
    for first in range(0, weight.shape[0], _ROWS):
        part = weight[first:first + _ROWS].double()
        noise = (part - decoded[first:first + _ROWS].double()).square().sum()
        total += Loss(float(part.square().sum()), float(noise))
    return total


@dataclasses.dataclass(frozen=True)
class Line:
    """A linear layer of the result.

    Attributes:
        layer: as the checkpoint had it.
        format: "nvfp4" or "mxfp4"; "" where the layer stays as it is.
        bits: of the file for each weight.
        loss: of the weight in 4 bits, or of the results of the layer on a text, also where a budget
            keeps the layer; None if it was never quantized.
        reason: for which it stays.
        nearest: the loss of the results with each number rounded to the nearest; None without a
            text, and where no token of the text reaches the layer.
    """

    layer: Linear
    format: str
    bits: float
    loss: Loss | None
    reason: str
    nearest: Loss | None = None

    def to_dict(self) -> dict[str, Any]:
        loss, nearest = self.loss, self.nearest
        return {"name": self.layer.name, "shape": list(self.layer.shape), "format": self.format,
                "bits": self.bits, "relative_error": None if loss is None else loss.relative,
                "nearest_error": None if nearest is None else nearest.relative,
                "sqnr_db": None if loss is None else loss.sqnr, "reason": self.reason}


@dataclasses.dataclass(frozen=True)
class ModelReport:
    """The linear layers of a model that was quantized; print it for a table.

    Attributes:
        lines: the worst layer first, and behind all others those that were never quantized.
        recipe: of the weights.
        bits: for each weight of the layers that could be quantized.
        bytes_before, bytes_after: of all tensors.
        calibrated: errors are those of the results of layers on a text.
    """

    lines: tuple[Line, ...]
    recipe: str
    bits: float
    bytes_before: int
    bytes_after: int
    calibrated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The report for json.dumps."""
        return {"recipe": self.recipe, "bits": self.bits, "bytes_before": self.bytes_before,
                "bytes_after": self.bytes_after, "calibrated": self.calibrated,
                "layers": [line.to_dict() for line in self.lines]}

    def __str__(self) -> str:
        quantized = sum(bool(line.format) for line in self.lines)
        width = max(len(line.layer.name) for line in self.lines)
        head = (f"{quantized} of {len(self.lines)} linear layers in 4 bits, {self.bits:.2f} bits a "
                f"weight, {self.bytes_before:,} to {self.bytes_after:,} bytes")
        nearest = "nearest " if self.calibrated else ""
        return "\n".join([head, f"  {'layer':{width}}  format {nearest}  error    SQNR  shape",
                          *(_text(line, width, self.calibrated) for line in self.lines)])


def _error(loss: Loss | None) -> str:
    return "      -" if loss is None else f"{loss.relative:7.4f}"


def _text(line: Line, width: int, calibrated: bool) -> str:
    loss = line.loss
    error = f"{_error(line.nearest)} {_error(loss)}" if calibrated else _error(loss)
    sqnr = "     -" if loss is None or loss.sqnr is None else f"{loss.sqnr:6.2f}"
    rows, columns = line.layer.shape
    reason = f"  {line.reason}" if line.reason else ""
    return (f"  {line.layer.name:{width}}  {line.format or line.layer.dtype.lower():6} {error}  "
            f"{sqnr}  {rows}x{columns}{reason}")


def check_budget(budget: float, bits: float) -> None:
    """Refuses a mean, also NaN, that no choice of layers reaches. `bits` are those of a weight that
    is quantized."""
    if not budget >= bits:
        raise UsageError(f"'bits' must be at least the {bits:g} of the format, but got {budget:g}",
                         "leave it out, and all layers are in 4 bits")


def kept_by(budget: float, layers: Sequence[Linear], losses: Mapping[str, Loss],
            bits: float) -> set[str]:
    """The layers that stay as they are: those with the largest relative error, as long as the mean
    over all weights is at most `budget` bits. Layers that are multiplied by at once stay together.

    Args:
        bits: of a weight that is quantized.
    """
    by_name = {layer.name: layer for layer in layers}
    left = (budget - bits) * sum(layer.size for layer in layers)
    groups = units(by_name)

    def order(group: tuple[str, ...]) -> tuple[float, str]:
        return -sum((losses[name] for name in group), Loss(0.0, 0.0)).relative, group[0]

    kept: set[str] = set()
    for group in sorted(groups, key=order):
        cost = sum((by_name[name].bits - bits) * by_name[name].size for name in group)
        if cost <= left:
            left -= cost
            kept.update(group)
    return kept


def sorted_lines(lines: Iterable[Line]) -> tuple[Line, ...]:
    """The worst layer first."""
    return tuple(sorted(lines, key=lambda line: (
        line.loss is None, 0.0 if line.loss is None else -line.loss.relative)))
