"""Programs of torch.export: graphs of scaled_mm on 4-bit operands, or of attention, as fp4
programs.

    exported = torch.export.export(module, arguments)
    linear = fp4.torch.from_export(exported)
    y = linear(*arguments)                           # module(*arguments)
    print(linear.builder)                            # the program as MLIR text

The conversion is strict. An operation that is no matmul and no attention of fp4, nor a
transposition of their operands, is a UsageError that names the node and the line of the module.
Scales that the graph calls swizzled are tiled in the program: nothing is swizzled again, and no
byte is copied.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from ..builder import Builder, FunctionBuilder, ScaledValue, Value
from ..compiler import compile as compile_program
from ..errors import UsageError
from . import exported_attention
from .exported_nodes import Node, shape_of, wrong
from .ops import without_padding

#: ScalingType and SwizzleType, as numbers of the graph, of the formats that matmuls have.
_FORMATS = {((2,), (1,)): "nvfp4", ((2, 0), (1, 0)): "nvfp4", ((2, 0), (1,)): "nvfp4",
            ((3,), (1,)): "mxfp4"}
_BLOCKS = {"nvfp4": 16, "mxfp4": 32}
_SCALES = {"nvfp4": ("f8E4M3FN", torch.float8_e4m3fn), "mxfp4": ("f8E8M0FNU", torch.float8_e8m0fnu)}
_RESULTS = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}
#: torch multiplies by the decode scales of both tensors.
_RECIPE = "modelopt, tensor_scale = supplied_decode"


@dataclasses.dataclass(frozen=True)
class _Passed:
    """The form in which a tensor of the graph becomes an argument."""

    shape: tuple[int, ...] | None = None  #: None: as it is
    blocks: int = 0  #: of tiled scales, in a row

    def prepare(self, tensor: torch.Tensor) -> torch.Tensor:
        if self.shape is None:
            return tensor
        return without_padding(tensor.reshape(self.shape), self.blocks)


@dataclasses.dataclass
class Exported:
    """A module that was exported, as a program of fp4.

    Attributes:
        builder: the program; `str(builder)` is its text. The one function has the name of
            from_export, and the arguments of the graph: parameters and buffers, then inputs.
        compiled: the result of fp4.compile.
    """

    builder: Builder
    compiled: Any
    _constants: list[torch.Tensor]
    _passed: list[_Passed]

    def __call__(self, *inputs: torch.Tensor) -> Any:
        """Runs the program on the inputs of the module, where their memory is."""
        tensors = [*self._constants, *inputs]
        if len(tensors) != len(self._passed):
            raise UsageError(f"the program has {len(self._passed) - len(self._constants)} inputs, "
                             f"but got {len(inputs)}")
        return self.compiled(*(passed.prepare(tensor)
                               for tensor, passed in zip(tensors, self._passed)))


@dataclasses.dataclass(frozen=True)
class _Operand:
    """One side of a matmul: nodes of the graph, and what it is."""

    data: Node
    scales: Node
    number: Node | None
    format: str
    rows: int
    depth: int


def from_export(exported: torch.export.ExportedProgram, *, name: str = "exported",
                target: str = "sm_100a") -> Exported:
    """Makes a program of an exported module.

    Args:
        exported: a graph with static shapes of aten._scaled_mm_v2 (torch.nn.functional.scaled_mm),
            whose right sides are transposed parameters, buffers or inputs [N, K/2], or of
            scaled_dot_product_attention of transposed tensors [B, S, H, D].
        name: of its function.
        target: what it is compiled for.

    Raises:
        UsageError: a node that is none of these.
        CompileError: the program does not compile.
    """
    nodes = list(exported.graph.nodes)
    products = {node: _match(node) for node in nodes
                if node.target is torch.ops.aten._scaled_mm_v2.default}
    attentions = {node: exported_attention.match(node) for node in nodes
                  if node.target is exported_attention.TARGET}
    around = {node for attention in attentions.values() for node in attention.nodes}
    for node in nodes:
        if node not in around and node not in attentions:
            _check_known(node, products)
    builder = Builder()
    function = builder.function(name)
    types = _argument_types(products, list(attentions.values()))
    values: dict[Node, Value] = {}
    arguments: list[_Passed] = []
    for node in nodes:
        if node.op == "placeholder":
            values[node], passed = _add_argument(function, node, types)
            arguments.append(passed)
    for node, (lhs, rhs, element) in products.items():
        values[node] = _add_gemm(function, values, lhs, rhs, element)
    for attention in attentions.values():
        values[attention.result] = exported_attention.add(function, values, attention)
    function.returns(*(values[result] for result in nodes[-1].args[0]))
    compiled = compile_program(builder, target=target)
    return Exported(builder, compiled, _constants(exported), arguments)


#===--- Matmuls -----------------------------------------------------------===#


def _match(node: Node) -> tuple[_Operand, _Operand, str]:
    """The operands of a matmul and the element of its result."""
    arguments: list[Any] = [*node.args, *[None] * 12][:12]
    a, b, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, dtype = arguments[:10]
    if bias is not None:
        raise wrong(node, "it has a bias", "add the bias behind the matmul, outside of the graph")
    if node.kwargs or arguments[10] or arguments[11]:
        raise wrong(node, "it must have no contraction_dim and no use_fast_accum",
                    "leave both out: 4-bit matmuls accumulate in fp32")
    if dtype not in _RESULTS:
        raise wrong(node, f"its result must be bfloat16, float16 or float32, but is {dtype}",
                    "give output_dtype")
    lhs = _operand(node, "a", a, scale_a, recipe_a, swizzle_a)
    rhs = _operand(node, "b", _transposed(node, b), scale_b, recipe_b, swizzle_b)
    if lhs.format != rhs.format or (lhs.number is None) != (rhs.number is None):
        raise wrong(node, "both operands must have the same recipe", "quantize them in one format")
    return lhs, rhs, _RESULTS[dtype]


def _transposed(node: Node, matrix: Node) -> Node:
    """The matrix [N, K/2] that `matrix` is the transposition of."""
    operation, rest = matrix.target, tuple(map(repr, matrix.args[1:]))
    if (operation is torch.ops.aten.t.default
            or (operation is torch.ops.aten.transpose.int and rest in (("0", "1"), ("1", "0")))
            or (operation is torch.ops.aten.permute.default and rest == ("[1, 0]",))):
        return matrix.args[0]  # type: ignore[return-value]
    raise wrong(node, "'mat_b' must be the transposition of a matrix [N, K/2]",
                 "pass w.t(), where w is the packed weight with K contiguous")


def _operand(node: Node, side: str, data: Node, scales: Any, recipe: Any,
             swizzle: Any) -> _Operand:
    format = _FORMATS.get((tuple(recipe), tuple(swizzle)))
    if format is None or data.meta["val"].dtype != torch.float4_e2m1fn_x2:
        raise wrong(node, f"operand {side} must be float4_e2m1fn_x2 with tiled scales in blocks, "
                    f"but has {data.meta['val'].dtype}, recipe {list(recipe)} and swizzle "
                    f"{list(swizzle)}",
                    "matmuls have BlockWise1x16, [BlockWise1x16, TensorWise] or BlockWise1x32 "
                     "scales with SWIZZLE_32_4_4; nothing is swizzled silently")
    rows, columns = shape_of(data)
    operand = _Operand(data, scales[0], scales[1] if len(scales) > 1 else None, format, rows,
                       2 * columns)
    blocks = operand.depth // _BLOCKS[format]
    size = -(-rows // 128) * -(-blocks // 4) * 512
    found = scales[0].meta["val"]
    if operand.depth % _BLOCKS[format] or found.numel() != size or (
            found.dtype != _SCALES[format][1]):
        raise wrong(node, f"the scales of operand {side} must be {size} of {_SCALES[format][1]}, "
                    f"but are {found.numel()} of {found.dtype}",
                    f"K is a multiple of {_BLOCKS[format]}; rows are padded to 128, blocks to 4")
    return operand


def _check_known(node: Node, products: dict[Node, Any]) -> None:
    operands = {operand.data for lhs, rhs, _ in products.values() for operand in (lhs, rhs)}
    is_right = node.op == "call_function" and node not in products and bool(node.users) and all(
        user in products for user in node.users) and node.args[0] in operands
    if node.op in ("placeholder", "output") or node in products or is_right:
        return
    raise wrong(node, f"it is {node.target}", "export what is around the matmuls by itself")


#===--- The program -------------------------------------------------------===#


def _argument_types(products: dict[Node, Any], attentions: list[exported_attention.Attention]
                    ) -> dict[Node, tuple[Any, ...]]:
    """Shape, element and layout of each argument, by how operations use it."""
    types: dict[Node, tuple[Any, ...]] = {}

    def use(node: Node, kind: tuple[Any, ...]) -> None:
        if node.op != "placeholder":
            raise wrong(node, "operands must be parameters, buffers or inputs",
                        "quantize outside of the graph")
        if types.setdefault(node, kind) != kind:
            raise wrong(node, f"it is used as {types[node]} and as {kind}",
                        "give each matmul scales of its own")

    for lhs, rhs, _ in products.values():
        for side in (lhs, rhs):
            use(side.data, ((side.rows, side.depth), "f4E2M1FN", "linear"))
            use(side.scales, ((side.rows, side.depth // _BLOCKS[side.format]),
                              _SCALES[side.format][0], "tiled_128x4"))
            if side.number is not None:
                use(side.number, ((), "f32", "linear"))
    for attention in attentions:
        for node, shape in zip(attention.operands, attention.shapes):
            use(node, (shape, attention.element, "linear"))
    return types


def _add_argument(function: FunctionBuilder, node: Node,
                  types: dict[Node, tuple[Any, ...]]) -> tuple[Value, _Passed]:
    """The argument of a placeholder, and how its tensor is passed."""
    if node not in types:
        raise wrong(node, "no operation reads it", "export the module without unused inputs")
    shape, element, layout = types[node]
    value = function.argument(node.name, shape, element, layout)
    if layout == "tiled_128x4":
        return value, _Passed((-(-shape[0] // 128), -(-shape[1] // 4), 512), shape[1])
    return value, _Passed(() if element == "f32" else None)


def _add_gemm(function: FunctionBuilder, values: dict[Node, Value], lhs: _Operand,
              rhs: _Operand, element: str) -> Value:
    def scaled(side: _Operand) -> ScaledValue:
        number = None if side.number is None else values[side.number]
        return function.scaled(values[side.data], values[side.scales], side.format, amax=number,
                               recipe=_RECIPE if number else None)

    left, right = scaled(lhs), scaled(rhs)
    alpha = function.matmul_alpha(left, right) if left.amax else None
    return function.matmul(left, right, alpha=alpha, element=element)


def _constants(exported: torch.export.ExportedProgram) -> list[torch.Tensor]:
    """Tensors of the placeholders that are no inputs, in their order."""
    signature = exported.graph_signature
    kinds: list[Callable[[str], torch.Tensor | None]] = [
        lambda name: exported.state_dict.get(signature.inputs_to_parameters.get(name, "")),
        lambda name: exported.state_dict.get(signature.inputs_to_buffers.get(name, "")),
        lambda name: exported.constants.get(signature.inputs_to_buffers.get(name, "")),
        lambda name: exported.constants.get(
            signature.inputs_to_lifted_tensor_constants.get(name, "")),
    ]
    tensors = []
    for node in exported.graph.nodes:
        if node.op == "placeholder" and node.name not in signature.user_inputs:
            found = [tensor for kind in kinds if (tensor := kind(node.name)) is not None]
            if not found:
                raise wrong(node, "its tensor is not in the exported program",
                             "keep parameters and buffers in the module")
            tensors.append(found[0])
    return tensors
