"""The block-scaled formats: facts of `#fp4.format` (docs/reference/fp4-attributes.md)."""

from __future__ import annotations

import dataclasses

from .errors import UsageError


@dataclasses.dataclass(frozen=True)
class Format:
    """Facts of a format.

    Attributes:
        data: the element type of the data.
        scales: the element type of the block scales.
        block: elements along the contraction axis that share a scale.
        recipe: the recipe that holds where none is named (docs/reference/recipes.md).
    """

    data: str
    scales: str
    block: int
    recipe: str


FORMATS = {
    "nvfp4": Format("f4E2M1FN", "f8E4M3FN", 16, "transformer_engine"),
    "mxfp4": Format("f4E2M1FN", "f8E8M0FNU", 32, "ocp_floor"),
    "mxfp6_e2m3": Format("f6E2M3FN", "f8E8M0FNU", 32, "mxfp6_e2m3_floor"),
    "mxfp6_e3m2": Format("f6E3M2FN", "f8E8M0FNU", 32, "mxfp6_e3m2_floor"),
    "mxfp8_e4m3": Format("f8E4M3FN", "f8E8M0FNU", 32, "mxfp8_e4m3_floor"),
    "mxfp8_e5m2": Format("f8E5M2", "f8E8M0FNU", 32, "mxfp8_e5m2_floor"),
    "fp8_block128": Format("f8E4M3FN", "f32", 128, "fp8_deepgemm"),
}


def find_format(name: str) -> Format:
    """The facts of the format `name`. A UsageError lists those that exist."""
    if not isinstance(name, str):
        raise TypeError(f"a format must be a str, but got {type(name).__name__}")
    if name not in FORMATS:
        raise UsageError(f"unknown format '{name}'", f"the formats are {', '.join(FORMATS)}")
    return FORMATS[name]
