"""The programs behind rotations and rows that are read by number: one kernel each.

A row of a rotation is a head of a token. The heads of a token share the row of cosines and sines
that its position names.
"""

from __future__ import annotations

import dataclasses
import functools

from .norm_programs import Norm, normed
from .programs import Runnable, compile_text
from .row_programs import ALONE, Ending, Tensor, Text, amax_argument, end


@dataclasses.dataclass(frozen=True)
class Rotation:
    """The facts that decide the program of a rotation.

    Attributes:
        heads, columns, source: of the input, [T, heads, columns], and its element type.
        rotated: the columns that are rotated, the first ones.
        angles: the element type of cosines and sines.
        interleaved: the partners are columns 2i and 2i + 1, and otherwise i and i + rotated / 2.
        norm: of each head before; None without one.
        has_head_weights: the weight of the norm is [heads, columns].
        strided: heads of the input have gaps between them.
    """

    heads: int
    columns: int
    source: str
    rotated: int
    angles: str
    interleaved: bool
    norm: Norm | None = None
    has_head_weights: bool = False
    ending: Ending = ALONE
    strided: bool = False


@functools.lru_cache(maxsize=256)
def rotation(what: Rotation, target: str) -> Runnable:
    """(x [T, heads, columns], positions [T], cos_sin [P, rotated]; weight and amax where there are
    any) -> codes, scales and amaxes of rows where there are any; the elements where they are kept.
    The results have a row for each head."""
    return compile_text(rotation_text(what), target)


def rotation_text(what: Rotation) -> str:
    """The program of a rotation as MLIR text."""
    text, inputs, body = begin_rotation(what)
    amax = amax_argument(text, what.ending)
    end(text, what.ending, text.elements("y", inputs, body, "%z", what.source), amax)
    return text.text("rotation")


def begin_rotation(what: Rotation) -> tuple[Text, list[Tensor], str]:
    """A function that has no results yet; and of its heads, each of which is a row, the inputs and
    the body of an operation in which %z is what they are rotated to. The first input is the heads
    that are rotated."""
    text = Text(what.columns, what.source, what.strided)
    x = text.argument("x", f"tensor<?x{what.heads}x{what.columns}x{what.source}>", rows="T")
    positions = text.argument("positions", "tensor<?xi64>", "#row", rows="T")
    table = text.argument("cos_sin", f"tensor<?x{what.rotated}x{what.angles}>", "#table", rows="P")
    scales = [_weight(text, what, what.norm.weight)] if what.norm and what.norm.weight else []
    heads = Tensor("heads", text.matrix(what.source))
    text.lines.append(f"  %heads = tensor.collapse_shape %x [[0, 1], [2]] : {x.type} into "
                      f"{heads.type}")
    text.begin(positions, what.heads)
    angles = text.gather("angles", table, positions)
    if what.norm:
        heads = normed(text, what.norm, heads, scales, "normed")
    return text, *_rotated(what, heads, angles)


def _weight(text: Text, what: Rotation, element: str) -> Tensor:
    if not what.has_head_weights:
        return text.argument("w", f"tensor<{what.columns}x{element}>", "#column")
    place = f"affine_map<(i, j) -> (i mod {what.heads}, j)>"
    return text.argument("w", f"tensor<{what.heads}x{what.columns}x{element}>", place)


def _rotated(what: Rotation, x: Tensor, angles: Tensor) -> tuple[list[Tensor], str]:
    """x * cos + partner * sin, where the partner of the first of two columns is negative."""
    half, size = what.rotated // 2, what.rotated
    if what.interleaved:
        partner, angle = "j + 1 - (j mod 2) * 2", f"(j floordiv 2) mod {half}"
    else:
        partner, angle = f"(j + {half}) mod {size}", f"j mod {half}"
    token = f"i floordiv {what.heads}"
    inputs = [x, dataclasses.replace(x, alias="partner", map=_map("i", partner)),
              dataclasses.replace(angles, alias="cosine", map=_map(token, angle)),
              dataclasses.replace(angles, alias="sine", map=_map(token, f"{angle} + {half}"))]
    first = ("    %bit = arith.andi %at, %one : i32\n"
             "    %first = arith.cmpi eq, %bit, %none : i32\n" if what.interleaved else
             "    %first = arith.cmpi ult, %at, %half : i32\n")
    body = _numbers(none=0, one=1, half=half, size=size) + f"""\
    %column = linalg.index 1 : index
    %at = arith.index_cast %column : index to i32
{first}    %negative = arith.negf %partner.f : f32
    %other = arith.select %first, %negative, %partner.f : f32
    %u = arith.mulf %{x.inner}.f, %cosine.f : f32
    %v = arith.mulf %other, %sine.f : f32
    %turned = arith.addf %u, %v : f32
    %inside = arith.cmpi ult, %at, %size : i32
    %z = arith.select %inside, %turned, %{x.inner}.f : f32
"""
    return inputs, body


def _map(row: str, column: str) -> str:
    return f"affine_map<(i, j) -> ({row}, {column})>"


def _numbers(**values: int) -> str:
    return "".join(f"    %{name} = arith.constant {value} : i32\n"
                   for name, value in values.items())


@dataclasses.dataclass(frozen=True)
class Gather:
    """The facts that decide the program of rows that are gathered from a matrix with `columns`, and
    quantized."""

    columns: int
    source: str
    ending: Ending
    strided: bool = False


@functools.lru_cache(maxsize=256)
def gather(what: Gather, target: str) -> Runnable:
    """(x [N, columns], rows [M]; amax where there is one) -> codes, scales, and amaxes of rows
    where they are computed."""
    return compile_text(gather_text(what), target)


def gather_text(what: Gather) -> str:
    """The program of gathered rows as MLIR text."""
    text = Text(what.columns, what.source, what.strided)
    x = text.argument("x", text.matrix(what.source), rows="N")
    rows = text.argument("rows", "tensor<?xi64>", "#row")
    amax = amax_argument(text, what.ending)
    text.lines.append("  %c0 = arith.constant 0 : index")
    end(text, what.ending, text.gather("gathered", x, rows), amax)
    return text.text("gather")


@dataclasses.dataclass(frozen=True)
class Sum:
    """The facts that decide the program of weighted sums of `count` rows of a matrix."""

    columns: int
    source: str
    count: int
    strided: bool = False


@functools.lru_cache(maxsize=256)
def weighted_sum(what: Sum, target: str) -> Runnable:
    """(y [N, columns], weights [T, count], `count` vectors of row numbers [T]) -> [T, columns]."""
    return compile_text(sum_text(what), target)


def sum_text(what: Sum) -> str:
    """The program of weighted sums as MLIR text."""
    text = Text(what.columns, what.source, what.strided)
    y = text.argument("y", text.matrix(what.source), rows="N")
    weights = text.argument("weights", f"tensor<?x{what.count}xf32>", "#weights")
    rows = [text.argument(f"rows{number}", "tensor<?xi64>", "#row")
            for number in range(what.count)]
    text.begin(weights)
    inputs, body, last = [], "", ""
    for number, vector in enumerate(rows):
        # A map of a kernel has no constant column, and none of the columns is `columns`.
        place = _map("i", f"j floordiv {what.columns} + {number}")
        inputs += [text.gather(f"v{number}", y, vector),
                   dataclasses.replace(weights, alias=f"w{number}", map=place)]
        body += f"    %p{number} = arith.mulf %v{number}.f, %w{number}.f : f32\n"
        if number:
            body += f"    %s{number} = arith.addf {last}, %p{number} : f32\n"
        last = f"%s{number}" if number else "%p0"
    combined = text.elements("sum", inputs, body, last, what.source)
    text.result(combined.name, combined.type)
    return text.text("weighted_sum")
