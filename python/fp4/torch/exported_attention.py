"""Attention in graphs of torch.export: torch.nn.functional.scaled_dot_product_attention of
transposed tensors [B, S, H, D] as fp4.attention."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch

from ..builder import FunctionBuilder, Value
from ..manifest import Type
from .exported_nodes import Node, shape_of, wrong

TARGET = torch.ops.aten.scaled_dot_product_attention.default
_ELEMENTS = {torch.bfloat16: "bf16", torch.float16: "f16"}
_TURNED = "write sdpa(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2) of [B, S, H, D]"


@dataclasses.dataclass(frozen=True)
class Attention:
    """The tensors [B, S, H, D] behind the operands, the transposed result, and the scores."""

    operands: tuple[Node, Node, Node]
    result: Node
    element: str
    scale: float
    causal: bool
    repeats: frozenset[Node] = frozenset()  #: nodes that repeat heads of keys and values

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [shape_of(node) for node in self.operands]

    @property
    def nodes(self) -> set[Node]:
        """The nodes of the graph that are no operation of the program."""
        call = self.result.args[0]
        assert isinstance(call, Node)
        given = {x for x in call.args[:3] if isinstance(x, Node)}
        sources = [x.args[0] for x in self.repeats]
        turned = {x for x in sources if isinstance(x, Node) and _is_turn(x)}
        return {self.result, *given, *self.repeats, *turned}


def match(node: Node) -> Attention:
    """The attention that a node is."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given: dict[str, Any] = {**dict(zip(names, node.args)), **node.kwargs}
    if given.get("attn_mask") is not None or given.get("dropout_p"):
        raise wrong(node, "it has a mask or dropout",
                    "fp4.torch.attention has causal masks and lengths of sequences")
    for name in names[:3]:
        if len(shape_of(given[name])) != 4:
            raise wrong(node, f"'{name}' must have batches, heads, tokens and elements, but is of "
                        f"shape {list(shape_of(given[name]))}", _TURNED)
    repeated: set[Node] = set()
    sources = [given["query"], *(_unrepeated(given[name], repeated) for name in names[1:3])]
    operands = tuple(_untransposed(node, x, repeated) for x in sources)
    for repeats in repeated:
        _check_users(repeats, repeated)
    query, key, _ = (shape_of(operand) for operand in operands)
    element = _ELEMENTS.get(operands[0].meta["val"].dtype)
    if element is None:
        raise wrong(node, f"its operands must be bfloat16 or float16, but are "
                    f"{operands[0].meta['val'].dtype}", "convert them with .to(torch.bfloat16)")
    causal = bool(given.get("is_causal"))
    if causal and query[1] > key[1]:
        raise wrong(node, f"its {query[1]} causal queries must have as many keys, but have "
                    f"{key[1]}", "torch aligns the mask with the first key: call it twice")
    if causal and query[1] < key[1]:
        raise wrong(node, f"its {query[1]} causal queries must have no keys behind them, but have "
                    f"{key[1]}", "no query sees these: pass key[:, :tokens] and value[:, :tokens]")
    if not given.get("enable_gqa") and not repeated and query[2] != key[2]:
        raise wrong(node, f"its {query[2]} heads share {key[2]}", "pass enable_gqa=True")
    users = [user for user in node.users if _is_turn(user)]
    if len(node.users) != 1 or len(users) != 1:
        raise wrong(node, "its result must be transposed to [B, S, H, D]", _TURNED)
    scale = given.get("scale")
    return Attention((operands[0], operands[1], operands[2]), users[0], element,
                     1 / math.sqrt(query[3]) if scale is None else float(scale), causal,
                     frozenset(repeated))


def _is_turn(node: Node) -> bool:
    """Returns True for the transposition of heads and tokens, of four dimensions."""
    arguments: Any = node.args[1:]
    if node.target is torch.ops.aten.transpose.int:
        return sorted(x % 4 for x in arguments) == [1, 2]
    return node.target is torch.ops.aten.permute.default and list(arguments[0]) == [0, 2, 1, 3]


#: Operations that give a tensor other dimensions.
_RESHAPES = (torch.ops.aten.reshape.default, torch.ops.aten.view.default,
             torch.ops.aten._unsafe_view.default)


def _merged(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with dimensions 1 and 2 as one."""
    return (shape[0], math.prod(shape[1:3]), *shape[3:])


def _unrepeated(operand: Node, between: set[Node]) -> Node:
    """The tensor [B, H, S, D] whose heads an operand repeats side by side, as
    torch.repeat_interleave, or an index, expand and reshape do; the operand where it repeats none.
    `between` gets the nodes that repeat."""
    path = [operand]

    def read(*skipped: Any) -> Node:
        """The tensor that the last node reads, behind such that leave it as it is."""
        source: Any = path[-1].args[0]
        while source.target in skipped and shape_of(source) == shape_of(source.args[0]):
            path.append(source)
            source = source.args[0]
        path.append(source)
        return source  # type: ignore[no-any-return]

    if operand.target is torch.ops.aten.repeat_interleave.self_int:
        is_repeated = operand.args[2:] in ((1,), (-3,))
        source = read()
    elif operand.target in _RESHAPES:
        expand = read(torch.ops.aten.clone.default)
        new: Any = read(torch.ops.aten.slice.Tensor)
        is_repeated = (expand.target is torch.ops.aten.expand.default
                       and new.target is torch.ops.aten.unsqueeze.default
                       and new.args[1] in (2, -3)
                       and _merged(shape_of(expand)) == shape_of(operand)
                       and _merged(shape_of(new)) == shape_of(new.args[0]))
        source = read(torch.ops.aten.slice.Tensor) if is_repeated else operand
    else:
        return operand
    if not is_repeated:
        return operand
    between.update(path[:-1])
    return source


def _untransposed(node: Node, operand: Node, repeated: set[Node]) -> Node:
    """The tensor [B, S, H, D] that an operand is the transposition of."""
    if not _is_turn(operand):
        raise wrong(node, f"'{operand.name}' must be the transposition of [B, S, H, D]", _TURNED)
    _check_users(operand, repeated)
    return operand.args[0]  # type: ignore[return-value]


def _check_users(operand: Node, repeated: set[Node]) -> None:
    for user in operand.users:
        if user.target is not TARGET and user not in repeated:
            raise wrong(operand, f"'{user.name}' reads it, which is no attention",
                        "transpose again outside of the graph: the program has [B, S, H, D]")


def add(function: FunctionBuilder, values: dict[Node, Value], attention: Attention) -> Value:
    """The operation, of values of the function."""
    operands = [values[node] for node in attention.operands]
    shape = (*operands[0].shape[:3], operands[2].shape[3])
    kinds = [f"tensor<{'x'.join(map(str, x))}x{attention.element}>"
             for x in (*attention.shapes, shape)]
    causal = " causal" if attention.causal else ""
    return function._one(f"fp4.attention {', '.join(value.name for value in operands)} scale "
                         f"{attention.scale:.9e}{causal} : {', '.join(kinds[:3])} -> {kinds[3]}",
                         Type(shape, attention.element))
