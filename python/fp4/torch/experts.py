"""The experts of a mixture with activations of 16 bits or E4M3 and 4-bit weights that are
prepacked, and their operation:

    expert_mm(x, packed, offsets, alpha?, bias?, gate_packed?, gate_alpha?, gate_bias?, activation,
              limit?, slope?, rows) -> [M, rows]
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from ..errors import UsageError
from . import expert_programs, programs, weight_programs
from . import functional as fp4
from .execution import run
from .expert_programs import ACTIVATIONS, Gate
from .operation import Operation
from .planned import planned
from .programs import Runnable
from .scaled import Scaled
from .strides import flat_rows, padded, placed
from .w4a8 import check_range, rounded
from .w4a8 import known_sizes as sizes_of_bytes
from .w4a8 import packed_tiles as packed_bytes
from .w4a8 import unpacked as unpacked_bytes
from .weight_only import (
    element_of,
    facts_of,
    in_bf16,
    known_facts,
    moved_scale,
    packed_tiles,
    quantized,
    times_weight,
    unpacked,
)

_Optional = torch.Tensor | None

#===--- The operation --------------------------------------------------===#


def _expert_mm(x: torch.Tensor, packed: torch.Tensor, offsets: torch.Tensor, alpha: _Optional,
               bias: _Optional, gate_packed: _Optional, gate_alpha: _Optional, gate_bias: _Optional,
               activation: str, limit: float | None, slope: float | None,
               rows: int) -> torch.Tensor:
    _, format, quantizes = facts_of_tiles(packed.shape)
    if not x.shape[0]:
        return x.new_empty((0, rows))
    depth = weight_programs.whole_blocks(x.shape[1], format)
    x, offsets = padded(x, depth), offsets.contiguous()
    if x.dtype == torch.float16 and format == "mxfp4" and not quantizes:
        return _in_two_parts(x, packed, offsets, bias, gate_packed, gate_bias,
                             _gate(gate_packed, activation, limit, slope), rows)
    facts = (experts_of(offsets), rows, depth, element_of(x.dtype, format), format,
             alpha is not None, offsets.dim() == 2, _name(bias), gate_packed is not None,
             activation, limit, slope, _name(gate_bias), x.dtype, quantizes)
    y: torch.Tensor = run(_product, facts, placed(x), offsets, packed, alpha, _rows(bias),
                          gate_packed, gate_alpha, _rows(gate_bias),
                          target=weight_programs.TARGET)
    return y


def _expert_mm_fake(x: torch.Tensor, packed: torch.Tensor, offsets: torch.Tensor,
                    *rest: Any) -> torch.Tensor:
    return x.new_empty((x.shape[0], rest[-1]))


def _product(experts: int, n: int, columns: int, element: str, format: str, has_scale: bool,
             has_ranges: bool, bias: str, is_gated: bool, activation: str, limit: float | None,
             slope: float | None, gate_bias: str, result: torch.dtype, quantizes: bool,
             target: str) -> Runnable:
    gate = gate_of(activation, limit, slope) if is_gated else None
    return expert_programs.product(expert_programs.Product(
        experts, n, columns, element, format, has_scale, has_ranges, bias, gate, gate_bias,
        programs.ELEMENTS[result], quantizes), target)


def facts_of_tiles(shape: torch.Size) -> tuple[int, str, bool]:
    """The rows and the format of prepacked weights of this shape, and whether they are for E4M3."""
    if shape[-1] == weight_programs.BYTE_TILE:
        return sizes_of_bytes(shape)[0], "mxfp4", True
    rows, _, format = known_facts(shape)
    return rows, format, False


def gate_of(activation: str, limit: float | None, slope: float | None) -> Gate:
    """The activation of this name, with the numbers that are given in the place of its own."""
    gate = ACTIVATIONS[activation]
    if limit is not None:
        gate = dataclasses.replace(gate, limit=limit)
    return gate if slope is None else dataclasses.replace(gate, slope=slope)


def _gate(packed: _Optional, activation: str, limit: float | None,
          slope: float | None) -> Gate | None:
    return None if packed is None else gate_of(activation, limit, slope)


def activated(gate: torch.Tensor, up: torch.Tensor, rule: Gate) -> torch.Tensor:
    """Applies the gate of a layer to its sums, in their dtype, by torch."""
    if rule.limit is not None:
        gate, up = gate.clamp(max=rule.limit), up.clamp(-rule.limit, rule.limit)
    inner = gate + rule.cubic * gate**3 if rule.cubic else gate
    return gate * torch.sigmoid(rule.slope * inner) * (up + rule.shift)


def experts_of(offsets: torch.Tensor) -> int:
    """Returns the number of experts of offsets [experts + 1] or [experts, 2]."""
    return int(offsets.shape[0]) - (offsets.dim() == 1)


def _name(bias: _Optional) -> str:
    return "" if bias is None else programs.ELEMENTS[bias.dtype]


def _rows(bias: _Optional) -> _Optional:
    """A bias [E, N] as the row of each group."""
    return None if bias is None else bias.contiguous().unsqueeze(1)


def _in_two_parts(x: torch.Tensor, packed: torch.Tensor, offsets: torch.Tensor, bias: _Optional,
                  gate_packed: _Optional, gate_bias: _Optional, gate: Gate | None,
                  rows: int) -> torch.Tensor:
    """The matmul of float16 and MXFP4: each row becomes two of bfloat16, one behind the other,
    whose sums are added in fp32."""
    format = facts_of(packed.shape)[2]
    parts, twice = in_bf16(x).transpose(0, 1).flatten(0, 1), 2 * offsets
    facts = (experts_of(offsets), rows, x.shape[1], "bf16", format, False, offsets.dim() == 2, "",
             False, "", None, None, "", torch.float32, False)
    owner = _owners(offsets, x.shape[0])

    def sums(weights: torch.Tensor, shift: _Optional) -> torch.Tensor:
        found: torch.Tensor = run(_product, facts, parts, twice, weights,
                                  target=weight_programs.TARGET)
        y = found.view(-1, 2, rows).sum(1)
        return y if shift is None else y + shift.float()[owner.clamp(min=0)]

    y = sums(packed, bias)
    if gate_packed is not None and gate is not None:
        y = activated(sums(gate_packed, gate_bias), y, gate)
    return torch.where((owner >= 0)[:, None], y, 0.0).to(x.dtype)  # rows of no expert are zero


def _owners(offsets: torch.Tensor, count: int) -> torch.Tensor:
    """The expert of each of `count` rows, or -1."""
    begin, end = (offsets[:-1], offsets[1:]) if offsets.dim() == 1 else offsets.unbind(1)
    rows = torch.arange(count, device=offsets.device)[:, None]
    inside = (rows >= begin) & (rows < end)
    return torch.where(inside.any(1), inside.int().argmax(1), -1)


expert_mm = Operation(
    "expert_mm(Tensor x, Tensor packed, Tensor offsets, Tensor? alpha, Tensor? bias, "
    "Tensor? gate_packed, Tensor? gate_alpha, Tensor? gate_bias, str activation, float? limit, "
    "float? slope, int rows) -> Tensor", _expert_mm, _expert_mm_fake)

#===--- Gradient -------------------------------------------------------===#


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs[:8])
    ctx.facts = inputs[8:]


def _backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    x, packed, offsets, alpha, bias, gate_packed, gate_alpha, gate_bias = ctx.saved_tensors
    *numbers, rows = ctx.facts
    gate = _gate(gate_packed, *numbers)
    is_e4m3 = facts_of_tiles(packed.shape)[2]
    dx, biases = torch.zeros_like(x), [None if b is None else torch.zeros_like(b)
                                       for b in (bias, gate_bias)]
    bounds = offsets.tolist()  # the host waits: experts have their matmuls one after the other
    pairs = bounds if offsets.dim() == 2 else list(itertools.pairwise(bounds))
    for number, (begin, end) in enumerate(pairs):
        if begin == end:
            continue
        weights = [_expert(tiles, scale, number, len(pairs), (rows, x.shape[1]))
                   for tiles, scale in ((packed, alpha), (gate_packed, gate_alpha))
                   if tiles is not None]
        shifts = [None if b is None else b[number] for b in (bias, gate_bias)]
        given = rounded(x[begin:end]) if is_e4m3 else x[begin:end]
        sums = _gradient_of_sums(given, dy[begin:end], weights, shifts, gate)
        parts = [times_weight(part.to(dy.dtype), weight)[:, :x.shape[1]]
                 for part, weight in zip(sums, weights)]
        dx[begin:end] = sum(parts[1:], parts[0])
        for total, part in zip(biases, sums):
            if total is not None:
                total[number] = part.sum(0, dtype=torch.float32).to(total.dtype)
    return (dx, None, None, None, biases[0], None, None, biases[1], None, None, None, None)


def _gradient_of_sums(x: torch.Tensor, dy: torch.Tensor, weights: list[Scaled],
                      shifts: list[_Optional], gate: Gate | None) -> list[torch.Tensor]:
    """The gradients of an expert's sums, and of those of its gate."""
    if gate is None:
        return [dy]
    sums = []
    for weight, shift in zip(weights, shifts):
        found = x.float() @ fp4.dequantize(weight, torch.float32)[:, :x.shape[1]].T
        sums.append((found if shift is None else found + shift.float()).requires_grad_())
    with torch.enable_grad():
        y = activated(sums[1], sums[0], gate)
    return list(torch.autograd.grad(y, sums, dy.float()))


def _expert(packed: torch.Tensor, alpha: _Optional, number: int, experts: int,
            shape: tuple[int, int]) -> Scaled:
    """The weights of one expert."""
    tiles = packed.shape[0] // experts
    if packed.shape[-1] == weight_programs.BYTE_TILE:
        return unpacked_bytes(packed[number * tiles:(number + 1) * tiles], shape)
    return unpacked(packed[number * tiles:(number + 1) * tiles],
                    None if alpha is None else alpha[number], shape)


expert_mm.register_autograd(_backward, setup_context=_keep)

#===--- The layer ------------------------------------------------------===#


def _experts(input: torch.Tensor, offsets: _Optional, packed: torch.Tensor, alpha: _Optional,
             bias: _Optional, gate_packed: _Optional, gate_alpha: _Optional, gate_bias: _Optional,
             activation: str, limit: float | None, slope: float | None, experts: int,
             columns: int, rows: int) -> torch.Tensor:
    """y [..., rows] of input [..., columns]."""
    fp4._check_input(input, "input")
    if input.shape[-1] != columns:
        raise UsageError(f"'input' must have the shape [M, {columns}], but got "
                         f"{list(input.shape)}", "K is the in_features of the experts")
    found = _offsets(input, offsets, experts)
    fp4._check_devices(input=input, weight=packed, offsets=found)
    if torch.is_autocast_enabled(input.device.type):
        input = input.to(torch.get_autocast_dtype(input.device.type))
    y: torch.Tensor = expert_mm.overload(
        flat_rows(input), packed, found, alpha, bias, gate_packed, gate_alpha, gate_bias,
        activation, limit, slope, rows)
    return y if input.dim() == 2 else y.view(*input.shape[:-1], rows)


_planned_experts = planned(_experts)


def _offsets(input: torch.Tensor, offsets: _Optional, count: int) -> torch.Tensor:
    """Returns the offsets of `count` experts in a form that the operation takes."""
    columns = input.shape[-1]
    if offsets is None:
        if input.dim() != 3 or input.shape[0] != count:
            raise UsageError(f"'offsets' must say which rows each of {count} experts has, but "
                             f"there are none and 'input' has the shape {list(input.shape)}",
                             f"without offsets it is [{count}, rows, {columns}]")
        return input.shape[1] * torch.arange(count + 1, device=input.device)
    shapes = ((count + 1,), (count,), (count, 2))
    if offsets.dtype not in (torch.int64, torch.int32) or tuple(offsets.shape) not in shapes:
        raise UsageError(f"'offsets' must be int64 or int32 of shape [{count + 1}], [{count}] "
                         f"or [{count}, 2], but got {str(offsets.dtype)[6:]} of shape "
                         f"{list(offsets.shape)}",
                         "they are the first row of each expert and the end of the last, the "
                         "end of each, or both of each")
    wide = offsets.to(torch.int64)
    return torch.nn.functional.pad(wide, (1, 0)) if tuple(wide.shape) == (count,) else wide


class WeightOnlyExperts(torch.nn.Module):
    """The experts of a mixture, with weights stored in NVFP4 or MXFP4: rows offsets[e] to
    offsets[e + 1] of x, sorted by expert, times the weight of expert e.

    With `gates` it is a gated layer: y = activation(x gate^T + gate_bias, x weight^T + bias). The
    sums, the biases and the activation are in fp32, and y is rounded once, to the dtype of x.

    | activation | of gate g and up u | limit | alpha |
    |---|---|---|---|
    | silu | g * sigmoid(alpha g) * u, SwiGLU | none | 1 |
    | gpt_oss | g * sigmoid(alpha g) * (u + 1) | 7 | 1.702 |
    | gelu_tanh | g * sigmoid(alpha (g + 0.044715 g^3)) * u | none | sqrt(8 / pi) |

    With a limit, g is min(g, limit) and u is clamp(u, -limit, limit) there.

    x is [M, in_features] in bfloat16 or float16, of any strides; or [experts, rows, in_features]
    without offsets. Rows of no expert are zero. Devices are those of WeightOnlyLinear. The
    gradient of x is that of dequantized weights; it waits for the offsets.

    Attributes:
        packed, gate_packed: uint8 [experts * ceil(out_features/128), ceil(in_features/64), bytes of
            a tile], or /128 of w4a8; gate_packed is None without gates.
        alpha, gate_alpha: float32 [experts], the decode scales of the weights; None where the
            recipe has no scale of the tensor.
        bias, gate_bias: [experts, out_features] or None.
        gate: the rule of the activation (fp4.torch.expert_programs.Gate), or None without gates.

    Args:
        weights: [out_features, in_features] of each, of one shape and format.
        bias: bfloat16, float16 or float32.
        gates, gate_bias: as weights and bias.
        activation: "silu", "gpt_oss" or "gelu_tanh"; without effect without gates.
        limit, alpha: None is what the table says.
        w4a8: rows of x become E4M3, as in W4A8Linear, beside MXFP4, on Hopper and sm_120a.

    Raises:
        UsageError: offsets that decrease or exceed the rows, which the device tells
            (docs/reference/diagnostics.md).
    """

    packed: torch.Tensor
    gate_packed: torch.Tensor | None
    alpha: torch.Tensor | None
    gate_alpha: torch.Tensor | None
    bias: torch.nn.Parameter | None
    gate_bias: torch.nn.Parameter | None

    def __init__(self, weights: Sequence[Scaled], bias: torch.nn.Parameter | None = None, *,
                 gates: Sequence[Scaled] | None = None,
                 gate_bias: torch.nn.Parameter | None = None, activation: str = "silu",
                 limit: float | None = None, alpha: float | None = None,
                 w4a8: bool = False) -> None:
        super().__init__()
        _check_activation(activation, limit, alpha, gates is not None)
        first = _check_experts(weights, "weights")
        if w4a8 and first.format != "mxfp4":
            raise UsageError(f"'weights' must be mxfp4 beside activations of E4M3, but got "
                             f"{first.format}", "leave out w4a8: 16-bit activations take "
                             f"{first.format}, or quantize with format='mxfp4'")
        self.experts, self.activation, self.format = len(weights), activation, first.format
        self.limit, self.slope = limit, alpha
        self.out_features, self.in_features = first.shape
        if gates is None and gate_bias is not None:
            raise UsageError("'gate_bias' must come with 'gates', but there are none")
        if gates is not None:
            _check_gates(weights, gates)
        for what, value in (("bias", bias), ("gate_bias", gate_bias)):
            _check_bias(value, what, (self.experts, self.out_features), first.device)
        for prefix, some in (("", weights), ("gate_", gates)):
            if w4a8 and some is not None:
                for number, weight in enumerate(some):
                    check_range(fp4.swizzle(weight, "linear"),
                                f"{'gates' if prefix else 'weights'}[{number}]")
            packed, scales = (None, None) if some is None else _pack(some, w4a8)
            self.register_buffer(f"{prefix}packed", packed)
            self.register_buffer(f"{prefix}alpha", scales)
        self.register_parameter("bias", bias)
        self.register_parameter("gate_bias", gate_bias)

    @classmethod
    def from_stack(cls, weight: torch.Tensor, bias: torch.nn.Parameter | None = None, *,
                   gate: torch.Tensor | None = None, format: str = "nvfp4", recipe: str = "",
                   **options: Any) -> WeightOnlyExperts:
        """Experts of weights [experts, out_features, in_features] of 16 or 32 bits, which are
        quantized one by one. `gate` is a stack like `weight`; options are those of the class."""
        stacks = [[quantized(one, format, recipe) for one in stack] if stack is not None else None
                  for stack in (weight, gate)]
        assert stacks[0] is not None
        made = cls(stacks[0], bias, gates=stacks[1], **options)
        made.in_features = int(weight.shape[2])
        return made

    @property
    def w4a8(self) -> bool:
        return self.packed.shape[-1] == weight_programs.BYTE_TILE

    @property
    def gate(self) -> Gate | None:
        return _gate(self.gate_packed, self.activation, self.limit, self.slope)

    def forward(self, input: torch.Tensor, offsets: torch.Tensor | None = None) -> torch.Tensor:
        """y [M, out_features] of x [M, in_features], or [experts, rows, out_features] of
        [experts, rows, in_features].

        Args:
            offsets: int64 or int32: [experts + 1], the first row of each expert and the end of the
                last; [experts], the end of each, of which the first begins at row 0; or
                [experts, 2], the first row and the end of each.
        """
        buffers: dict[str, Any] = self._buffers
        parameters = self._parameters
        call = _experts if is_dynamo_compiling() else _planned_experts
        y: torch.Tensor = call(
            input, offsets, buffers["packed"], buffers["alpha"], parameters["bias"],
            buffers["gate_packed"], buffers["gate_alpha"], parameters["gate_bias"],
            self.activation, self.limit, self.slope, self.experts, self.in_features,
            self.out_features)
        return y

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> WeightOnlyExperts:
        scales = self.alpha, self.gate_alpha
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.alpha, self.gate_alpha = (moved_scale(scale, fn) for scale in scales)
        return self

    def extra_repr(self) -> str:
        gate = f", activation={self.activation}" if self.gate_packed is not None else ""
        for name, number in (("limit", self.limit), ("alpha", self.slope)):
            gate += "" if number is None else f", {name}={number:g}"
        return (f"experts={self.experts}, in_features={self.in_features}, "
                f"out_features={self.out_features}, bias={self.bias is not None}, "
                f"format={self.format}{', w4a8' * self.w4a8}{gate}")


def _check_activation(activation: str, limit: float | None, alpha: float | None,
                      is_gated: bool) -> None:
    if activation not in ACTIVATIONS:
        raise UsageError("'activation' must be one of "
                         f"{', '.join(ACTIVATIONS)}, but got '{activation}'")
    for name, number in (("limit", limit), ("alpha", alpha)):
        if number is not None and not 0 < number < float("inf"):
            raise UsageError(f"'{name}' must be a positive number, but got {number}",
                             "leave it out for that of the activation")
        if number is not None and not is_gated:
            raise UsageError(f"'{name}' must come with 'gates', but there are none",
                             "it is a number of the activation of a gated layer")


def _check_experts(weights: Sequence[Scaled], name: str) -> Scaled:
    """The first of matrices of one shape and format."""
    for number, weight in enumerate(weights):
        fp4._check_scaled(weight, f"{name}[{number}]")
    if not weights:
        raise UsageError(f"'{name}' must have a matrix for each expert, but there is none")
    first = weights[0]
    for number, weight in enumerate(weights):
        if (weight.shape, weight.format, weight.device) != (first.shape, first.format,
                                                            first.device):
            raise UsageError(f"'{name}' must be of one shape, format and device, but {name}[0] is "
                             f"{first} and {name}[{number}] is {weight}")
        if (weight.amax is None) != (first.amax is None) or (
                weight.amax is not None and weight.amax.dim()):
            raise UsageError(f"'{name}' must have one amax for each expert, or none of them, but "
                             f"{name}[{number}] has "
                             f"{'none' if weight.amax is None else list(weight.amax.shape)}",
                             "quantize without per_row, and with one recipe")
    return first


def _check_gates(weights: Sequence[Scaled], gates: Sequence[Scaled]) -> None:
    first, gate = weights[0], _check_experts(gates, "gates")
    if (len(gates), gate.shape, gate.format, gate.device, gate.amax is None) != (
            len(weights), first.shape, first.format, first.device, first.amax is None):
        raise UsageError("'gates' must be as 'weights', which are "
                         f"{len(weights)} of {first}, but got {len(gates)} of {gate}")


def _check_bias(bias: torch.Tensor | None, name: str, shape: tuple[int, int],
                device: torch.device) -> None:
    if bias is None:
        return
    if tuple(bias.shape) != shape or bias.dtype not in programs.ELEMENTS:
        raise UsageError(f"'{name}' must be bfloat16, float16 or float32 of shape {list(shape)}, "
                         f"but got {str(bias.dtype)[6:]} of shape {list(bias.shape)}",
                         "nothing is converted; it has a row for each expert")
    if bias.device != device:
        raise UsageError(f"'weights' and '{name}' must be on one device, but are on {device} and "
                         f"{bias.device}", "move one of them with .to(device)")


def _pack(weights: Sequence[Scaled], w4a8: bool) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The tiles of all experts, one behind the other, and the scale of each."""
    tiles = packed_bytes if w4a8 else packed_tiles
    packed = torch.cat([tiles(fp4.swizzle(weight, "linear")) for weight in weights])
    found = [weight.decode_scale for weight in weights]
    return packed, torch.stack([scale for scale in found if scale is not None]) if all(
        scale is not None for scale in found) else None
