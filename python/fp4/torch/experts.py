"""The experts of a mixture with 16-bit activations and 4-bit weights that are prepacked, and their
operation:

    expert_mm(x, packed, offsets, alpha?, bias?, gate_packed?, gate_alpha?, gate_bias?, activation)
        -> [M, N]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from ..errors import UsageError
from . import expert_programs, programs, weight_programs
from . import functional as fp4
from .execution import run
from .ops import _operation
from .scaled import Scaled
from .weight_only import _check_tiles, _element, _facts, moved_scale

_ops = torch.ops.fp4
_Optional = torch.Tensor | None


def _expert_mm(x: torch.Tensor, packed: torch.Tensor, offsets: torch.Tensor, alpha: _Optional,
               bias: _Optional, gate_packed: _Optional, gate_alpha: _Optional,
               gate_bias: _Optional, activation: str) -> torch.Tensor:
    rows, columns, format = _facts(packed)
    experts = int(offsets.shape[0]) - 1
    n = rows // experts
    element = _element(x.dtype, format)
    if not x.shape[0]:
        return x.new_empty((0, n))
    what = expert_programs.Product(
        int(x.shape[0]), experts, n, columns, element, format, alpha is not None, _name(bias),
        "" if gate_packed is None else activation, _name(gate_bias))
    result: torch.Tensor = run(
        partial(expert_programs.product, what), x, packed, offsets, alpha, _rows(bias), gate_packed,
        gate_alpha, _rows(gate_bias), target=weight_programs.TARGET)
    return result


def _expert_mm_fake(x: torch.Tensor, packed: torch.Tensor, offsets: torch.Tensor,
                    *rest: Any) -> torch.Tensor:
    return x.new_empty((x.shape[0], _facts(packed)[0] // (int(offsets.shape[0]) - 1)))


def _name(bias: _Optional) -> str:
    return "" if bias is None else programs.ELEMENTS[bias.dtype]


def _rows(bias: _Optional) -> _Optional:
    """A bias [E, N] as the row of each group."""
    return None if bias is None else bias.view(bias.shape[0], 1, bias.shape[1])


expert_mm = _operation(
    "expert_mm(Tensor x, Tensor packed, Tensor offsets, Tensor? alpha, Tensor? bias, "
    "Tensor? gate_packed, Tensor? gate_alpha, Tensor? gate_bias, str activation) -> Tensor",
    _expert_mm, _expert_mm_fake)


class WeightOnlyExperts(torch.nn.Module):
    """The experts of a mixture, with 16-bit activations and weights stored in NVFP4 or MXFP4: rows
    offsets[e] to offsets[e + 1] of x, sorted by expert, times the weight of expert e, in one kernel
    behind the small one that makes the table of tiles.

    With `gates` it is a gated layer: y = activation(x gate^T + gate_bias, x weight^T + bias). The
    sums, the biases and the activation are in fp32, and y is rounded once, to the dtype of x.

    | activation | of gate g and up u |
    |---|---|
    | silu | g * sigmoid(g) * u, SwiGLU |
    | gpt_oss | min(g, 7) * sigmoid(1.702 min(g, 7)) * (clamp(u, -7, 7) + 1) |

    x is [M, in_features] in bfloat16, or float16 beside NVFP4, contiguous. Rows of no expert are
    zero. CUDA tensors need a GPU that WeightOnlyLinear runs on; CPU tensors run in the simulator. A
    program is compiled for each number of rows M, at the first call with it. There is no gradient.

    Attributes:
        packed, gate_packed: uint8 [experts * out_features/128, in_features/64, bytes of a tile];
            gate_packed is None without gates.
        alpha, gate_alpha: float32 [experts], the decode scales of the weights; None where the
            recipe has no scale of the tensor.
        bias, gate_bias: [experts, out_features] or None.

    Args:
        weights: [out_features, in_features] of each expert, multiples of 128 and 64, of one shape
            and format.
        bias: bfloat16, float16 or float32.
        gates, gate_bias: as weights and bias.
        activation: "silu" or "gpt_oss"; without effect where there are no gates.
    Raises:
        UsageError: sizes or a dtype for which there is no kernel, or offsets that decrease, which
            the device tells (docs/Diagnostics.md).
    """

    packed: torch.Tensor
    gate_packed: torch.Tensor | None
    alpha: torch.Tensor | None
    gate_alpha: torch.Tensor | None
    bias: torch.nn.Parameter | None
    gate_bias: torch.nn.Parameter | None

    def __init__(self, weights: Sequence[Scaled], bias: torch.nn.Parameter | None = None, *,
                 gates: Sequence[Scaled] | None = None,
                 gate_bias: torch.nn.Parameter | None = None, activation: str = "silu") -> None:
        super().__init__()
        if activation not in expert_programs.ACTIVATIONS:
            raise UsageError("'activation' must be one of "
                             f"{', '.join(expert_programs.ACTIVATIONS)}, but got '{activation}'")
        first = _check_experts(weights, "weights")
        self.experts, self.activation, self.format = len(weights), activation, first.format
        self.out_features, self.in_features = first.shape
        _check_tiles(*first.shape)
        if gates is None and gate_bias is not None:
            raise UsageError("'gate_bias' must come with 'gates', but there are none")
        if gates is not None:
            _check_gates(weights, gates)
        for what, value in (("bias", bias), ("gate_bias", gate_bias)):
            _check_bias(value, what, (self.experts, self.out_features), first.device)
        for prefix, some in (("", weights), ("gate_", gates)):
            packed, alpha = (None, None) if some is None else _pack(some)
            self.register_buffer(f"{prefix}packed", packed)
            self.register_buffer(f"{prefix}alpha", alpha)
        self.register_parameter("bias", bias)
        self.register_parameter("gate_bias", gate_bias)

    def forward(self, input: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """y [M, out_features] of x [M, in_features] and int64 offsets [experts + 1]."""
        fp4._check_input(input, "input")
        if input.dim() != 2 or input.shape[1] != self.in_features:
            raise UsageError(f"'input' must have the shape [M, {self.in_features}], but got "
                             f"{list(input.shape)}", "K is the in_features of the experts")
        if offsets.dtype != torch.int64 or tuple(offsets.shape) != (self.experts + 1,):
            raise UsageError(f"'offsets' must be int64 of shape [{self.experts + 1}], but got "
                             f"{str(offsets.dtype)[6:]} of shape {list(offsets.shape)}",
                             "they are the first row of each expert and the end of the last")
        fp4._check_devices(input=input, weight=self.packed, offsets=offsets)
        if torch.is_autocast_enabled(input.device.type):
            input = input.to(torch.get_autocast_dtype(input.device.type))
        y: torch.Tensor = _ops.expert_mm(input, self.packed, offsets, self.alpha, self.bias,
                                         self.gate_packed, self.gate_alpha, self.gate_bias,
                                         self.activation)
        return y

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> WeightOnlyExperts:
        scales = self.alpha, self.gate_alpha
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.alpha, self.gate_alpha = (moved_scale(scale, fn) for scale in scales)
        return self

    def extra_repr(self) -> str:
        gate = f", activation={self.activation}" if self.gate_packed is not None else ""
        return (f"experts={self.experts}, in_features={self.in_features}, "
                f"out_features={self.out_features}, bias={self.bias is not None}, "
                f"format={self.format}{gate}")


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


def _pack(weights: Sequence[Scaled]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The tiles of all experts, one behind the other, and the scale of each."""
    linear = [fp4.swizzle(weight, "linear") for weight in weights]
    data = torch.cat([fp4._typed(weight.data).view(torch.uint8) for weight in linear])
    scales = torch.cat([fp4._typed(weight.scales, weight).view(torch.uint8) for weight in linear])
    packed = _ops.prepack(data, scales, weights[0].format)
    found = [weight.decode_scale for weight in weights]
    return packed, torch.stack([scale for scale in found if scale is not None]) if all(
        scale is not None for scale in found) else None
