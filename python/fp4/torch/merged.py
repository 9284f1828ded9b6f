"""Weight-only layers of one input as one layer, and a gate and an up projection as one kernel:

    weight_gate(x, gate, up, gate_alpha?, up_alpha?, rows, activation) -> [M, rows], silu(x gate^T)
        * (x up^T), or another activation
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import UsageError
from . import gated_programs, weight_programs
from .execution import run
from .expert_programs import ACTIVATIONS
from .operation import Operation
from .planned import planned
from .strides import flat_rows, padded, placed
from .weight_only import (
    WeightOnlyLinear,
    check_sizes,
    element_of,
    known_facts,
    layer_of_tiles,
    packed_tiles,
    row_of,
)

Optional = torch.Tensor | None

# ===--- Layers that become one -------------------------------------------=== #


def merge_linears(*layers: WeightOnlyLinear) -> WeightOnlyLinear:
    """One layer whose results are those of `layers`, one behind the other: the projections of
    queries, keys and values, or those of a gate and of an up projection.

        qkv = fp4.torch.merge_linears(q, k, v)
        q, k, v = qkv(x).split([q.out_features, k.out_features, v.out_features], -1)

    No code and no scale of a block changes. If the scales of the tensors differ, `alpha` of the
    result has one for each row: the kernel multiplies each fp32 sum by that of its layer, as
    before, and reads 4 bytes more for a row of weights. So a result has the bits that it had,
    unless the compiler cuts K into other ranges for another number of columns, as it may for up to
    256 rows, also where layers are `batch_invariant`.

    Args:
        layers: on one device, of one in_features, one format, one weight_dtype and one
            batch_invariant; all have a bias of one dtype, or none has.

    Returns:
        A layer of the sum of their out_features. The tiles are theirs in their order, where these
        are multiples of 128, but for the last.

    Raises:
        UsageError: layers that cannot become one. The message names the first that differs.
    """
    for number, layer in enumerate(layers):
        if not isinstance(layer, WeightOnlyLinear):
            raise UsageError(f"layer {number} must be a WeightOnlyLinear, but is a "
                             f"{type(layer).__name__}",
                             "fp4.torch.quantize_(model, weight_only=True) makes them")
    if not layers:
        raise UsageError("'layers' must have at least one layer, but got none", "pass several")
    for number, layer in enumerate(layers[1:], 1):
        _check_alike(number, layer, layers[0])
    first = layers[0]
    biases = [layer.bias for layer in layers]
    bias = None if biases[0] is None else torch.cat(
        [bias.detach() for bias in biases if bias is not None])
    return layer_of_tiles(first, _tiles(layers), _alpha(layers), bias,
                          sum(layer.out_features for layer in layers), first.in_features)


def _check_alike(number: int, layer: WeightOnlyLinear, first: WeightOnlyLinear) -> None:
    bias, other = (None if one.bias is None else one.bias.dtype for one in (layer, first))
    facts: tuple[tuple[str, Any, Any, str], ...] = (
        ("in_features", layer.in_features, first.in_features,
         "layers of one input have as many columns"),
        ("format", layer.format, first.format, "quantize all of them in one format"),
        ("device", layer.packed.device, first.packed.device, "move one with .to(device)"),
        ("weight_dtype", layer.weight_dtype, first.weight_dtype, "convert the model first"),
        ("batch_invariant", layer.batch_invariant, first.batch_invariant,
         "quantize all of them with it or without"),
        ("bias", bias, other,
         "all have a bias of one dtype, or none has: give the others one of zeros"),
        ("alpha", layer.alpha is not None, first.alpha is not None,
         "all have a scale of the tensor, or none has: quantize them in one recipe"))
    for name, found, expected, note in facts:
        if found != expected:
            raise UsageError(f"layer {number} must have '{name}' {expected}, as layer 0 has, but "
                             f"got {found}", note)


def _tiles(layers: tuple[WeightOnlyLinear, ...]) -> torch.Tensor:
    """The prepacked tiles of all layers: those that they have, if whole tiles have their rows."""
    rows = weight_programs.TILE[0]
    if not any(layer.out_features % rows for layer in layers[:-1]):
        return torch.cat([layer.packed for layer in layers])
    weights = [layer.unpack() for layer in layers]
    data = torch.cat([weight.data.view(torch.uint8) for weight in weights])
    scales = torch.cat([weight.scales.view(torch.uint8) for weight in weights])
    return packed_tiles(weights[0].__class__(
        data.view(torch.float4_e2m1fn_x2), scales.view(weights[0].scales.dtype), None,
        (data.shape[0], weights[0].shape[1]), weights[0].format, "linear",
        "torchao_1level" if weights[0].format == "nvfp4" else "ocp_floor"))


def _alpha(layers: tuple[WeightOnlyLinear, ...]) -> Optional:
    """The scale of all layers if they have one of the same bits, or that of each row."""
    scales = [layer.alpha for layer in layers if layer.alpha is not None]
    if not scales:
        return None
    if all(scale.dim() == 0 for scale in scales):
        bits = torch.stack(scales).view(torch.int32)
        if bool((bits == bits[0]).all()):
            return scales[0].clone()
    return torch.cat([scale.expand(layer.out_features) for scale, layer in zip(scales, layers)])


def share_tiles(merged: WeightOnlyLinear, *layers: WeightOnlyLinear) -> None:
    """Has layers read the tiles of the layer that they were merged into, so that memory has them
    once; layers whose tiles were packed anew keep their own."""
    begin = 0
    if any(layer.out_features % weight_programs.TILE[0] for layer in layers[:-1]):
        return
    for layer in layers:
        end = begin + layer.packed.shape[0]
        layer.packed = merged.packed[begin:end]
        begin = end


# ===--- A gated unit -----------------------------------------------------=== #


def _weight_gate(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, gate_alpha: Optional,
                 up_alpha: Optional, rows: int, activation: str = "silu") -> torch.Tensor:
    n, columns, format = known_facts(gate.shape)
    _check_activation(activation)
    if up.shape != gate.shape:
        raise UsageError(f"'up' must have the shape of 'gate', {list(gate.shape)}, but got "
                         f"{list(up.shape)}", "both weights have one shape and format")
    check_sizes(x, rows, n, columns, weight_programs.TILE[1])
    element = element_of(x.dtype, format)
    if element == "f16" and format == "mxfp4":
        raise UsageError("'x' must be bfloat16 beside weights of mxfp4, but got float16",
                         "float16 has not all exponents of MXFP4: pass x.bfloat16()")
    if not x.shape[0]:
        return x.new_empty((0, rows))
    depth = weight_programs.whole_blocks(x.shape[1], format)
    if x.shape[1] != depth:
        x = padded(x, depth)
    ranks = [-1 if alpha is None else alpha.dim() for alpha in (gate_alpha, up_alpha)]
    what = gated_programs.Gated(rows, depth, element, format, (ranks[0], ranks[1]), activation)
    scales = [row_of(alpha, rows) if rank > 0 else alpha
              for alpha, rank in zip((gate_alpha, up_alpha), ranks)]
    y: torch.Tensor = run(gated_programs.gated, (what,), placed(x), gate, up, *scales,
                          target=weight_programs.TARGET)
    return y


def _check_activation(activation: str) -> None:
    rule = ACTIVATIONS.get(activation)
    known = [name for name, one in ACTIVATIONS.items() if one.limit is None]
    if rule is None or activation not in known:
        raise UsageError(f"'activation' must be {' or '.join(known)}, but got {activation!r}",
                         "a MoE has the others")


def _weight_gate_fake(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, gate_alpha: Optional,
                      up_alpha: Optional, rows: int, activation: str = "silu") -> torch.Tensor:
    return x.new_empty((x.shape[0], rows))


weight_gate = Operation(
    "weight_gate(Tensor x, Tensor gate, Tensor up, Tensor? gate_alpha, Tensor? up_alpha, int rows, "
    "str activation='silu') -> Tensor", _weight_gate, _weight_gate_fake)


def _gated(input: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, gate_alpha: Optional,
           up_alpha: Optional, columns: int, rows: int, activation: str) -> torch.Tensor:
    if input.shape[-1] != columns:
        raise UsageError(f"'input' must have {columns} columns, but got the shape "
                         f"{list(input.shape)}", "K is the in_features of the layers")
    y: torch.Tensor = weight_gate.overload(flat_rows(input), gate, up, gate_alpha, up_alpha, rows,
                                           activation)
    return y if input.dim() == 2 else y.view(*input.shape[:-1], rows)


_planned_gated = planned(_gated)


class WeightOnlyGate(torch.nn.Module):
    """silu(gate(x)) * up(x) of two weight-only layers without biases, in one kernel.

    The kernel reads x once for both weights. Each fp32 sum is multiplied by the decode scale of its
    weights, silu(g) = g / (1 + exp(-g)) and the product are in fp32, and the result is rounded once
    to the dtype of x, where two layers and torch round three times more. K is never cut, so the
    bits of a row do not depend on how many there are. With the activation "gelu_tanh" the gate is
    g / (1 + exp(-sqrt(8 / pi) (g + 0.044715 g^3))), GELU by tanh.

    x is [..., in_features], bfloat16, or float16 beside NVFP4; targets are those of
    WeightOnlyLinear. No gradient flows.

    Args:
        gate, up: of one in_features, out_features and format.
        activation: "silu" or "gelu_tanh".

    Raises:
        UsageError: layers that differ, or have a bias, or another activation.
    """

    def __init__(self, gate: WeightOnlyLinear, up: WeightOnlyLinear,
                 activation: str = "silu") -> None:
        super().__init__()
        _check_activation(activation)
        for name, layer in (("gate", gate), ("up", up)):
            if not isinstance(layer, WeightOnlyLinear):
                raise UsageError(f"'{name}' must be a WeightOnlyLinear, but is a "
                                 f"{type(layer).__name__}",
                                 "fp4.torch.quantize_(model, weight_only=True) makes them")
            if layer.bias is not None:
                raise UsageError(f"'{name}' must have no bias, but has one",
                                 "call both layers, and silu and mul of torch")
        _check_alike(1, up, gate)
        if up.out_features != gate.out_features:
            raise UsageError(f"'up' must have the {gate.out_features} out_features of 'gate', but "
                             f"has {up.out_features}", "a gated unit multiplies their results")
        self.in_features, self.out_features = gate.in_features, gate.out_features
        self.gate, self.up, self.activation = gate, up, activation

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        gate, up = self.gate._buffers, self.up._buffers
        y: torch.Tensor = _planned_gated(input, gate["packed"], up["packed"], gate["alpha"],
                                         up["alpha"], self.in_features, self.out_features,
                                         self.activation)
        return y
