"""Rounds a weight so that the results of its layer on a text change least: GPTQ
(https://arxiv.org/abs/2210.17323), with the block scales of the recipe as they are."""

from __future__ import annotations

import dataclasses

import torch

from ..errors import UsageError
from ..torch import Scaled, dequantize
from ._errors import Loss

#: Numbers half way between two neighbours of E2M1.
_MIDDLES = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_ONE = 0x22  # two elements of 1.0
#: Part of the mean of the diagonal that is added to it, so that a short text has an inverse too.
_DAMPING = 0.01
#: Columns whose error reaches the columns behind them by one product.
_COLUMNS = 128


def round_for(weight: torch.Tensor, stored: Scaled, moments: torch.Tensor) -> Scaled:
    """Returns `stored` with other elements: each column is rounded to the nearest, and its error is
    taken out of the columns that follow. Columns of the largest inputs come first.

    Args:
        weight: [R, K] of which `stored` has the scales, in the layout linear.
        moments: [K, K], the sum of x x^T over the inputs x of the layer.
    """
    bytes_ = stored.data.view(torch.uint8)
    units = dataclasses.replace(stored, data=torch.full_like(bytes_, _ONE))
    order = torch.argsort(moments.diagonal(), descending=True, stable=True)
    factor = _factor(moments.double()[order][:, order])
    scales = dequantize(units, torch.float32).double()[:, order]
    work = weight.detach().double()[:, order]
    codes = torch.zeros_like(work, dtype=torch.uint8)
    for begin in range(0, work.shape[1], _COLUMNS):
        end = min(begin + _COLUMNS, work.shape[1])
        errors = torch.empty_like(work[:, begin:end])
        for column in range(begin, end):
            code, value = _nearest(work[:, column], scales[:, column])
            error = (work[:, column] - value) / factor[column, column]
            work[:, column:end] -= error[:, None] * factor[column, column:end]
            codes[:, column], errors[:, column - begin] = code, error
        work[:, end:] -= errors @ factor[begin:end, end:]
    codes = codes[:, torch.argsort(order)]
    data = codes[:, ::2] | codes[:, 1::2] << 4
    return dataclasses.replace(stored, data=data.view(stored.data.dtype))


def _factor(moments: torch.Tensor) -> torch.Tensor:
    """The upper Cholesky factor of the inverse. Inputs that are always zero round alone."""
    if not bool(moments.isfinite().all()):
        raise UsageError("the inputs of the layer must be finite, but are not",
                         "the model overflows on the text of --calibrate; exclude the layer")
    diagonal = moments.diagonal()
    mean = float(diagonal.mean())
    diagonal += _DAMPING * mean if mean else 1.0
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(moments))
    factor: torch.Tensor = torch.linalg.cholesky(inverse, upper=True)
    return factor


def _nearest(numbers: torch.Tensor, scales: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The codes of E2M1 whose values times `scales` are next to the numbers, ties to even, and
    these products."""
    middles = torch.tensor(_MIDDLES, dtype=torch.float64, device=numbers.device)
    values = torch.tensor(_VALUES, dtype=torch.float64, device=numbers.device)
    ratios = torch.where(scales > 0, numbers / scales, 0.0)
    below = torch.bucketize(ratios.abs(), middles)
    above = torch.bucketize(ratios.abs(), middles, right=True)
    code = torch.where(below % 2 == 0, below, above)
    sign = torch.where((ratios < 0) & (code > 0), -1.0, 1.0)
    return (code + 8 * (sign < 0)).to(torch.uint8), sign * values[code] * scales


def loss_on(weight: torch.Tensor, decoded: torch.Tensor, moments: torch.Tensor) -> Loss:
    """The squares of the results of a layer on the inputs of `moments`, and of their errors."""
    exact = weight.detach().double()
    squares = [float(((part @ moments.double()) * part).sum())
               for part in (exact, exact - decoded.double())]
    return Loss(squares[0], max(squares[1], 0.0))
