"""The programs behind gated units of prepacked weights: two matmuls of the same activations, and
the activation of the gate times the up projection, in one kernel."""

from __future__ import annotations

import dataclasses
import functools

from . import weight_programs
from .expert_programs import ACTIVATIONS
from .programs import Runnable


@dataclasses.dataclass(frozen=True)
class Gated:
    """The facts that decide the program of a gated unit.

    Attributes:
        rows, columns: of the weights of the gate and of the up projection, the columns in whole
            scale blocks.
        element: of the activations and of the result, "bf16" or "f16".
        alpha_ranks: of the scales of both weights: 0, 1 where every row has one, -1 without one.
        activation: a name of expert_programs.ACTIVATIONS.
    """

    rows: int
    columns: int
    element: str
    format: str
    alpha_ranks: tuple[int, int] = (-1, -1)
    activation: str = "silu"


@functools.lru_cache(maxsize=256)
def gated(what: Gated, target: str) -> Runnable:
    """(x [M, columns], whose rows may have gaps between them; packed weights of the gate, and of
    the up projection; alpha of each where there is one, [] or [1, rows]) -> [M, rows]. Both fp32
    sums are multiplied by their alpha, the gated product is in fp32 and is rounded once."""
    weight_programs.check_target(target)
    packed = weight_programs.packed_type(what.rows, what.columns, what.format)
    given = {"x": f"tensor<?x{what.columns}x{what.element}>", "wg": packed, "wu": packed}
    clauses = ""
    for name, word, rank in zip(("ag", "au"), ("alpha", "alpha2"), what.alpha_ranks):
        if rank >= 0:
            given[name] = "tensor<f32>" if rank == 0 else f"tensor<1x{what.rows}xf32>"
            clauses += f" {word} %{name}"
    y = f"tensor<?x{what.rows}x{what.element}>"
    arguments = ",\n    ".join(
        f'%{name}: {kind} {{fp4.name = "{name}"'
        + (', fp4.dims = ["M", ""], fp4.strided}' if name == "x" else "}")
        for name, kind in given.items())
    return weight_programs.compile_program(f"""func.func @weight_gate(
    {arguments})
    -> ({y} {{fp4.name = "y"}}) {{
  %result = fp4.matmul %x, %wg with %wu{clauses} epilogue() {{
  ^bb0(%gate: f32, %up: f32):
{ACTIVATIONS[what.activation].text()}\
    %rounded = arith.truncf %y : f32 to {what.element}
    fp4.yield %rounded : {what.element}
  }} : ({", ".join(given.values())}) -> {y}
  return %result : {y}
}}
""", target)
