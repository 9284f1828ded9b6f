"""Values of fp4.builder, and checks of what its methods take."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import _mlir as m
from .errors import UsageError
from .manifest import Type

if TYPE_CHECKING:
    from .builder import FunctionBuilder


@dataclasses.dataclass(frozen=True, eq=False)
class Value:
    """A tensor of a function that is being built: an argument, or the result of an operation."""

    function: FunctionBuilder = dataclasses.field(repr=False)
    name: str  #: in the text of the function, "%x"
    type: Type

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes in elements; -1 is dynamic."""
        return self.type.shape


@dataclasses.dataclass(frozen=True, eq=False)
class ScaledValue:
    """A quantized matrix of a function that is being built.

    Attributes:
        data: R x K, in elements. K is the axis along which blocks share a scale.
        scales: R x ceil(K/block), "linear" or in the layout "tiled_128x4".
        format: "nvfp4", "mxfp4", ...
        amax: a scalar, or one number for each row; None where the recipe has no tensor scale.
        recipe: how the matrix was quantized, None for the default of the format.
    """

    data: Value
    scales: Value
    format: str
    amax: Value | None = None
    recipe: str | None = None


def sizes_of(shape: Sequence[int | str], name: str) -> tuple[tuple[int, ...], list[str]]:
    """Sizes, of which -1 is dynamic, and names, which are empty where there is none."""
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise TypeError(f"the shape of '{name}' must be a tuple of sizes, but got "
                        f"{type(shape).__name__}")
    sizes, dims = [], []
    for size in shape:
        if isinstance(size, str):
            if not size:
                raise UsageError(f"a size of '{name}' must be a number or a name, but got ''")
            sizes.append(-1)
            dims.append(size)
            continue
        if m.integer(size, f"a size of '{name}'") < 1:
            raise UsageError(f"a size of '{name}' must be positive, but got {size}",
                             "a size that is known when the function is called is a str, its name")
        sizes.append(size)
        dims.append("")
    return tuple(sizes), dims


def matrix_shape(value: Value, what: str) -> tuple[int, int]:
    """The shape of a matrix."""
    shape = m.check(value, what, Value).shape
    if len(shape) != 2:
        raise UsageError(f"{what} must be a matrix, but has {len(shape)} dimensions")
    return shape[0], shape[1]


def _integers(values: Sequence[int], what: str) -> list[int]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise TypeError(f"'{what}' must be a tuple of sizes, but got {type(values).__name__}")
    return [m.integer(value, f"a size of '{what}'") for value in values]


def groups_attribute(groups: Sequence[int] | None) -> dict[str, str]:
    if groups is None:
        return {}
    return {"groups": f"array<i64: {', '.join(map(str, _integers(groups, 'groups')))}>"}


def count_of(groups: Sequence[int] | None, offsets: Value | None) -> int | None:
    """The number of groups of rows; None where there are none."""
    if groups is not None:
        return len(_integers(groups, "groups"))
    if offsets is None:
        return None
    shape = m.check(offsets, "'offsets'", Value).shape
    if len(shape) not in (1, 2) or shape[0] < 1:
        raise UsageError("'offsets' must have G + 1 numbers for G groups, or G x 2, but has the "
                         f"shape {list(shape)}", "give it static sizes")
    return shape[0] - (len(shape) == 1)


def rows_of_tiles(groups: Sequence[int] | None, offsets: Value | None,
                  rows: int) -> Sequence[int] | None:
    """Rows of groups whose scales have tiles; with `offsets`, of those that need the most."""
    count = count_of(groups, offsets)
    if groups is not None or count is None:
        return groups
    if rows < 0:
        raise UsageError("a matrix must have static rows beside 'offsets', but has dynamic ones",
                         "the last of the offsets says how many of them the groups use")
    return [rows // 128 * 128] + [128] * count


def block_attribute(block: Sequence[int] | None) -> dict[str, str]:
    if block is None:
        return {}
    if isinstance(block, str) or not isinstance(block, Sequence):
        raise TypeError(f"'block' must be a tuple of sizes, but got {type(block).__name__}")
    sizes = ", ".join(str(m.integer(size, "a size of 'block'")) for size in block)
    return {"block": f"array<i64: {sizes}>"}


def check_gemm(lhs: ScaledValue, rhs: ScaledValue, alpha: Value | None) -> None:
    """Checks what the builder knows of its operands and the verifier does not, or reports less
    well."""
    for value, what in ((lhs, "'lhs'"), (rhs, "'rhs'")):
        layout = m.check(value, what, ScaledValue).scales.type.layout
        if layout != "tiled_128x4":
            raise UsageError(f"{what} must have scales in the layout tiled_128x4, but they are "
                             f"{layout}", "use swizzle_scales, or quantize with "
                             "layout='tiled_128x4'")
        if value.amax is not None and alpha is None:
            raise UsageError(f"the matmul must have an alpha, because {what} has an amax",
                             "pass alpha=f.matmul_alpha(lhs, rhs)")
