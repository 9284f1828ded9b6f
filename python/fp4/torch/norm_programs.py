"""The programs behind norms of rows and gates: one kernel computes the elements and quantizes them.

The text has upstream operations, which the compiler makes one kernel by rows. The number of rows is
dynamic, and a row has one order of its sum (docs/reference/semantics.md, row reductions). Every
operation is in f32 and rounds to nearest.
"""

from __future__ import annotations

import dataclasses
import functools
import struct
from collections.abc import Sequence

from ..compiler import Compiled
from ..formats import find_format
from .expert_programs import ACTIVATIONS
from .programs import compile_text

_MAPS = """#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#one = affine_map<(i, j) -> ()>
#number = affine_map<(i) -> (i)>
#single = affine_map<(i) -> ()>
"""
_NUMBERS = "tensor<?xf32>"
#: The largest number of E4M3, and the least scale of vLLM's rows.
_MOST, _LEAST = 448.0, 1 / (448 * 512)


@dataclasses.dataclass(frozen=True)
class Ending:
    """The facts about the results for the elements.

    Attributes:
        format: a format of fp4.quantize, or "fp8_row" (one scale for each row); "" for the elements
            alone. Two forms belong to fp4.compat: "fp8_static" divides by one scale that is given,
            and "fp8_token" by vLLM's scale of each row.
        amax_rank: of the amax of the quantizer, or of the bound of scales of "fp8_token"; -1
            without one.
        computes_amax: each row has an amax, which is a result too, behind the scales.
        keeps: the elements are a result too.
    """

    format: str = ""
    recipe: str = ""
    layout: str = "linear"
    amax_rank: int = -1
    computes_amax: bool = False
    keeps: bool = False


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
        is_normed_rounded: the normed value is rounded to the source before the weight.
        elements: the type to which the elements are rounded; "" is the source.
        strided: rows of the inputs have gaps between them.
    """

    columns: int
    source: str
    kind: str
    eps: float
    weight: str = ""
    bias: str = ""
    offset: float | None = None
    residual: str = ""
    is_normed_rounded: bool = False
    elements: str = ""
    ending: Ending = Ending()
    strided: bool = False


@dataclasses.dataclass(frozen=True)
class _Tensor:
    """A value of the program. In a body its element is %NAME.e, and in f32 %NAME.f."""

    name: str
    type: str
    map: str = "#all"

    @property
    def element(self) -> str:
        return self.type.split("x")[-1].split("<")[-1].rstrip(">")


class _Text:
    """A function that is being written: arguments, lines, and results."""

    def __init__(self, columns: int, source: str, strided: bool) -> None:
        self.columns, self.source, self.strided = columns, source, strided
        self.arguments: list[str] = []
        self.lines: list[str] = []
        self.results: list[tuple[str, str]] = []

    def matrix(self, element: str) -> str:
        return f"tensor<?x{self.columns}x{element}>"

    def argument(self, name: str, type: str, map: str = "#all") -> _Tensor:
        attributes = f'fp4.name = "{name}"'
        if map != "#one" and type.startswith("tensor<?"):
            dims = '"M", ""' if type.count("x") > 1 else '"M"'
            attributes += f", fp4.dims = [{dims}]"
            if self.strided and map == "#all":
                attributes += ", fp4.strided"
        self.arguments.append(f"%{name}: {type} {{{attributes}}}")
        return _Tensor(name, type, map)

    def begin(self, whole: str) -> None:
        """Lines that others read: the number of rows, that of the input `whole`."""
        self.lines += ["  %c0 = arith.constant 0 : index",
                       f"  %rows = tensor.dim %{whole}, %c0 : {self.matrix(self.source)}",
                       "  %zero = arith.constant 0.0 : f32",
                       f"  %numbers = tensor.empty(%rows) : {_NUMBERS}",
                       f"  %init = linalg.fill ins(%zero : f32) outs(%numbers : {_NUMBERS}) "
                       f"-> {_NUMBERS}"]

    def elements(self, name: str, inputs: Sequence[_Tensor], body: str, last: str,
                 element: str) -> _Tensor:
        """A matrix whose elements the `body` computes as the f32 value `last`."""
        type = self.matrix(element)
        self.lines.append(f"  %{name}.empty = tensor.empty(%rows) : {type}")
        lines = body + ("" if element == "f32" else
                        f"    %{name}.round = arith.truncf {last} : f32 to {element}\n")
        self._generic(name, inputs, f"%{name}.empty", lines,
                      last if element == "f32" else f"%{name}.round", _Tensor(name, type),
                      ["parallel", "parallel"])
        return _Tensor(name, type)

    def numbers(self, name: str, inputs: Sequence[_Tensor], body: str, last: str) -> _Tensor:
        """A number for each row, of other numbers."""
        place = {"#row": "#number", "#one": "#single"}
        self._generic(name, [dataclasses.replace(value, map=place[value.map]) for value in inputs],
                      "%numbers", body, last, _Tensor(name, _NUMBERS, "#number"), ["parallel"])
        return _Tensor(name, _NUMBERS, "#row")

    def reduce(self, name: str, inputs: Sequence[_Tensor], body: str, last: str,
               combine: str = "addf") -> _Tensor:
        """A number for each row, combined from 0.0 on of what the `body` computes."""
        lines = f"{body}    %{name}.next = arith.{combine} %{name}.out, {last} : f32\n"
        self._generic(name, inputs, "%init", lines, f"%{name}.next",
                      _Tensor(name, _NUMBERS, "#row"), ["parallel", "reduction"])
        return _Tensor(name, _NUMBERS, "#row")

    def _generic(self, name: str, inputs: Sequence[_Tensor], place: str, body: str, last: str,
                 result: _Tensor, loops: Sequence[str]) -> None:
        maps = ", ".join(value.map for value in (*inputs, result))
        names = ", ".join(f"%{value.name}" for value in inputs)
        arguments = ", ".join(f"%{value.name}.{'f' if value.element == 'f32' else 'e'}: "
                              f"{value.element}" for value in inputs)
        wide = "".join(_widened(value) for value in inputs)
        kinds = ", ".join(f'"{loop}"' for loop in loops)
        self.lines.append(f"""  %{name} = linalg.generic {{
      indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins({names} : {', '.join(value.type for value in inputs)}) outs({place} : {result.type}) {{
  ^bb0({arguments}, %{name}.out: {result.element}):
{wide}{body}    linalg.yield {last} : {result.element}
  }} -> {result.type}""")

    def result(self, name: str, type: str) -> None:
        self.results.append((name, type))

    def text(self, name: str) -> str:
        types = ", ".join(f'{type} {{fp4.name = "{name}"}}' for name, type in self.results)
        arguments = ",\n    ".join(self.arguments)
        lines = "\n".join(self.lines)
        return (f"{_MAPS}func.func @{name}(\n    {arguments})\n    -> ({types}) {{\n{lines}\n"
                f"  return {', '.join(f'%{name}' for name, _ in self.results)} : "
                f"{', '.join(type for _, type in self.results)}\n}}\n")


def _widened(value: _Tensor) -> str:
    if value.element == "f32":
        return ""
    return f"    %{value.name}.f = arith.extf %{value.name}.e : {value.element} to f32\n"


def _constant(name: str, value: float) -> str:
    """A constant of f32, by its bits: decimal digits would be rounded a second time."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return f"    %{name} = arith.constant 0x{bits:08X} : f32\n"


@functools.lru_cache(maxsize=256)
def norm(what: Norm, target: str) -> Compiled:
    """(x [M, columns]; residual, weight, bias and amax where there are any) -> codes, scales and
    amaxes of rows where there are any; the elements where they are kept; x + residual where there
    is one."""
    return compile_text(norm_text(what), target)


def norm_text(what: Norm) -> str:
    """The program of a norm as MLIR text."""
    text = _Text(what.columns, what.source, what.strided)
    x = text.argument("x", text.matrix(what.source))
    residual = text.argument("r", x.type) if what.residual else None
    scales = [text.argument(name, f"tensor<{what.columns}x{element}>", "#column")
              for name, element in (("w", what.weight), ("b", what.bias)) if element]
    amax = _amax(text, what.ending)
    text.begin("x")
    h = x
    if residual is not None:
        body = "    %h.sum = arith.addf %x.f, %r.f : f32\n"
        if what.residual == "exact":
            h = text.elements("e", [x, residual], body, "%h.sum", "f32")
            text.elements("h", [h], "", "%e.f", what.source)
        else:
            h = text.elements("h", [x, residual], body, "%h.sum", what.source)
    y = _normed(text, what, h, scales)
    _end(text, what.ending, y, amax)
    if residual is not None:
        text.result("h", x.type)
    return text.text(f"{what.kind}_norm")


def _normed(text: _Text, what: Norm, h: _Tensor, scales: list[_Tensor]) -> _Tensor:
    """The elements of the norm of `h`."""
    value, inputs, body = f"%{h.name}.f", [h], ""
    if what.kind == "layer":
        inputs.append(_mean(text, what, h))
        body, value = f"    %d = arith.subf {value}, %mean.f : f32\n", "%d"
    rstd = _rstd(text, what, inputs, body + f"    %p = arith.mulf {value}, {value} : f32\n")
    body += f"    %z = arith.mulf {value}, %rstd.f : f32\n"
    last = "%z"
    if what.is_normed_rounded and what.source != "f32":
        body += (f"    %t = arith.truncf %z : f32 to {what.source}\n"
                 f"    %u = arith.extf %t : {what.source} to f32\n")
        last = "%u"
    for scale, lines in zip(scales, _weighted(what)):
        body += lines.format(last)
        last = f"%{scale.name}.y"
    return text.elements("y", [*inputs, rstd, *scales], body, last, what.elements or what.source)


def _mean(text: _Text, what: Norm, h: _Tensor) -> _Tensor:
    total = text.reduce("total", [h], "", f"%{h.name}.f")
    body = _constant("n", float(what.columns)) + "    %m = arith.divf %total.f, %n : f32\n"
    return text.numbers("mean", [total], body, "%m")


def _rstd(text: _Text, what: Norm, inputs: list[_Tensor], square: str) -> _Tensor:
    """1 / sqrt(the sum of what `square` computes as %p, over the columns, + eps)."""
    squares = text.reduce("squares", inputs, square, "%p")
    return text.numbers("rstd", [squares], _constant("n", float(what.columns)) +
                        _constant("eps", what.eps) + """\
    %m = arith.divf %squares.f, %n : f32
    %s = arith.addf %m, %eps : f32
    %q = math.rsqrt %s : f32
""", "%q")


def _weighted(what: Norm) -> list[str]:
    """Lines that multiply a value with the weight, and add the bias."""
    weight, product = "", "%w.f"
    if what.offset is not None:
        weight = _constant("o", what.offset) + "    %w.o = arith.addf %w.f, %o : f32\n"
        product = "%w.o"
    lines = [weight + f"    %w.y = arith.mulf {{0}}, {product} : f32\n"] if what.weight else []
    return lines + (["    %b.y = arith.addf {0}, %b.f : f32\n"] if what.bias else [])


def _amax(text: _Text, ending: Ending) -> _Tensor | None:
    if ending.amax_rank < 0:
        return None
    return text.argument("amax", _NUMBERS if ending.amax_rank else "tensor<f32>",
                         "#row" if ending.amax_rank else "#one")


def _end(text: _Text, ending: Ending, y: _Tensor, amax: _Tensor | None) -> None:
    """The results for the elements `y`."""
    if ending.format in ("fp8_static", "fp8_token"):
        _divide(text, ending, y, amax)
    elif ending.format:
        _quantize(text, ending, y, amax)
    if ending.keeps or not ending.format:
        text.result("y", y.type)


def _quantize(text: _Text, ending: Ending, y: _Tensor, amax: _Tensor | None) -> None:
    is_row = ending.format == "fp8_row"
    format = "fp8_block128" if is_row else ending.format
    facts, columns = find_format(format), text.columns
    blocks = 1 if is_row else -(-columns // facts.block)
    tiled = "" if ending.layout == "linear" else f", #fp4.scale_layout<{ending.layout}>"
    codes, scales = text.matrix(facts.data), f"tensor<?x{blocks}x{facts.scales}{tiled}>"
    attributes = f"format = #fp4.format<{format}>, recipe = #fp4.recipe<{ending.recipe}>"
    if is_row:
        attributes += f", block = array<i64: 1, {columns}>"
    if ending.computes_amax:
        amax = _amax_of_rows(text, y)
    if amax and amax.map == "#row":
        attributes += ", per_row"
    given, types = (f" amax %{amax.name}", f", {amax.type}") if amax else ("", "")
    text.lines.append(f"  %q, %s = fp4.quantize %{y.name}{given} {{{attributes}}}\n"
                      f"      : ({y.type}{types}) -> ({codes}, {scales})")
    text.result("q", codes)
    text.result("s", scales)
    if ending.computes_amax:
        text.result("amax", _NUMBERS)


def _amax_of_rows(text: _Text, y: _Tensor) -> _Tensor:
    """The amax of each row, which the kernel of the quantizer computes and stores."""
    text.lines.append(f"  %amax = fp4.amax %{y.name} {{per_row}} : {y.type} -> {_NUMBERS}")
    return _Tensor("amax", _NUMBERS, "#row")


def _divide(text: _Text, ending: Ending, y: _Tensor, given: _Tensor | None) -> None:
    """E4M3 of the elements times the reciprocal of the scale that is given, or divided by that of
    their row, the amax over 448; NaN becomes 448."""
    body = _constant("high", _MOST) + _constant("low", -_MOST)
    if ending.format == "fp8_static":
        scale = given
        body += _constant("unit", 1.0) + f"""\
    %i = arith.divf %unit, %amax.f : f32
    %k = arith.mulf %{y.name}.f, %i : f32
"""
    else:
        scale = _scale_of_token(text, y, given)
        body += f"    %k = arith.divf %{y.name}.f, %s.f : f32\n"
    body += """    %l = arith.minnumf %k, %high : f32
    %c = arith.maxnumf %l, %low : f32
"""
    assert scale is not None
    text.elements("q", [y, scale], body, "%c", "f8E4M3FN")
    text.result("q", text.matrix("f8E4M3FN"))
    if ending.format == "fp8_token":
        text.result("s", _NUMBERS)


def _scale_of_token(text: _Text, y: _Tensor, bound: _Tensor | None) -> _Tensor:
    most = text.reduce("most", [y], f"    %a = math.absf %{y.name}.f : f32\n", "%a", "maxnumf")
    body, value, inputs = _constant("range", _MOST) + _constant("least", _LEAST), "%most.f", [most]
    if bound is not None:
        body += "    %bounded = arith.minnumf %most.f, %amax.f : f32\n"
        value, inputs = "%bounded", [most, bound]
    body += f"""    %g = arith.divf {value}, %range : f32
    %v = arith.maxnumf %g, %least : f32
"""
    return text.numbers("s", inputs, body, "%v")


@dataclasses.dataclass(frozen=True)
class Gate:
    """The facts that decide the program of a gate, silu(gate) * up of two matrices [M, columns],
    whose rows have gaps between them if they are strided."""

    columns: int
    source: str
    ending: Ending
    strided: bool = True


@functools.lru_cache(maxsize=256)
def gate(what: Gate, target: str) -> Compiled:
    """(gate, up [M, columns]; amax where there is one) -> codes, scales, and amaxes of rows
    where they are computed."""
    return compile_text(gate_text(what), target)


def gate_text(what: Gate) -> str:
    """The program of a gate as MLIR text."""
    text = _Text(what.columns, what.source, what.strided)
    inputs = [text.argument(name, text.matrix(what.source)) for name in ("g", "u")]
    amax = _amax(text, what.ending)
    text.begin("g")
    body = ACTIVATIONS["silu"].text()
    for name, value in (("%gate", "%g.f"), ("%up", "%u.f"), ("%y ", "%v ")):
        body = body.replace(name, value)
    y = text.elements("y", inputs, body, "%v", what.source)
    _end(text, what.ending, y, amax)
    return text.text("gate")
