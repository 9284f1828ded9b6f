"""Scales of whole tensors, and how a weight goes from one convention to another."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator

import torch

from ..compat._programs import dequantizer
from ..errors import UsageError
from ..torch import Scaled
from ..torch.recipes import BLOCKS, has_tensor_scale, is_supplied, is_supplied_decode
from ..torch.scaled import SCALE_DTYPES
from ._layouts import Kind

CONVENTIONS = ("encode", "decode")
_ONE = 0x38  # E4M3
#: The relative error that two roundings of float32 may add.
_ROUNDING = 2.0 ** -22


@dataclasses.dataclass(frozen=True, eq=False)
class GlobalScale:
    """The scale of a tensor, with its meaning.

    Attributes:
        value: float32 scalar.
        convention: "encode", 2688 / amax, by which numbers are multiplied before they are encoded,
            or "decode", amax / 2688, by which data are multiplied.
    """

    value: torch.Tensor
    convention: str

    def __post_init__(self) -> None:
        if self.convention not in CONVENTIONS:
            raise UsageError("'convention' must be encode or decode, but got "
                             f"{self.convention!r}")
        if not isinstance(self.value, torch.Tensor):
            raise TypeError(f"'value' must be a torch.Tensor, but got {type(self.value).__name__}")
        if self.value.dtype != torch.float32 or self.value.numel() != 1:
            raise UsageError(f"'value' must be one float32, but got {str(self.value.dtype)[6:]} of "
                             f"shape {list(self.value.shape)}", "a conversion could round it")
        object.__setattr__(self, "value", self.value.reshape(()))

    def to(self, convention: str, *, nearest: bool = False) -> GlobalScale:
        """The scale in the other convention: a number whose reciprocal is this one.

        A scale without an exact reciprocal is a UsageError, unless `nearest` asks for the rounded
        reciprocal.
        """
        if convention == self.convention:
            return self
        other = GlobalScale(self.value.reciprocal(), convention)  # checks the name
        for near in neighbours(other.value):
            if torch.equal(near.reciprocal(), self.value):
                return GlobalScale(near, convention)
        if nearest:
            return other
        raise UsageError(f"no {convention} scale has the reciprocal {self.value.item():.9g}, the "
                         f"{self.convention} scale", "pass nearest=True for the rounded reciprocal")


def neighbours(value: torch.Tensor) -> Iterator[torch.Tensor]:
    """A float32 and those up to two places from it, the nearest first."""
    for step in (0, 1, -1, 2, -2):
        near = (value.view(torch.int32) + step).view(torch.float32)
        if bool(near.isfinite()):
            yield near


def level_of(scaled: Scaled, kind: Kind, *, nearest: bool = False) -> torch.Tensor | None:
    """The scale of the tensor for a weight stored as `kind`, whose package decodes the same numbers
    from it as fp4 from `scaled`, to the last bit; a UsageError if there is none.

    A weight with an amax was never stored: its layout's own scale of that amax is taken even if one
    rounding differs. A scale that was given is somebody's number, and is kept or refused."""
    if scaled.format != kind.format:
        raise UsageError(f"the weight must be {kind.format}, but is {scaled.format}")
    if scaled.amax is not None and scaled.amax.dim():
        raise UsageError("the weight must have one scale of the tensor, but has one for each of "
                         f"{scaled.amax.numel()} rows", "quantize it without per_row")
    occurs = torch.bincount(scaled.scales.reshape(-1).view(torch.uint8).cpu(), minlength=256) > 0
    given = None if scaled.amax is None else scaled.amax.cpu()
    wanted = _factors(scaled.format, scaled.recipe, given)
    errors: list[tuple[float, torch.Tensor]] = []
    for level in _candidates(wanted, kind):
        found = _factors(kind.format, kind.recipe, level)[occurs]
        if torch.equal(_bits(found), _bits(wanted[occurs])):
            return level
        if level is not None:
            errors.append((_distance(found, wanted[occurs]), level))
    least = min(errors, key=lambda pair: pair[0], default=None)
    is_given = is_supplied(scaled.recipe) or is_supplied_decode(scaled.recipe)
    if least is not None and (nearest or (not is_given and least[0] <= _ROUNDING)):
        return least[1]
    what = f"{kind.convention} scale" if kind.convention else "recipe without a scale of the tensor"
    by = f": they differ by {least[0]:.1e} of themselves" if least else ""
    raise UsageError(f"no {what} decodes to the numbers of recipe '{scaled.recipe}'{by}",
                     "pass nearest=True, or quantize with the recipe of the layout" if least else
                     "dequantize the weight, and quantize it with the recipe of the layout")


def restated(scaled: Scaled, kind: Kind, *, nearest: bool = False) -> Scaled:
    """Returns the bytes with the scale of the tensor and the recipe of `kind`.

    Args:
        nearest: take the nearest scale where none decodes to the same numbers to the last bit.

    Raises:
        UsageError: there is none, and `nearest` is False; or the format is another one.
    """
    level = level_of(scaled, kind, nearest=nearest)
    where = None if level is None else level.to(scaled.device)
    return Scaled(scaled.data, scaled.scales, where, scaled.shape, scaled.format, scaled.layout,
                  kind.recipe)


def _candidates(factors: torch.Tensor, kind: Kind) -> Iterator[torch.Tensor | None]:
    """Scales that may give these factors: what 1 becomes under a block scale of 1 is the decode
    scale, or the reciprocal of the encode scale."""
    if not kind.level:
        yield None
        return
    scale = factors[_ONE]
    yield from neighbours(scale.reciprocal() if kind.convention == "encode" else scale)


def _factors(format: str, recipe: str, level: torch.Tensor | None) -> torch.Tensor:
    """Returns the factor by which a recipe multiplies 1, for each byte of a block scale: float32
    [256]. The compiled dequantizer computes the factors; no formula is repeated here."""
    run = _table(format, recipe)
    return run(level)


@functools.lru_cache(maxsize=64)
def _table(format: str, recipe: str) -> Callable[[torch.Tensor | None], torch.Tensor]:
    block = BLOCKS[format]
    names = ("data", "scales", "level")[:3 if has_tensor_scale(format, recipe) else 2]
    program = dequantizer(0, block, "f32", recipe, "linear", names, "sm_100a", format)
    # With their devices and dtypes: the defaults may be a GPU and bfloat16 while models are loaded.
    ones = torch.full((256, block // 2), 0x22, dtype=torch.uint8, device="cpu")  # the code of 1
    scales = torch.arange(256, dtype=torch.uint8, device="cpu").view(256, 1)
    scales = scales.view(SCALE_DTYPES[format])

    def run(level: torch.Tensor | None) -> torch.Tensor:
        values: torch.Tensor = program(ones, scales, *(() if level is None else (level,)))
        return values[:, 0].contiguous()

    return run


def _bits(values: torch.Tensor) -> torch.Tensor:
    """Numbers as integers. Every NaN is the same one."""
    return values.view(torch.int32).masked_fill(values.isnan(), 0x7FC00000)


def _distance(found: torch.Tensor, wanted: torch.Tensor) -> float:
    relative = ((found.double() - wanted.double()) / wanted.double()).abs()
    finite = relative[relative.isfinite()]
    return float(finite.max()) if finite.numel() else float("inf")
