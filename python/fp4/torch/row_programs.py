"""Text of programs by rows, and the results of their elements: what norms and rotations share.

A program has upstream operations, which the compiler makes one kernel by rows. The number of rows
is dynamic. Every operation is in f32 and rounds to nearest.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Sequence

from ..formats import find_format

_MAPS = """#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#one = affine_map<(i, j) -> ()>
#number = affine_map<(i) -> (i)>
#single = affine_map<(i) -> ()>
"""
NUMBERS = "tensor<?xf32>"
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
        stochastic: codes of 4 bits are rounded by random words, of the seed and offset that are the
            last argument.
    """

    format: str = ""
    recipe: str = ""
    layout: str = "linear"
    amax_rank: int = -1
    computes_amax: bool = False
    keeps: bool = False
    stochastic: bool = False


#: The elements alone.
ALONE = Ending()


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A value of the program. In a body its element is %NAME.e, and in f32, unless it is i32,
    %NAME.f, or with `alias` %ALIAS.f: one operation reads the value at several places."""

    name: str
    type: str
    map: str = "#all"
    alias: str = ""

    @property
    def inner(self) -> str:
        return self.alias or self.name

    @property
    def element(self) -> str:
        return self.type.split("x")[-1].split("<")[-1].rstrip(">")


class Text:
    """A function that is being written: arguments, lines, and results."""

    def __init__(self, columns: int, source: str, strided: bool) -> None:
        self.columns, self.source, self.strided = columns, source, strided
        self.arguments: list[str] = []
        self.lines: list[str] = []
        self.results: list[tuple[str, str]] = []

    def matrix(self, element: str) -> str:
        return f"tensor<?x{self.columns}x{element}>"

    def argument(self, name: str, type: str, map: str = "#all", rows: str = "M") -> Tensor:
        """An argument; a dynamic first dimension is called `rows`."""
        attributes = f'fp4.name = "{name}"'
        if map != "#one" and type.startswith("tensor<?"):
            dims = ", ".join([f'"{rows}"'] + ['""'] * (type.count("x") - 1))
            attributes += f", fp4.dims = [{dims}]"
            if self.strided and map == "#all":
                attributes += ", fp4.strided"
        self.arguments.append(f"%{name}: {type} {{{attributes}}}")
        return Tensor(name, type, map)

    def begin(self, whole: Tensor, times: int = 1) -> None:
        """Lines that others read: the number of rows, `times` that of `whole`."""
        self.lines += ["  %c0 = arith.constant 0 : index",
                       f"  %times = arith.constant {times} : index",
                       f"  %given = tensor.dim %{whole.name}, %c0 : {whole.type}",
                       "  %height = arith.muli %given, %times : index",
                       "  %zero = arith.constant 0.0 : f32",
                       f"  %numbers = tensor.empty(%height) : {NUMBERS}",
                       f"  %init = linalg.fill ins(%zero : f32) outs(%numbers : {NUMBERS}) "
                       f"-> {NUMBERS}"]

    def elements(self, name: str, inputs: Sequence[Tensor], body: str, last: str,
                 element: str) -> Tensor:
        """A matrix whose elements the `body` computes as the f32 value `last`."""
        type = self.matrix(element)
        self.lines.append(f"  %{name}.empty = tensor.empty(%height) : {type}")
        lines = body + ("" if element == "f32" else
                        f"    %{name}.round = arith.truncf {last} : f32 to {element}\n")
        self._generic(name, inputs, f"%{name}.empty", lines,
                      last if element == "f32" else f"%{name}.round", Tensor(name, type),
                      ["parallel", "parallel"])
        return Tensor(name, type)

    def numbers(self, name: str, inputs: Sequence[Tensor], body: str, last: str) -> Tensor:
        """A number for each row, of other numbers."""
        place = {"#row": "#number", "#one": "#single"}
        self._generic(name, [dataclasses.replace(value, map=place[value.map]) for value in inputs],
                      "%numbers", body, last, Tensor(name, NUMBERS, "#number"), ["parallel"])
        return Tensor(name, NUMBERS, "#row")

    def reduce(self, name: str, inputs: Sequence[Tensor], body: str, last: str,
               combine: str = "addf", initial: float = 0.0) -> Tensor:
        """A number for each row, combined from `initial` on of what the `body` computes."""
        lines = f"{body}    %{name}.next = arith.{combine} %{name}.out, {last} : f32\n"
        place = "%init"
        if initial:
            place = f"%{name}.init"
            self.lines += [constant(f"{name}.initial", initial).strip("\n"),
                           f"  {place} = linalg.fill ins(%{name}.initial : f32) "
                           f"outs(%numbers : {NUMBERS}) -> {NUMBERS}"]
        self._generic(name, inputs, place, lines, f"%{name}.next",
                      Tensor(name, NUMBERS, "#row"), ["parallel", "reduction"])
        return Tensor(name, NUMBERS, "#row")

    def _generic(self, name: str, inputs: Sequence[Tensor], place: str, body: str, last: str,
                 result: Tensor, loops: Sequence[str]) -> None:
        maps = ", ".join(value.map for value in (*inputs, result))
        names = ", ".join(f"%{value.name}" for value in inputs)
        kinds = ", ".join(f'"{loop}"' for loop in loops)
        self.lines.append(f"""  %{name} = linalg.generic {{
      indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins({names} : {', '.join(value.type for value in inputs)}) outs({place} : {result.type}) {{
  ^bb0({self.inner(inputs)}, %{name}.out: {result.element}):
{self.widened(inputs)}{body}    linalg.yield {last} : {result.element}
  }} -> {result.type}""")

    @staticmethod
    def inner(inputs: Sequence[Tensor]) -> str:
        """The arguments of a body for these inputs."""
        return ", ".join(f"%{value.inner}.{'f' if value.element == 'f32' else 'e'}: "
                         f"{value.element}" for value in inputs)

    @staticmethod
    def widened(inputs: Sequence[Tensor]) -> str:
        """Lines that make f32 of the elements of the inputs."""
        return "".join(_widened(value) for value in inputs)

    def gather(self, name: str, source: Tensor, rows: Tensor) -> Tensor:
        """The rows of `source` that a vector of numbers names."""
        type = f"tensor<?x{source.type.split('x', 1)[1]}"
        self.lines.append(f"""  %{name}.size = tensor.dim %{rows.name}, %c0 : {rows.type}
  %{name}.rows = tensor.expand_shape %{rows.name} [[0, 1]] output_shape [%{name}.size, 1]
      : {rows.type} into tensor<?x1xi64>
  %{name} = tensor.gather %{source.name}[%{name}.rows] gather_dims([0])
      : ({source.type}, tensor<?x1xi64>) -> {type}""")
        return Tensor(name, type)

    def scatter(self, name: str, source: Tensor, rows: Tensor, count: int) -> Tensor:
        """A matrix of `count` rows, which a caller gives as `out`: row rows[i] is row i of
        `source`, negative numbers are skipped, and the others stay as they are."""
        type = f"tensor<{count}x{source.type.split('x', 1)[1]}"
        self.lines.append(f"""  %{name}.size = tensor.dim %{rows.name}, %c0 : {rows.type}
  %{name}.rows = tensor.expand_shape %{rows.name} [[0, 1]] output_shape [%{name}.size, 1]
      : {rows.type} into tensor<?x1xi64>
  %{name}.empty = tensor.empty() : {type}
  %{name} = tensor.scatter %{source.name} into %{name}.empty[%{name}.rows] scatter_dims([0]) unique
      : ({source.type}, {type}, tensor<?x1xi64>) -> {type}""")
        return Tensor(name, type)

    def result(self, name: str, type: str) -> None:
        self.results.append((name, type))

    def text(self, name: str) -> str:
        types = ", ".join(f'{type} {{fp4.name = "{name}"}}' for name, type in self.results)
        arguments = ",\n    ".join(self.arguments)
        lines = "\n".join(self.lines)
        return (f"{_MAPS}func.func @{name}(\n    {arguments})\n    -> ({types}) {{\n{lines}\n"
                f"  return {', '.join(f'%{name}' for name, _ in self.results)} : "
                f"{', '.join(type for _, type in self.results)}\n}}\n")


def _widened(value: Tensor) -> str:
    if value.element in ("f32", "i32"):
        return ""
    return f"    %{value.inner}.f = arith.extf %{value.inner}.e : {value.element} to f32\n"


def constant(name: str, value: float) -> str:
    """A constant of f32, by its bits: decimal digits would be rounded a second time."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return f"    %{name} = arith.constant 0x{bits:08X} : f32\n"


def amax_argument(text: Text, ending: Ending) -> Tensor | None:
    """The amax that the ending takes, or none."""
    if ending.amax_rank < 0:
        return None
    return text.argument("amax", NUMBERS if ending.amax_rank else "tensor<f32>",
                         "#row" if ending.amax_rank else "#one")


def rng_argument(text: Text, ending: Ending) -> None:
    """The seed and the offset that the ending takes, if it rounds stochastically."""
    if ending.stochastic:
        text.argument("rng", "tensor<2xi64>", "#one")


def end(text: Text, ending: Ending, y: Tensor, amax: Tensor | None) -> None:
    """The results for the elements `y`."""
    if ending.format in ("fp8_static", "fp8_token"):
        _divide(text, ending, y, amax)
    elif ending.format:
        _quantize(text, ending, y, amax)
    if ending.keeps or not ending.format:
        text.result(y.name, y.type)


def _quantize(text: Text, ending: Ending, y: Tensor, amax: Tensor | None) -> None:
    if ending.computes_amax:
        amax = _amax_of_rows(text, y)
    for value in quantized(text, ending, y, amax):
        text.result(value.name, value.type)
    if ending.computes_amax:
        text.result("amax", NUMBERS)


def quantized(text: Text, ending: Ending, y: Tensor, amax: Tensor | None,
              prefix: str = "") -> tuple[Tensor, Tensor]:
    """The codes and scales of `y`, whose names begin with `prefix`."""
    is_row = ending.format == "fp8_row"
    format = "fp8_block128" if is_row else ending.format
    facts, columns = find_format(format), text.columns
    blocks = 1 if is_row else -(-columns // facts.block)
    tiled = "" if ending.layout == "linear" else f", #fp4.scale_layout<{ending.layout}>"
    codes, scales = text.matrix(facts.data), f"tensor<?x{blocks}x{facts.scales}{tiled}>"
    attributes = f"format = #fp4.format<{format}>, recipe = #fp4.recipe<{ending.recipe}>"
    if is_row:
        attributes += f", block = array<i64: 1, {columns}>"
    if amax and amax.map == "#row":
        attributes += ", per_row"
    given, types = (f" amax %{amax.name}", f", {amax.type}") if amax else ("", "")
    if ending.stochastic:
        given, types = f"{given} rng %rng", f"{types}, tensor<2xi64>"
        attributes += ", rounding = #fp4.rounding<stochastic>"
    text.lines.append(f"  %{prefix}q, %{prefix}s = fp4.quantize %{y.name}{given} {{{attributes}}}\n"
                      f"      : ({y.type}{types}) -> ({codes}, {scales})")
    return Tensor(f"{prefix}q", codes), Tensor(f"{prefix}s", scales)


def _amax_of_rows(text: Text, y: Tensor) -> Tensor:
    """The amax of each row, which the kernel of the quantizer computes and stores."""
    text.lines.append(f"  %amax = fp4.amax %{y.name} {{per_row}} : {y.type} -> {NUMBERS}")
    return Tensor("amax", NUMBERS, "#row")


def _divide(text: Text, ending: Ending, y: Tensor, given: Tensor | None) -> None:
    """E4M3 of the elements times the reciprocal of the scale that is given, or divided by that of
    their row, the amax over 448; NaN becomes 448."""
    body = constant("high", _MOST) + constant("low", -_MOST)
    if ending.format == "fp8_static":
        scale = given
        body += constant("unit", 1.0) + f"""\
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
        text.result("s", NUMBERS)


def _scale_of_token(text: Text, y: Tensor, bound: Tensor | None) -> Tensor:
    most = text.reduce("most", [y], f"    %a = math.absf %{y.name}.f : f32\n", "%a", "maxnumf")
    body, value, inputs = constant("range", _MOST) + constant("least", _LEAST), "%most.f", [most]
    if bound is not None:
        body += "    %bounded = arith.minnumf %most.f, %amax.f : f32\n"
        value, inputs = "%bounded", [most, bound]
    body += f"""    %g = arith.divf {value}, %range : f32
    %v = arith.maxnumf %g, %least : f32
"""
    return text.numbers("s", inputs, body, "%v")
