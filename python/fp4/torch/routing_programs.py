"""The programs behind the choice of experts: one kernel each."""

from __future__ import annotations

import dataclasses
import functools
import math

from .programs import Runnable, compile_text
from .row_programs import Tensor, Text, constant


@dataclasses.dataclass(frozen=True)
class Route:
    """The facts that decide the program of a router.

    Attributes:
        columns, source: of the logits, [T, columns], and their element type.
        k: the number of experts of a token.
        scores: "softmax", "sigmoid" or "logits".
        renormalize: what is made of the scores of the k experts: "sum", "softmax" or "none".
        bias: the element type of the bias that scores are chosen with; "" without one.
        num_groups, top_groups: those of fp4.top_k.
        factor, eps: of the weights, and beside their sum.
    """

    columns: int
    source: str
    k: int
    scores: str
    renormalize: str
    bias: str = ""
    num_groups: int = 1
    top_groups: int = 1
    factor: float = 1.0
    eps: float = 0.0
    strided: bool = False


@functools.lru_cache(maxsize=256)
def route(what: Route, target: str) -> Runnable:
    """(logits [T, columns]; bias [columns] where there is one) -> weights f32, ids i32, [T, k]."""
    return compile_text(route_text(what), target)


def route_text(what: Route) -> str:
    """The program of a router as MLIR text."""
    text = Text(what.columns, what.source, what.strided)
    logits, bias = router_arguments(text, what)
    text.begin(logits)
    weights = choose(text, what, logits, bias)
    text.result(weights.name, weights.type)
    text.result("ids", f"tensor<?x{what.k}xi32>")
    return text.text("route")


def router_arguments(text: Text, what: Route) -> tuple[Tensor, Tensor | None]:
    """Logits, and the bias that scores are chosen with where there is one."""
    logits = text.argument("logits", f"tensor<?x{what.columns}x{what.source}>", rows="T")
    bias = text.argument("bias", f"tensor<{what.columns}x{what.bias}>", "#column") \
        if what.bias else None
    return logits, bias


def choose(text: Text, what: Route, logits: Tensor, bias: Tensor | None) -> Tensor:
    """The weights [T, k] of the experts %ids [T, k]. The columns of `text` are k behind it."""
    text.columns = what.columns
    scores = _scores(text, what, logits)
    chosen = scores
    if bias is not None:
        chosen = text.elements("biased", [scores, bias], f"    %biased.sum = arith.addf "
                               f"%{scores.name}.f, %bias.f : f32\n", "%biased.sum", "f32")
    if what.k == 1: # the weight of an expert depends on no other one
        best = _top_k(text, what, chosen, _finish(text, what, scores))
        text.columns = what.k
        return best
    best = _top_k(text, what, chosen, scores)
    text.columns = what.k
    return _finish(text, what, best)


def _scores(text: Text, what: Route, x: Tensor) -> Tensor:
    if what.scores == "softmax":
        return _softmax(text, "scores", x)
    if what.scores == "logits":
        return x
    body = constant("one", 1.0) + f"""    %n = arith.negf %{x.name}.f : f32
    %e = math.exp %n : f32
    %d = arith.addf %one, %e : f32
    %s = arith.divf %one, %d : f32
"""
    return text.elements("scores", [x], body, "%s", "f32")


def _softmax(text: Text, name: str, x: Tensor) -> Tensor:
    most = text.reduce(f"{name}_most", [x], "", f"%{x.name}.f", "maximumf", -math.inf)
    body = (f"    %d = arith.subf %{x.name}.f, %{most.name}.f : f32\n"
            "    %e = math.exp %d : f32\n")
    powers = text.elements(f"{name}_powers", [x, most], body, "%e", "f32")
    total = text.reduce(f"{name}_total", [powers], "", f"%{powers.name}.f")
    return text.elements(name, [powers, total], f"    %s = arith.divf %{powers.name}.f, "
                         f"%{total.name}.f : f32\n", "%s", "f32")


def _top_k(text: Text, what: Route, chosen: Tensor, weights: Tensor) -> Tensor:
    others, types = "", chosen.type
    if weights.name != chosen.name:
        others, types = f" weights %{weights.name}", f"{chosen.type}, {weights.type}"
    attributes = (f"k = {what.k} : i64, num_groups = {what.num_groups} : i64, "
                  f"top_groups = {what.top_groups} : i64")
    type = f"tensor<?x{what.k}xf32>"
    text.lines.append(f"  %best, %ids = fp4.top_k %{chosen.name}{others} {{{attributes}}}\n"
                      f"      : {types} -> {type}, tensor<?x{what.k}xi32>")
    return Tensor("best", type)


def _finish(text: Text, what: Route, best: Tensor) -> Tensor:
    """The weights of scores: `best` has those of the k experts, or for one expert of all."""
    if what.renormalize == "softmax":
        best = _ones(text, best) if what.k == 1 else _softmax(text, "chosen", best)
    body, last = "", f"%{best.name}.f"
    if what.factor != 1.0:
        body, last = constant("factor", what.factor) + \
            f"    %scaled = arith.mulf {last}, %factor : f32\n", "%scaled"
    if what.renormalize != "sum":
        return text.elements("weights", [best], body, last, "f32") if body else best
    inputs, total = [best], f"%{best.name}.f"
    if what.k > 1:
        inputs.append(text.reduce("total", [best], "", total))
        total = "%total.f"
    if what.eps:
        body += constant("eps", what.eps) + f"    %divisor = arith.addf {total}, %eps : f32\n"
        total = "%divisor"
    body += f"    %quotient = arith.divf {last}, {total} : f32\n"
    return text.elements("weights", inputs, body, "%quotient", "f32")


def _ones(text: Text, x: Tensor) -> Tensor:
    """The softmax of each element alone."""
    body = (f"    %d = arith.subf %{x.name}.f, %{x.name}.f : f32\n    %e = math.exp %d : f32\n"
            "    %s = arith.divf %e, %e : f32\n")
    return text.elements("chosen", [x], body, "%s", "f32")


@functools.lru_cache(maxsize=256)
def expert_order(k: int, experts: int, first: int, multiple: int, target: str) -> Runnable:
    """(ids i32 [T, k]) -> offsets, rows [T, k], tokens."""
    ids, rows = f"tensor<?x{k}xi32>", f"tensor<?x{k}xi64>"
    results = f"tensor<{experts + 1}xi64>, {rows}, tensor<?xi64>"
    return compile_text(f"""func.func @expert_order(
    %ids: {ids} {{fp4.name = "ids", fp4.dims = ["T", ""]}}) -> ({results}) {{
  %o, %r, %t = fp4.expert_order %ids {{experts = {experts} : i64, first = {first} : i64,
      multiple = {multiple} : i64}} : {ids} -> {results}
  return %o, %r, %t : {results}
}}
""", target)
