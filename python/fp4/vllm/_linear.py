"""Linear layers of vLLM with prepacked 4-bit weights."""

from __future__ import annotations

from typing import Any

import torch
from torch.compiler import is_dynamo_compiling
from vllm.model_executor.layers.linear import (
    LinearMethodBase,
    register_weight_loader_v2_supported_method,
)
from vllm.model_executor.parameter import (
    GroupQuantScaleParameter,
    ModelWeightParameter,
    PerTensorScaleParameter,
)

from ..torch import weight_only
from ..torch.recipes import BLOCKS
from ..torch.scaled import SCALE_DTYPES, Scaled
from ._scheme import Scheme

#: Recipes of matrices whose scale of the tensor is applied behind the matmul.
_RECIPES = {"nvfp4": "torchao_1level", "mxfp4": "ocp_floor"}


@register_weight_loader_v2_supported_method  # type: ignore[untyped-decorator, unused-ignore]
class FP4LinearMethod(LinearMethodBase):  # type: ignore[misc]
    """Loads the tensors of a checkpoint by vLLM's parameters, prepacks them once, and multiplies
    by fp4.torch's W4A16 kernels."""

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme

    def create_weights(self, layer: Any, input_size_per_partition: int,
                       output_partition_sizes: list[int], input_size: int, output_size: int,
                       params_dtype: torch.dtype, **extra_weight_attrs: Any) -> None:
        del input_size, output_size, params_dtype
        names, format = self.scheme.names, self.scheme.format
        rows, columns = sum(output_partition_sizes), input_size_per_partition
        layer.logical_widths = output_partition_sizes
        layer.input_size_per_partition = columns
        layer.output_size_per_partition = rows
        loader = extra_weight_attrs["weight_loader"]
        scales = torch.uint8 if format == "mxfp4" else SCALE_DTYPES[format]
        for kind, name, size, dtype in (
                (ModelWeightParameter, names.weight, columns // 2, torch.uint8),
                (GroupQuantScaleParameter, "weight_scale", columns // BLOCKS[format], scales)):
            layer.register_parameter(name, kind(
                data=torch.empty(rows, size, dtype=dtype), input_dim=1, output_dim=0,
                weight_loader=loader))
        for name in filter(None, (names.scale, names.input)):
            layer.register_parameter(name, PerTensorScaleParameter(
                data=torch.empty(len(output_partition_sizes), dtype=torch.float32),
                weight_loader=loader))

    def process_weights_after_loading(self, layer: Any) -> None:
        names = self.scheme.names
        weight, scales = getattr(layer, names.weight).data, layer.weight_scale.data
        layer.packed = _parameter(weight_only.packed_tiles(matrix(weight, scales,
                                                                  self.scheme.format)))
        layer.alpha = None
        if names.scale:  # each part has a scale of its own
            decode = decode_of(getattr(layer, names.scale).data, names.is_encode)
            widths = torch.tensor(layer.logical_widths, device=decode.device)
            layer.alpha = _parameter(decode.repeat_interleave(widths))
        for name in filter(None, (names.weight, "weight_scale", names.scale, names.input)):
            delattr(layer, name)

    def apply(self, layer: Any, x: torch.Tensor,
              bias: torch.Tensor | None = None) -> torch.Tensor:
        call = weight_only._linear if is_dynamo_compiling() else weight_only._planned_linear
        y: torch.Tensor = call(x, layer.packed, layer.alpha, bias, layer.input_size_per_partition,
                               layer.output_size_per_partition, False)
        return y


def matrix(codes: torch.Tensor, scales: torch.Tensor, format: str) -> Scaled:
    """A matrix of codes, uint8 [rows, columns/2], and scales of blocks alone."""
    shape = (codes.shape[0], 2 * codes.shape[1])
    return Scaled(codes.view(torch.float4_e2m1fn_x2), scales.view(SCALE_DTYPES[format]), None,
                  shape, format, "linear", _RECIPES[format])


def decode_of(scale: torch.Tensor, is_encode: bool) -> torch.Tensor:
    """The factors of tensors, of those of a checkpoint."""
    return (1.0 / scale if is_encode else scale).float()


def _parameter(value: torch.Tensor) -> torch.nn.Parameter:
    return torch.nn.Parameter(value, requires_grad=False)
