"""Weights one below the other, as models have them that multiply once for q, k and v, or for gate
and up."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..errors import UsageError
from ..torch import Scaled, swizzle


def merge(parts: Sequence[Scaled]) -> Scaled:
    """The matrix with the rows of all `parts`, bytes and numbers as they are.

    If the scales of the tensors differ, the result has one for each row, so that every part decodes
    to its own numbers.

    Raises:
        UsageError: parts of different columns, formats, recipes or devices.
    """
    if not parts:
        raise UsageError("'parts' must have a weight, but there is none")
    linear = [swizzle(part, "linear") for part in parts]
    first = linear[0]
    for part in linear:
        same = (part.shape[1], part.format, part.recipe, part.device, part.amax is None)
        if same != (first.shape[1], first.format, first.recipe, first.device, first.amax is None):
            raise UsageError(f"weights to merge must have one K, format, recipe and device, but "
                             f"got {first} and {part}")
    data = torch.cat([part.data.view(torch.uint8) for part in linear])
    scales = torch.cat([part.scales.view(torch.uint8) for part in linear])
    return Scaled(data, scales, _amax(linear), (data.shape[0], first.shape[1]), first.format,
                  "linear", first.recipe)


def _amax(parts: Sequence[Scaled]) -> torch.Tensor | None:
    found = [part.amax for part in parts if part.amax is not None]
    if not found:
        return None
    if all(amax.dim() == 0 and torch.equal(amax, found[0]) for amax in found):
        return found[0]
    return torch.cat([amax.expand(part.shape[0]) for amax, part in zip(found, parts)])
