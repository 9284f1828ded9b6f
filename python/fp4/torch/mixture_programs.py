"""The programs behind a mixture of experts: one program from the choice of experts to the sums of
what they give. The kernels choose experts, order tokens by them, gather the rows of tokens,
multiply twice, and add; where activations are E4M3, they quantize rows as they gather them, and
once more between both matmuls. Counts of tokens stay on the device. Each kernel begins while the
one before it ends (pdl = all), because those of few tokens are short.
"""

from __future__ import annotations

import dataclasses
import functools

from . import expert_programs, routing_programs
from .expert_programs import Product
from .programs import Runnable, compile_text
from .routing_programs import Route
from .row_programs import Tensor, Text


@dataclasses.dataclass(frozen=True)
class Mixture:
    """The facts that decide the program of a mixture.

    Attributes:
        up, down: the matmuls, of which the first has a gate.
        k: the number of experts of a token.
        first: the number of the first expert that is here; others add nothing.
        expected: the rows of an expert by which plans are chosen; None where all experts are here,
            and their rows are those of x.
        result: the element type of the sums.
        route: the choice of experts by logits; None where ids and weights are given.
        shared: the element type of a matrix that is added to the sums; "" without one.
    """

    up: Product
    down: Product
    k: int
    first: int = 0
    route: Route | None = None
    shared: str = ""
    result: str = "bf16"
    expected: int | None = None


@functools.lru_cache(maxsize=256)
def mixture(what: Mixture, target: str) -> Runnable:
    """(x [T, up.k]; logits [T, E] and their bias where there is one, or ids i32 and weights
    f32, [T, k]; shared [T, down.n] where there is one; expert_programs.operands of `up` and of
    `down`) -> [T, down.n] of `result`, and behind logits the weights f32 and ids i32, [T, k]. An
    expert that is not here adds nothing."""
    expert_programs.check_target(what.up, target)
    return compile_text(mixture_text(what), target, pdl="all")


def mixture_text(what: Mixture) -> str:
    """The program of a mixture as MLIR text."""
    up, down = what.up, what.down
    text = Text(up.k, up.element, False)
    x = text.argument("x", text.matrix(up.element), rows="T")
    route = what.route
    if route is not None:
        logits, bias = routing_programs.router_arguments(text, route)
    else:
        text.argument("ids", f"tensor<?x{what.k}xi32>", rows="T")
        weights = text.argument("weights", f"tensor<?x{what.k}xf32>", rows="T")
    shared = text.argument("shared", f"tensor<?x{down.n}x{what.shared}>", rows="T") \
        if what.shared else None
    for part, prefix in ((up, "up_"), (down, "down_")):
        for name, type in expert_programs.operands(part, prefix).items():
            text.argument(name, type, "#one")
    text.begin(x)
    if route is not None:
        weights = routing_programs.choose(text, route, logits, bias)
    y = _multiplied(text, what, x)
    text.columns = down.n
    total = _total(text, what, y, weights, shared)
    text.result(total.name, total.type)
    if route is not None:
        text.result(weights.name, weights.type)
        text.result("ids", f"tensor<?x{what.k}xi32>")
    return text.text("mixture")


def _multiplied(text: Text, what: Mixture, x: Tensor) -> Tensor:
    """The results of experts that are here, a row for each pair of a token and one of them. The
    rows of pairs are %rows: pairs of other experts have the row -1, for which no kernel works."""
    up, down = what.up, what.down
    ids, rows = f"tensor<?x{what.k}xi32>", f"tensor<?x{what.k}xi64>"
    text.lines.append(f"""\
  %offsets, %rows, %tokens = fp4.expert_order %ids
      {{experts = {up.experts} : i64, first = {what.first} : i64}}
      : {ids} -> tensor<{up.experts + 1}xi64>, {rows}, tensor<?xi64>""")
    each = text.gather("each", x, Tensor("tokens", "tensor<?xi64>", "#row"))
    expected = [] if what.expected is None else [f"expected_rows = {what.expected}"]
    # A quantizer reads all rows of the first matmul, so that those of no expert are zeros.
    has_all = what.route is not None and what.route.columns == up.experts
    for part, name, source, prefix, is_read in (
            (up, "hidden", each.name, "up", down.quantizes and not has_all),
            (down, "given_rows", "hidden", "down", False)):
        work = ", ".join(expected + ["unspecified_rows"] * (not is_read))
        text.lines.append(expert_programs.matmul(part, name, source, f"{prefix}_", work))
    return Tensor("given_rows", f"tensor<?x{down.n}x{down.result}>")


def _weight_here(what: Mixture, number: int) -> str:
    """The weight of an expert that is here, and of others zero: a caller's may be no number."""
    return f"""\
    %first{number} = arith.constant {what.first} : i32
    %count{number} = arith.constant {what.up.experts} : i32
    %none{number} = arith.constant 0.0 : f32
    %local{number} = arith.subi %e{number}.e, %first{number} : i32
    %is{number} = arith.cmpi ult, %local{number}, %count{number} : i32
    %w{number}.here = arith.select %is{number}, %w{number}.f, %none{number} : f32
"""


def _total(text: Text, what: Mixture, y: Tensor, weights: Tensor, shared: Tensor | None) -> Tensor:
    """The weighted sums of the rows of each token, in the order of its experts, and what is shared,
    in f32."""
    k = what.k
    text.lines.append(f"""\
  %numbers_of_pairs = tensor.collapse_shape %rows [[0, 1]] : tensor<?x{k}xi64> into tensor<?xi64>
  %shares = tensor.collapse_shape %{weights.name} [[0, 1]] : {weights.type}
      into tensor<?xf32>""")
    if what.route is None:
        text.lines.append(f"  %experts = tensor.collapse_shape %ids [[0, 1]] : "
                          f"tensor<?x{k}xi32> into tensor<?xi32>")
    pairs = text.gather("pairs", y, Tensor("numbers_of_pairs", "tensor<?xi64>", "#row"))
    # The first weight is read as an element of a matrix, from which the kernel has its rows.
    inputs, body, last = [], "", ""
    for number in range(k):
        row = f"i * {k} + {number}"
        share = dataclasses.replace(
            weights, alias="w0", map=f"affine_map<(i, j) -> (i, j floordiv {text.columns})>")
        if number:
            share = Tensor("shares", "tensor<?xf32>",
                           f"affine_map<(i, j) -> ({row})>", f"w{number}")
        inputs += [dataclasses.replace(pairs, alias=f"v{number}",
                                       map=f"affine_map<(i, j) -> ({row}, j)>"), share]
        factor = f"%w{number}.f"
        if what.route is None:
            inputs.append(Tensor("experts", "tensor<?xi32>", f"affine_map<(i, j) -> ({row})>",
                                 f"e{number}"))
            body += _weight_here(what, number)
            factor = f"%w{number}.here"
        body += f"    %p{number} = arith.mulf %v{number}.f, {factor} : f32\n"
        if number:
            body += f"    %s{number} = arith.addf {last}, %p{number} : f32\n"
        last = f"%s{number}" if number else "%p0"
    if shared is not None:
        inputs.append(shared)
        body += f"    %with_shared = arith.addf {last}, %shared.f : f32\n"
        last = "%with_shared"
    return text.elements("y", inputs, body, last, what.result)
