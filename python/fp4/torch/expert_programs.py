"""The programs behind the experts of a mixture, products of groups of 16-bit activations and
prepacked weights, with the gate of each expert and its biases (docs/Spec.md).

Where rows belong to is known on the device alone, so a program knows how many rows there are.
"""

from __future__ import annotations

import dataclasses
import functools

from ..compiler import Compiled
from . import weight_programs

#: What becomes of the sums %gate and %up of an element, in fp32, as %y.
ACTIVATIONS = {
    "silu": """    %one = arith.constant 1.0 : f32
    %minus = arith.negf %gate : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %exp, %one : f32
    %silu = arith.divf %gate, %below : f32
    %y = arith.mulf %silu, %up : f32
""",
    "gpt_oss": """    %one = arith.constant 1.0 : f32
    %limit = arith.constant 7.0 : f32
    %least = arith.constant -7.0 : f32
    %slope = arith.constant -1.702 : f32
    %g = arith.minimumf %gate, %limit : f32
    %under = arith.minimumf %up, %limit : f32
    %u = arith.maximumf %under, %least : f32
    %scaled = arith.mulf %g, %slope : f32
    %exp = math.exp %scaled : f32
    %below = arith.addf %exp, %one : f32
    %glu = arith.divf %g, %below : f32
    %more = arith.addf %u, %one : f32
    %y = arith.mulf %glu, %more : f32
"""}


@dataclasses.dataclass(frozen=True)
class Product:
    """What a product of activations and the weights of several experts does.

    Attributes:
        rows: of the activations, of all experts together.
        experts: how many there are.
        n, k: rows and columns of the weights of each.
        element: of the activations and of the result, "bf16" or "f16".
        has_scale: each expert has a scale of its weights.
        bias: element of its bias, or "" without one.
        activation: of a gated product, a name of ACTIVATIONS; "" of one product.
        gate_bias: element of the bias of the gate, or "" without one.
    """

    rows: int
    experts: int
    n: int
    k: int
    element: str
    format: str
    has_scale: bool
    bias: str = ""
    activation: str = ""
    gate_bias: str = ""


@functools.lru_cache(maxsize=1024)
def product(what: Product, target: str) -> Compiled:
    """(x [rows, k]; packed weights; offsets [experts + 1]; alpha [experts]; bias [experts, 1, n];
    then packed weights, alpha and bias of the gate) -> [rows, n], of which those of no expert are
    zero. Arguments that the product does not have are left out."""
    weight_programs.check_target(target)
    given = _arguments(what)
    y = f"tensor<{what.rows}x{what.n}x{what.element}>"
    arguments = ",\n    ".join(f'%{name}: {kind} {{fp4.name = "{name}"}}'
                               for name, kind in given.items())

    def clause(word: str, name: str) -> str:
        return f" {word} %{name}" if name in given else ""

    order = [name for name in ("x", "packed", "alpha", "bias", "gate_bias", "offsets",
                               "gate_packed", "gate_alpha") if name in given]
    operands = ("%x, %packed" + clause("alpha", "alpha") + " offsets %offsets" +
                clause("with", "gate_packed") + clause("alpha2", "gate_alpha"))
    expected = -(-what.rows // what.experts)
    return weight_programs.compile_program(f"""func.func @experts(
    {arguments})
    -> ({y} {{fp4.name = "y"}}) {{
  %result = fp4.blockscaled_matmul {operands} {_body(what)}{{
      format = #fp4.format<{what.format}>, expected_rows = {expected} : i64}}
      : ({", ".join(given[name] for name in order)}) -> {y}
  return %result : {y}
}}
""", target)


def _arguments(what: Product) -> dict[str, str]:
    """Types of the arguments, in the order of a call."""
    packed = weight_programs.packed_type(what.experts * what.n, what.k, what.format)
    given = {"x": f"tensor<{what.rows}x{what.k}x{what.element}>", "packed": packed,
             "offsets": f"tensor<{what.experts + 1}xi64>"}

    def add(prefix: str, bias: str) -> None:
        if what.has_scale:
            given[f"{prefix}alpha"] = f"tensor<{what.experts}xf32>"
        if bias:
            given[f"{prefix}bias"] = f"tensor<{what.experts}x1x{what.n}x{bias}>"

    add("", what.bias)
    if what.activation:
        given["gate_packed"] = packed
        add("gate_", what.gate_bias)
    return given


def _body(what: Product) -> str:
    """The epilogue, or nothing where the elements are the sums."""
    biases = {name: bias for name, bias in (("up", what.bias), ("gate", what.gate_bias)) if bias}
    if not biases and not what.activation:
        return ""
    inputs = {"up": "bias", "gate": "gate_bias"}
    sums = ["up", "gate"] if what.activation else ["up"]
    arguments = ([f"%{name}{'_sum' * (name in biases)}: f32" for name in sums] +
                 [f"%{name}_shift: {bias}" for name, bias in biases.items()])
    lines = "".join(_add(name, bias) for name, bias in biases.items())
    element = "%y" if what.activation else "%up"
    names = ", ".join(f"%{inputs[name]}" for name in biases)
    return f"""epilogue({names}) {{
  ^bb0({", ".join(arguments)}):
{lines}{ACTIVATIONS.get(what.activation, "")}\
    %rounded = arith.truncf {element} : f32 to {what.element}
    fp4.yield %rounded : {what.element}
  }} """


def _add(name: str, bias: str) -> str:
    """The sum of a product and its bias."""
    if bias == "f32":
        return f"    %{name} = arith.addf %{name}_sum, %{name}_shift : f32\n"
    return (f"    %{name}_wide = arith.extf %{name}_shift : {bias} to f32\n"
            f"    %{name} = arith.addf %{name}_sum, %{name}_wide : f32\n")
