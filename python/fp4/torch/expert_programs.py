"""The programs behind the experts of a mixture, grouped matmuls of prepacked weights and
activations of 16 bits, or of E4M3 with a scale for each row, which the program makes of them; with
the gate of each expert and its biases (docs/reference/semantics.md).

A layer has one program for any number of rows. Only the device knows to which expert a row belongs.
"""

from __future__ import annotations

import dataclasses
import functools
import math

from ..errors import UsageError
from . import weight_programs
from .programs import Runnable


@dataclasses.dataclass(frozen=True)
class Gate:
    """The gated activation of an expert: y = g * sigmoid(slope * (g + cubic * g^3)) * (u + shift),
    where g and u are the limited sums of the gate and of the up projection.

    Attributes:
        limit: g is at most as large, and u in magnitude; None without one.
    """

    slope: float
    shift: float
    limit: float | None
    cubic: float = 0.0

    def text(self) -> str:
        """The operations that make %y of %gate and %up."""
        lines = "    %one = arith.constant 1.0 : f32\n"
        gate, up = "%gate", "%up"
        if self.limit is not None:
            lines += f"""    %limit = arith.constant {self.limit:.9e} : f32
    %least = arith.constant {-self.limit:.9e} : f32
    %g = arith.minimumf %gate, %limit : f32
    %under = arith.minimumf %up, %limit : f32
    %u = arith.maximumf %under, %least : f32
"""
            gate, up = "%g", "%u"
        inner = gate
        if self.cubic:
            lines += f"""    %cubic = arith.constant {self.cubic:.9e} : f32
    %square = arith.mulf {gate}, {gate} : f32
    %part = arith.mulf %square, %cubic : f32
    %factor = arith.addf %part, %one : f32
    %inner = arith.mulf {gate}, %factor : f32
"""
            inner = "%inner"
        if self.slope == 1.0:
            lines += f"    %scaled = arith.negf {inner} : f32\n"
        else:
            lines += f"""    %slope = arith.constant {-self.slope:.9e} : f32
    %scaled = arith.mulf {inner}, %slope : f32
"""
        lines += f"""    %exp = math.exp %scaled : f32
    %below = arith.addf %exp, %one : f32
    %glu = arith.divf {gate}, %below : f32
"""
        if self.shift:
            lines += f"""    %shift = arith.constant {self.shift:.9e} : f32
    %more = arith.addf {up}, %shift : f32
"""
            up = "%more"
        return lines + f"    %y = arith.mulf %glu, {up} : f32\n"


#: The activations of gated layers, with the numbers that they have where a layer gives none. GELU
#: by tanh is a sigmoid: (1 + tanh(z)) / 2 = sigmoid(2z), and 2z = sqrt(8 / pi) (g + 0.044715 g^3).
ACTIVATIONS = {"silu": Gate(1.0, 0.0, None), "gpt_oss": Gate(1.702, 1.0, 7.0),
               "gelu_tanh": Gate(math.sqrt(8 / math.pi), 0.0, None, 0.044715)}


#: The format of weights of E4M3, and rows and columns of its blocks.
FP8, FP8_BLOCK = "fp8_block128", 128


@dataclasses.dataclass(frozen=True)
class Product:
    """The facts that decide the program of a matmul of activations and the weights of several
    experts.

    Attributes:
        experts: the number of experts.
        n, k: rows and columns of the weights of each, the columns in whole scale blocks.
        element: of the activations, "bf16" or "f16".
        format: of the weights; with "fp8_block128" E4M3 with float32 scales for 128 x 128, whose
            activations have one for 128 columns.
        quantizes: rows of activations become E4M3 with a scale each before they are multiplied,
            beside "mxfp4", or with those of "fp8_block128".
        has_scale: each expert has a scale of its weights.
        has_ranges: offsets are the first row and the end of each expert, and not those of all.
        bias: element of its bias, or "" without one.
        gate: of a gated matmul; None of one matmul.
        gate_bias: element of the bias of the gate, or "" without one.
        result: element of the result.
    """

    experts: int
    n: int
    k: int
    element: str
    format: str
    has_scale: bool
    has_ranges: bool = False
    bias: str = ""
    gate: Gate | None = None
    gate_bias: str = ""
    result: str = "bf16"
    quantizes: bool = False

    @property
    def is_fp8(self) -> bool:
        return self.format == FP8

    @property
    def tile_bytes(self) -> int:
        return (weight_programs.BYTE_TILE if self.quantizes else
                weight_programs.tile_bytes(self.format))


#: The targets with grouped matmuls of E4M3 and MXFP4 that have gates.
BYTE_TARGETS = ("sm_90a", "sm_120a", "sm_121a")


def check_target(what: Product, target: str) -> None:
    """A UsageError where no matmul of such experts runs."""
    weight_programs.check_target(target)
    name = target.partition("/")[0]
    if what.quantizes and not what.is_fp8 and name not in BYTE_TARGETS:
        raise UsageError(f"experts with activations of E4M3 must run on one of "
                         f"{', '.join(BYTE_TARGETS)}, but the device has {name}",
                         "leave out w4a8: experts with 16-bit activations run on it")


@functools.lru_cache(maxsize=1024)
def product(what: Product, target: str) -> Runnable:
    """(x [M, k], whose rows may have gaps between them; offsets [experts + 1] or [experts, 2];
    operands(what)) -> [M, n], of which rows of no expert are zero. Arguments that the matmul does
    not have are left out."""
    check_target(what, target)
    offsets = f"{what.experts}x2" if what.has_ranges else f"{what.experts + 1}"
    given = {"x": f"tensor<?x{what.k}x{what.element}>", "offsets": f"tensor<{offsets}xi64>",
             **operands(what)}
    y = f"tensor<?x{what.n}x{what.result}>"
    arguments = ",\n    ".join(
        f'%{name}: {kind} {{fp4.name = "{name}"'
        + (', fp4.dims = ["M", ""], fp4.strided}' if name == "x" else "}")
        for name, kind in given.items())
    return weight_programs.compile_program(f"""func.func @experts(
    {arguments})
    -> ({y} {{fp4.name = "y"}}) {{
{matmul(what, "result", "x")}
  return %result : {y}
}}
""", target)


def operands(what: Product, prefix: str = "") -> dict[str, str]:
    """The types of what belongs to the experts, by the names of arguments in the order of a call:
    packed weights, alpha [experts] and bias [experts, 1, n]; then those of the gate. Weights of FP8
    have the rows of the gate of an expert before those of its up projection, and their scales."""
    if what.is_fp8:
        rows, columns = what.experts * what.n * (1 + (what.gate is not None)), what.k
        return {f"{prefix}packed": f"tensor<{rows}x{columns}xf8E4M3FN>",
                f"{prefix}alpha": f"tensor<{rows // FP8_BLOCK}x{columns // FP8_BLOCK}xf32>"}
    packed = weight_programs.tiles_type(what.n, what.k, what.tile_bytes, what.experts)
    given = {}
    for part, is_there, bias in (("", True, what.bias),
                                 ("gate_", what.gate is not None, what.gate_bias)):
        if not is_there:
            continue
        given[f"{prefix}{part}packed"] = packed
        if what.has_scale:
            given[f"{prefix}{part}alpha"] = f"tensor<{what.experts}xf32>"
        if bias:
            given[f"{prefix}{part}bias"] = f"tensor<{what.experts}x1x{what.n}x{bias}>"
    return given


def matmul(what: Product, result: str, x: str, prefix: str = "", work: str = "") -> str:
    """The operations that make %result of the rows %x, of %offsets and of operands(what, prefix).
    `work` is the text of its #fp4.work."""
    if what.is_fp8:
        return _matmul_of_fp8(what, result, x, prefix, work)
    offsets = f"{what.experts}x2" if what.has_ranges else f"{what.experts + 1}"
    types = {"x": f"tensor<?x{what.k}x{what.element}>", "offsets": f"tensor<{offsets}xi64>",
             **operands(what)}
    names, lines = {name: f"{prefix}{name}" for name in types}, ""
    if what.quantizes:
        lines = _quantize(result, x, types["x"], what.k)
        x, types["x"] = f"{result}_codes", f"tensor<?x{what.k}xf8E4M3FN>"
        for name in ("alpha", "gate_alpha")[:1 + (what.gate is not None)]:
            names[name], types[name] = f"{result}_scales", "tensor<?x1xf32>"

    def clause(word: str, name: str) -> str:
        return f" {word} %{names[name]}" if name in types else ""

    order = [name for name in ("x", "packed", "gate_packed", "alpha", "gate_alpha", "offsets",
                               "bias", "gate_bias") if name in types]
    given = (f"%{x}, %{prefix}packed" + clause("with", "gate_packed") + clause("alpha", "alpha") +
             clause("alpha2", "gate_alpha") + " offsets %offsets")
    attributes = f"{{work = #fp4.work<{work}>}}" if work else ""
    return (f"{lines}  %{result} = fp4.matmul {given} {_body(what, prefix)}{attributes}\n"
            f"      : ({', '.join(types[name] for name in order)}) -> "
            f"tensor<?x{what.n}x{what.result}>")


def _matmul_of_fp8(what: Product, result: str, x: str, prefix: str, work: str) -> str:
    """The operations of `matmul` for weights of FP8: the sums of gates and of up projections are
    rounded to `result`, and another kernel activates them."""
    blocks, sums = what.k // FP8_BLOCK, what.n * (1 + (what.gate is not None))
    packed, scales = operands(what, prefix).values()
    codes = (f"tensor<?x{what.k}xf8E4M3FN>", f"tensor<?x{blocks}xf32>")
    lhs, rhs = (f"!fp4.scaled<{FP8}, {data}, {of}>" for data, of in (codes, (packed, scales)))
    offsets = f"tensor<{what.experts}x2xi64>" if what.has_ranges else (
        f"tensor<{what.experts + 1}xi64>")
    y = f"tensor<?x{sums}x{what.result}>"
    name = f"{result}_sums" if what.gate else result
    attributes = f" {{work = #fp4.work<{work}>}}" if work else ""
    return f"""\
  %{result}_codes, %{result}_scales = fp4.quantize %{x} {{format = #fp4.format<{FP8}>,
      recipe = #fp4.recipe<fp8_deepgemm>}}
      : (tensor<?x{what.k}x{what.element}>) -> ({", ".join(codes)})
  %{result}_lhs = fp4.scaled %{result}_codes, %{result}_scales : {lhs}
  %{result}_rhs = fp4.scaled %{prefix}packed, %{prefix}alpha : {rhs}
  %{name} = fp4.matmul %{result}_lhs, %{result}_rhs offsets %offsets{attributes}
      : ({lhs}, {rhs}, {offsets}) -> {y}
""" + (_activate(what, result, name, y) if what.gate else "")


def _activate(what: Product, result: str, sums: str, type: str) -> str:
    """The activation of the halves of rows of sums."""
    assert what.gate is not None
    y, n = f"tensor<?x{what.n}x{what.result}>", what.n
    maps = ", ".join(f"affine_map<(i, j) -> (i, {column})>" for column in
                     (f"j mod {n}", f"j mod {n} + {n}", "j"))
    return f"""\
  %{result}_first = arith.constant 0 : index
  %{result}_count = tensor.dim %{sums}, %{result}_first : {type}
  %{result}_empty = tensor.empty(%{result}_count) : {y}
  %{result} = linalg.generic {{
      indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins(%{sums}, %{sums} : {type}, {type}) outs(%{result}_empty : {y}) {{
  ^bb0(%gate_sum: {what.result}, %up_sum: {what.result}, %out: {what.result}):
    %gate = arith.extf %gate_sum : {what.result} to f32
    %up = arith.extf %up_sum : {what.result} to f32
{what.gate.text()}\
    %rounded = arith.truncf %y : f32 to {what.result}
    linalg.yield %rounded : {what.result}
  }} -> {y}
"""


def _quantize(result: str, x: str, type: str, columns: int) -> str:
    """E4M3 of the rows %x, and the scale of each."""
    return f"""\
  %{result}_codes, %{result}_scales = fp4.quantize %{x} {{format = #fp4.format<fp8_block128>,
      recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, {columns}>}}
      : ({type}) -> (tensor<?x{columns}xf8E4M3FN>, tensor<?x1xf32>)
"""


def _body(what: Product, prefix: str) -> str:
    """The epilogue, or nothing where the elements are the sums."""
    biases = {name: bias for name, bias in (("up", what.bias), ("gate", what.gate_bias)) if bias}
    if not biases and not what.gate:
        return ""
    inputs = {"up": f"{prefix}bias", "gate": f"{prefix}gate_bias"}
    sums = ["up", "gate"] if what.gate else ["up"]
    arguments = ([f"%{name}{'_sum' * (name in biases)}: f32" for name in sums] +
                 [f"%{name}_shift: {bias}" for name, bias in biases.items()])
    lines = "".join(_add(name, bias) for name, bias in biases.items())
    element = "%y" if what.gate else "%up"
    activation = what.gate.text() if what.gate else ""
    names = ", ".join(f"%{inputs[name]}" for name in biases)
    return f"""epilogue({names}) {{
  ^bb0({", ".join(arguments)}):
{lines}{activation}\
    %rounded = arith.truncf {element} : f32 to {what.result}
    fp4.yield %rounded : {what.result}
  }} """


def _add(name: str, bias: str) -> str:
    """The sum of a matmul and its bias."""
    if bias == "f32":
        return f"    %{name} = arith.addf %{name}_sum, %{name}_shift : f32\n"
    return (f"    %{name}_wide = arith.extf %{name}_shift : {bias} to f32\n"
            f"    %{name} = arith.addf %{name}_sum, %{name}_wide : f32\n")
