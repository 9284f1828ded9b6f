"""The experts of a mixture with weights of E4M3 and float32 scales of blocks, as DeepSeek-V3 stores
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..errors import UsageError
from .expert_programs import ACTIVATIONS, FP8, FP8_BLOCK, Gate


class FP8Experts(torch.nn.Module):
    """A part of RoutedExperts with weights of E4M3 and float32 scales of 128 x 128, as DeepSeek-V3
    has. Rows of x become E4M3 with scales of 1 x 128; nothing has gradients.

    Args:
        weight: float8_e4m3fn [experts, rows, columns] of multiples of 128; with an `activation`
            gates lie before up projections.
        scales: float32 [experts, rows/128, columns/128].
        activation: as in WeightOnlyExperts, or "".
    """

    packed: torch.Tensor
    alpha: torch.Tensor
    w4a8 = False

    def __init__(self, weight: torch.Tensor, scales: torch.Tensor, *, activation: str = "") -> None:
        super().__init__()
        if activation and activation not in ACTIVATIONS:
            raise UsageError("'activation' must be one of "
                             f"{', '.join(ACTIVATIONS)}, but got '{activation}'")
        parts = 2 if activation else 1
        if (weight.dim() != 3 or weight.dtype != torch.float8_e4m3fn or not weight.numel() or
                weight.shape[1] % (parts * FP8_BLOCK) or weight.shape[2] % FP8_BLOCK):
            raise UsageError(f"'weight' must be float8_e4m3fn [experts, rows, columns] with rows a "
                             f"multiple of {parts * FP8_BLOCK} and columns of {FP8_BLOCK}, but got "
                             f"{str(weight.dtype)[6:]} {list(weight.shape)}",
                             "pad rows and columns with zeros")
        self.experts, rows, self.in_features = weight.shape
        shape = [self.experts, rows // FP8_BLOCK, self.in_features // FP8_BLOCK]
        if scales.dtype != torch.float32 or list(scales.shape) != shape:
            raise UsageError(f"'scales' must be float32 {shape}, one for each block, but got "
                             f"{str(scales.dtype)[6:]} {list(scales.shape)}")
        if scales.device != weight.device:
            raise UsageError("'weight' and 'scales' must be on one device, but are on "
                             f"{weight.device} and {scales.device}",
                             "move one of them with .to(device)")
        self.out_features, self.activation, self.format = rows // parts, activation, FP8
        self.limit = self.slope = None
        for name, value in (("packed", weight), ("alpha", scales)):
            self.register_buffer(name, value.detach().contiguous().flatten(0, 1))
        for name in ("gate_packed", "gate_alpha"):
            self.register_buffer(name, None)
        for name in ("bias", "gate_bias"):
            self.register_parameter(name, None)

    @property
    def gate(self) -> Gate | None:
        return ACTIVATIONS[self.activation] if self.activation else None

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        raise UsageError("FP8Experts must be called as a part of RoutedExperts",
                         "make RoutedExperts(gate_up, down) of two of them")

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> FP8Experts:
        """Moves tensors as integers, which no conversion of floating point touches."""
        packed, alpha = self.packed, self.alpha
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.packed = fn(packed.view(torch.uint8)).view(packed.dtype)
        self.alpha = fn(alpha.view(torch.int32)).view(alpha.dtype)
        return self

    def extra_repr(self) -> str:
        return (f"experts={self.experts}, in_features={self.in_features}, "
                f"out_features={self.out_features}, activation={self.activation!r}")
