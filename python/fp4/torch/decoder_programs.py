"""The programs behind the steps of a decoder that are no matmuls. Their kernels begin while the one
before them ends, and let the next one begin (pdl = all): a step has many short launches, and a
matmul asks for its first weights meanwhile."""

from __future__ import annotations

import dataclasses
import functools

from . import attend_programs, norm_programs, programs
from .norm_programs import Norm, norm_text
from .programs import Runnable
from .rotation_programs import Rotation, begin_rotation
from .row_programs import Tensor, Text

_PDL = "all"


@functools.lru_cache(maxsize=256)
def norm(what: Norm, target: str) -> Runnable:
    """The program of norm_programs.norm."""
    return programs.compile_text(norm_text(what), target, pdl=_PDL)


@functools.lru_cache(maxsize=256)
def gate(what: norm_programs.Gate, target: str) -> Runnable:
    """The program of norm_programs.gate."""
    return programs.compile_text(norm_programs.gate_text(what), target, pdl=_PDL)


@functools.lru_cache(maxsize=256)
def attention(what: attend_programs.Attention, target: str) -> Runnable:
    """The program of fp4.torch.attention."""
    return programs.compile_text(attend_programs.text_of(what), target, pdl=_PDL)


@dataclasses.dataclass(frozen=True)
class Heads:
    """The facts that decide the program that rotates the heads of queries and keys, and stores
    those of keys and values in a cache.

    Attributes:
        rotation: of a token's heads: those of queries, keys and values, in this order.
        queries: rows of the result of queries: tokens times their heads.
        slots: rows of the cache of keys, and of that of values: tokens times key heads.
    """

    rotation: Rotation
    queries: int
    slots: int


@functools.lru_cache(maxsize=256)
def heads(what: Heads, target: str) -> Runnable:
    """(x [T, heads, columns]; positions [T]; cos_sin [P, rotated]; weights [heads, columns] where
    heads are normed; for each head of x its row among the queries, the keys and the values, [T *
    heads], negative where it has none) -> the rotated heads of queries [queries, columns] and of
    keys [slots, columns], and the heads of values [slots, columns] as they are. Rows of the results
    that no head has stay as they are."""
    return programs.compile_text(heads_text(what), target, pdl=_PDL)


def heads_text(what: Heads) -> str:
    """The program of heads as MLIR text."""
    text, inputs, body = begin_rotation(what.rotation)
    rows = [text.argument(f"{name}_rows", "tensor<?xi64>", "#row", rows="R") for name in "qkv"]
    given = Tensor("heads", text.matrix(what.rotation.source))
    if inputs[0].name != given.name:  # the heads are normed
        inputs.append(given)
    _store(text, inputs, body)
    for name, numbers in zip("qkv", rows):
        count = what.queries if name == "q" else what.slots
        stored = text.scatter(f"{name}_all", Tensor(name, given.type), numbers, count)
        text.result(stored.name, stored.type)
    return text.text("heads")


def _store(text: Text, inputs: list[Tensor], body: str) -> None:
    """One operation with three results, each of which is scattered: one kernel computes them. The
    keys are copies with their own sign, since one result for two scatters would have no kernel."""
    given = inputs[-1] if inputs[-1].name == "heads" and not inputs[-1].alias else inputs[0]
    element, type = given.element, given.type
    maps = ", ".join([*(value.map for value in inputs), *["#all"] * 3])
    names = ", ".join(f"%{value.name}" for value in inputs)
    text.lines.append(f"""  %stored = tensor.empty(%height) : {type}
  %q, %k, %v = linalg.generic {{
      indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins({names} : {', '.join(value.type for value in inputs)})
      outs(%stored, %stored, %stored : {type}, {type}, {type}) {{
  ^bb0({text.inner(inputs)}, {', '.join(f'%o{number}: {element}' for number in range(3))}):
{text.widened(inputs)}{body}    %turned.round = arith.truncf %z : f32 to {element}
    %signed = math.copysign %z, %z : f32
    %key.round = arith.truncf %signed : f32 to {element}
    linalg.yield %turned.round, %key.round, %heads.e : {element}, {element}, {element}
  }} -> ({type}, {type}, {type})""")
