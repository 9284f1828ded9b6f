"""Experts of vLLM with prepacked 4-bit weights."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from vllm.model_executor.layers.fused_moe.activation import MoEActivation
from vllm.model_executor.layers.fused_moe.fused_moe_method_base import FusedMoEMethodBase
from vllm.model_executor.utils import set_weight_attrs

from ..errors import UsageError
from ..torch.experts import WeightOnlyExperts
from ..torch.recipes import BLOCKS
from ..torch.routed import RoutedExperts
from ..torch.scaled import SCALE_DTYPES, Scaled
from ._linear import decode_of, matrix
from ._scheme import Scheme

#: The activations of fp4 by those of vLLM, and whether rows of gates and ups are in turns.
#: SWIGLUOAI_UNINTERLEAVE has numbers of the layer (`_with_numbers`).
_ACTIVATIONS = {MoEActivation.SILU: ("silu", False), MoEActivation.SWIGLUOAI: ("gpt_oss", True),
                MoEActivation.SWIGLUOAI_UNINTERLEAVE: ("gpt_oss", False)}


class ExpertsMethod(FusedMoEMethodBase):  # type: ignore[misc]
    """Loads the experts of a rank by vLLM's parameters, prepacks them once, and runs a layer as one
    program behind vLLM's choice of experts."""

    def __init__(self, scheme: Scheme, moe: Any) -> None:
        super().__init__(moe)
        self.scheme = scheme
        if moe.activation not in _ACTIVATIONS:
            raise UsageError(f"experts must have one of the activations "
                             f"{', '.join(one.value for one in _ACTIVATIONS)}, but have "
                             f"{moe.activation.value}", "vLLM has kernels of others")

    def uses_weight_scale_2_pattern(self) -> bool:
        return self.scheme.names.scale == "weight_scale_2"

    def get_fused_moe_quant_config(self, layer: Any) -> None:
        """Nothing of vLLM's kernels is used."""

    def maybe_roundup_sizes(self, hidden_size: int, intermediate_size_per_partition: int,
                            act_dtype: torch.dtype, moe_parallel_config: Any) -> tuple[int, int]:
        """Rounds to whole blocks of scales, which the loader gives each rank: zeros are behind."""
        hidden, inner = super().maybe_roundup_sizes(hidden_size, intermediate_size_per_partition,
                                                    act_dtype, moe_parallel_config)
        block = BLOCKS[self.scheme.format]
        return hidden, -(-inner // block) * block

    def create_weights(self, layer: Any, num_experts: int, hidden_size: int,
                       intermediate_size_per_partition: int, params_dtype: torch.dtype,
                       **extra_weight_attrs: Any) -> None:
        names, block = self.scheme.names, BLOCKS[self.scheme.format]
        scales = SCALE_DTYPES["nvfp4"] if self.scheme.format == "nvfp4" else torch.uint8
        inner = intermediate_size_per_partition
        for prefix, rows, columns, parts in (("w13", 2 * inner, hidden_size, (2,)),
                                             ("w2", hidden_size, inner, ())):
            tensors = {names.weight: torch.zeros(num_experts, rows, columns // 2,
                                                 dtype=torch.uint8),
                       "weight_scale": torch.zeros(num_experts, rows, columns // block,
                                                   dtype=scales)}
            for name in filter(None, (names.scale, names.input)):
                tensors[name] = torch.ones(num_experts, *parts, dtype=torch.float32)
            if self.scheme.experts_alone:
                tensors["bias"] = torch.zeros(num_experts, rows, dtype=params_dtype)
            for name, value in tensors.items():
                parameter = torch.nn.Parameter(value, requires_grad=False)
                layer.register_parameter(f"{prefix}_{name}", parameter)
                kind = "tensor" if name in (names.scale, names.input) else (
                    "block" if self.uses_weight_scale_2_pattern() else "group")
                set_weight_attrs(parameter, {**extra_weight_attrs, "quant_method": kind})

    def process_weights_after_loading(self, layer: Any) -> None:
        activation, in_turns = _ACTIVATIONS[layer.activation]
        activation, limit, slope = _with_numbers(layer, activation)
        both, below = _taken(layer, "w13", self.scheme), _taken(layer, "w2", self.scheme)
        gate, up = (both.half(number, in_turns) for number in (0, 1))
        layer.fp4 = RoutedExperts(
            WeightOnlyExperts(up.matrices(self.scheme), up.parameter(),
                              gates=gate.matrices(self.scheme), gate_bias=gate.parameter(),
                              activation=activation, limit=limit, alpha=slope),
            WeightOnlyExperts(below.matrices(self.scheme), below.parameter()),
            first=_first_of(layer), total=layer.global_num_experts)

    def apply(self, layer: Any, x: torch.Tensor, topk_weights: torch.Tensor,
              topk_ids: torch.Tensor, shared_experts: Any,
              shared_experts_input: torch.Tensor | None) -> torch.Tensor:
        """Adds the results of this rank's experts; vLLM runs shared experts."""
        del shared_experts, shared_experts_input
        if layer.apply_router_weight_on_input:
            raise UsageError("'apply_router_weight_on_input' must be off, but is on",
                             "vLLM has kernels of such layers")
        y: torch.Tensor = layer.fp4(x, topk_ids, topk_weights)
        return y


def _with_numbers(layer: Any, activation: str) -> tuple[str, float | None, float | None]:
    """The activation of a layer with its limit and slope: min(gate, limit) * sigmoid(slope * gate)
    times up + beta, where beta is 0 ("silu") or 1 ("gpt_oss"). Raises UsageError."""
    if layer.activation is not MoEActivation.SWIGLUOAI_UNINTERLEAVE:
        return activation, layer.swiglu_limit, layer.swiglu_alpha
    slope = 1.0 if layer.swiglu_alpha is None else layer.swiglu_alpha
    beta = getattr(layer, "swiglu_beta", None) or 0.0
    if beta not in (0.0, 1.0) or (beta == 0.0 and slope != 1.0):
        raise UsageError(f"'swiglu_beta' must be 1, or 0 with 'swiglu_alpha' 1, but got {beta} and "
                         f"{slope}", "vLLM has kernels of such layers")
    return ("gpt_oss" if beta else "silu"), layer.swiglu_limit, slope if beta else None


@dataclasses.dataclass(frozen=True)
class _Stack:
    """The tensors of a matrix of all experts, [experts, rows, ...]; `scale` is [experts], or
    [experts, 2] of two halves."""

    codes: torch.Tensor
    scales: torch.Tensor
    scale: torch.Tensor | None
    bias: torch.Tensor | None

    def half(self, number: int, in_turns: bool) -> _Stack:
        """The rows of gates (0) or of ups (1)."""
        rows = self.codes.shape[1]
        part = slice(number, None, 2) if in_turns else slice(number * rows // 2,
                                                             (number + 1) * rows // 2)
        return _Stack(self.codes[:, part].contiguous(), self.scales[:, part].contiguous(),
                      None if self.scale is None else self.scale[:, number],
                      None if self.bias is None else self.bias[:, part].contiguous())

    def matrices(self, scheme: Scheme) -> list[Scaled]:
        found = [matrix(*one, scheme.format) for one in zip(self.codes, self.scales)]
        if self.scale is None:
            return found
        return [Scaled.from_decode_scale(one.data, one.scales, scale, shape=one.shape,
                                         format=one.format, layout="linear")
                for one, scale in zip(found, decode_of(self.scale, scheme.names.is_encode))]

    def parameter(self) -> torch.nn.Parameter | None:
        return None if self.bias is None else torch.nn.Parameter(self.bias, requires_grad=False)


def _taken(layer: Any, prefix: str, scheme: Scheme) -> _Stack:
    """The tensors of a matrix, whose parameters the layer loses."""
    names = scheme.names
    found = {}
    for name in filter(None, (names.weight, "weight_scale", names.scale, names.input, "bias")):
        value = layer._parameters.get(f"{prefix}_{name}")
        if value is not None:
            found[name] = value.data
            delattr(layer, f"{prefix}_{name}")
    return _Stack(found[names.weight], found["weight_scale"], found.get(names.scale),
                  found.get("bias"))


def _first_of(layer: Any) -> int:
    """The number of the first expert of the rank, whose experts follow one another."""
    numbers = layer.expert_map_manager.expert_map
    if numbers is None:
        return 0
    here = (numbers >= 0).nonzero().flatten().tolist()
    if here != list(range(here[0], here[0] + layer.local_num_experts)):
        raise UsageError(f"experts of a rank must follow one another, but are {here}",
                         "pass --expert-placement-strategy linear")
    return int(here[0])
