"""The programs behind norms of rows and gates: one kernel computes the elements and quantizes them.

A row has one order of its sum (docs/reference/semantics.md, row reductions).
"""

from __future__ import annotations

import dataclasses
import functools

from .expert_programs import ACTIVATIONS
from .programs import Runnable, compile_text
from .row_programs import (
    ALONE,
    Ending,
    Tensor,
    Text,
    amax_argument,
    constant,
    end,
    rng_argument,
)


@dataclasses.dataclass(frozen=True)
class Norm:
    """The facts that decide the program of a norm.

    Attributes:
        columns, source: of the input, [M, columns], and its element type, also that of the result.
        kind: "rms" or "layer".
        weight, bias: their element types, "" without one.
        offset: is added to the weight; None adds nothing.
        residual: "rounded": the norm is one of x + residual rounded to the source; "exact": of the
            sum in f32; "" without one. The rounded sum is a result.
        before: x is normed itself before it is added, by the rules of this norm and a weight of its
            own, and rounded to the source (Gemma).
        is_normed_rounded: the normed value is rounded to the source before the weight.
        is_factor_first: the value is multiplied by 1 / rms * weight, a number in f32.
        elements: the type to which the elements are rounded; "" is the source.
        strided: rows of the inputs have gaps between them.
        parts: float32 matrices whose sum is x: they are added in their order, and the sum is
            rounded to the source. None where x itself is given.
    """

    columns: int
    source: str
    kind: str
    eps: float
    weight: str = ""
    bias: str = ""
    offset: float | None = None
    residual: str = ""
    before: bool = False
    is_normed_rounded: bool = False
    is_factor_first: bool = False
    elements: str = ""
    ending: Ending = ALONE
    strided: bool = False
    parts: int | None = None


@functools.lru_cache(maxsize=256)
def norm(what: Norm, target: str) -> Runnable:
    """(x [M, columns] or its parts; residual, the weight of x, weight, bias, amax and rng where
    there are any) -> codes, scales and amaxes of rows where there are any; the elements where they
    are kept; x + residual where there is one."""
    return compile_text(norm_text(what), target)


def norm_text(what: Norm) -> str:
    """The program of a norm as MLIR text."""
    text = Text(what.columns, what.source, what.strided)
    parts = [text.argument(f"p{number}", text.matrix("f32")) for number in range(what.parts or 0)]
    x = parts[0] if parts else text.argument("x", text.matrix(what.source))
    residual = text.argument("r", text.matrix(what.source)) if what.residual else None
    given = (("wx", what.weight if what.before else ""), ("w", what.weight), ("b", what.bias))
    vectors = {name: text.argument(name, f"tensor<{what.columns}x{element}>", "#column")
               for name, element in given if element}
    scales = [vector for name, vector in vectors.items() if name != "wx"]
    amax = amax_argument(text, what.ending)
    rng_argument(text, what.ending)
    text.begin(x)
    if parts:
        x = _sum_of(text, parts, what.source)
    if what.before:
        x = _before(text, what, x, vectors["wx"])
    h = x
    if residual is not None:
        body = "    %h.sum = arith.addf %x.f, %r.f : f32\n"
        if what.residual == "exact":
            h = text.elements("e", [x, residual], body, "%h.sum", "f32")
            text.elements("h", [h], "", "%e.f", what.source)
        else:
            h = text.elements("h", [x, residual], body, "%h.sum", what.source)
    y = normed(text, what, h, scales, "y")
    end(text, what.ending, y, amax)
    if residual is not None:
        text.result("h", text.matrix(what.source))
    return text.text(f"{what.kind}_norm")


def _sum_of(text: Text, parts: list[Tensor], element: str) -> Tensor:
    """The sum of matrices in their order, rounded once."""
    lines, last = "", f"%{parts[0].name}.f"
    for part in parts[1:]:
        lines += f"    %to.{part.name} = arith.addf {last}, %{part.name}.f : f32\n"
        last = f"%to.{part.name}"
    return text.elements("x", parts, lines, last, element)


def _before(text: Text, what: Norm, x: Tensor, weight: Tensor) -> Tensor:
    """The elements of the norm of x with a weight of its own, in the place of x."""
    inner = dataclasses.replace(what, bias="", elements="")
    scales = [dataclasses.replace(weight, alias="w")]
    found = normed(text, inner, x, scales, "before", prefix="before.")
    return dataclasses.replace(found, alias="x")


def normed(text: Text, what: Norm, h: Tensor, scales: list[Tensor], name: str,
           prefix: str = "") -> Tensor:
    """The elements of the norm of `h`, called `name`; the names of numbers of rows begin with
    `prefix`."""
    value, inputs, body = f"%{h.inner}.f", [h], ""
    if what.kind == "layer":
        inputs.append(mean_of(text, what, h))
        body, value = f"    %d = arith.subf {value}, %mean.f : f32\n", "%d"
    square = body + f"    %p = arith.mulf {value}, {value} : f32\n"
    rstd = rstd_of(text, what, inputs, square, prefix)
    if what.is_factor_first:
        lines, last = _weighted(what)[0].format("%rstd.f"), "%z"
        lines += f"    %z = arith.mulf {value}, %w.y : f32\n"
    else:
        lines, last = _scaled(what, value, scales)
    return text.elements(name, [*inputs, rstd, *scales], body + lines, last,
                         what.elements or what.source)


def _scaled(what: Norm, value: str, scales: list[Tensor]) -> tuple[str, str]:
    """Lines of (value * rstd) * weight + bias, and what the last one defines."""
    body, last = f"    %z = arith.mulf {value}, %rstd.f : f32\n", "%z"
    if what.is_normed_rounded and what.source != "f32":
        body += (f"    %t = arith.truncf %z : f32 to {what.source}\n"
                 f"    %u = arith.extf %t : {what.source} to f32\n")
        last = "%u"
    for scale, lines in zip(scales, _weighted(what)):
        body += lines.format(last)
        last = f"%{scale.inner}.y"
    return body, last


def mean_of(text: Text, what: Norm, h: Tensor) -> Tensor:
    """The mean of each row, as %mean.f."""
    total = text.reduce("total", [h], "", f"%{h.name}.f")
    body = constant("n", float(what.columns)) + "    %m = arith.divf %total.f, %n : f32\n"
    return text.numbers("mean", [total], body, "%m")


def rstd_of(text: Text, what: Norm, inputs: list[Tensor], square: str, prefix: str) -> Tensor:
    """1 / sqrt(the sum of what `square` computes as %p, over the columns, + eps), as %rstd.f."""
    squares = text.reduce(f"{prefix}squares", inputs, square, "%p")
    squares = dataclasses.replace(squares, alias="squares")
    found = text.numbers(f"{prefix}rstd", [squares], constant("n", float(what.columns)) +
                         constant("eps", what.eps) + """\
    %m = arith.divf %squares.f, %n : f32
    %s = arith.addf %m, %eps : f32
    %q = math.rsqrt %s : f32
""", "%q")
    return dataclasses.replace(found, alias="rstd")


def _weighted(what: Norm) -> list[str]:
    """Lines that multiply a value with the weight, and add the bias."""
    weight, product = "", "%w.f"
    if what.offset is not None:
        weight = constant("o", what.offset) + "    %w.o = arith.addf %w.f, %o : f32\n"
        product = "%w.o"
    lines = [weight + f"    %w.y = arith.mulf {{0}}, {product} : f32\n"] if what.weight else []
    return lines + (["    %b.y = arith.addf {0}, %b.f : f32\n"] if what.bias else [])


@dataclasses.dataclass(frozen=True)
class Gate:
    """The facts that decide the program of a gate, such as silu(gate) * up, of two matrices
    [M, columns], whose rows have gaps between them if they are strided."""

    columns: int
    source: str
    ending: Ending
    strided: bool = True
    activation: str = "silu"


@functools.lru_cache(maxsize=256)
def gate(what: Gate, target: str) -> Runnable:
    """(gate, up [M, columns]; amax and rng where there are any) -> codes, scales, and amaxes of
    rows where they are computed."""
    return compile_text(gate_text(what), target)


def gate_text(what: Gate) -> str:
    """The program of a gate as MLIR text."""
    text = Text(what.columns, what.source, what.strided)
    inputs = [text.argument(name, text.matrix(what.source)) for name in ("gate", "up")]
    amax = amax_argument(text, what.ending)
    rng_argument(text, what.ending)
    text.begin(inputs[0])
    body = ACTIVATIONS[what.activation].text()
    for name, value in (("%gate", "%gate.f"), ("%up", "%up.f"), ("%y ", "%v ")):
        body = body.replace(name, value)
    y = text.elements("y", inputs, body, "%v", what.source)
    end(text, what.ending, y, amax)
    return text.text("gate")
