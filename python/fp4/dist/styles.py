"""torch's styles of tensor parallelism, for layers whose weights are stored in 4 bits."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.tensor import DTensor, Partial, Placement, Shard, parallel

from ..errors import UsageError
from ..torch import QuantizedLinear, Scaled, WeightOnlyLinear, functional
from ..torch.shards import part_of

#: Attributes that a rank's part of a layer has of its own.
_PARTS = ("_parameters", "_buffers", "_modules", "in_features", "out_features")


class ColwiseParallel(parallel.ColwiseParallel):
    """torch.distributed.tensor.parallel.ColwiseParallel, which also splits layers with weights in 4
    bits: each rank has rows of the weight, and computes columns of y."""

    def _apply(self, module: torch.nn.Module, device_mesh: Any) -> torch.nn.Module:
        if not isinstance(module, (QuantizedLinear, WeightOnlyLinear)):
            return super()._apply(module, device_mesh)
        return _split(self, module, 0, device_mesh, self.desired_input_layouts, Shard(-1))


class RowwiseParallel(parallel.RowwiseParallel):
    """torch.distributed.tensor.parallel.RowwiseParallel, which also splits layers with weights in 4
    bits: each rank has columns of the weight, and y is the sum of matmuls in the dtype of x. The
    rank of a QuantizedLinear has an amax for its columns of each row of x."""

    def _apply(self, module: torch.nn.Module, device_mesh: Any) -> torch.nn.Module:
        if not isinstance(module, (QuantizedLinear, WeightOnlyLinear)):
            return super()._apply(module, device_mesh)
        return _split(self, module, 1, device_mesh, (Shard(-1),), Partial())


def _split(style: Any, layer: QuantizedLinear | WeightOnlyLinear, dim: int, mesh: Any,
           inputs: tuple[Placement, ...], output: Placement) -> torch.nn.Module:
    """Leaves the layer this rank's part, and lets hooks place x and y."""
    part = _part(layer, dim, mesh.get_local_rank(), mesh.size())
    for name in _PARTS:
        setattr(layer, name, getattr(part, name))

    def before(module: torch.nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        x = style._prepare_input_fn(style.input_layouts, inputs, module, given, mesh)
        return (x.to_local(), *given[1:])

    def after(module: torch.nn.Module, given: Any, y: torch.Tensor) -> Any:
        del given
        placed = DTensor.from_local(y, mesh, (output,), run_check=False)
        return style._prepare_output_fn(style.output_layouts, style.use_local_output, module,
                                        placed, mesh)

    layer.register_forward_pre_hook(before)
    layer.register_forward_hook(after)
    return layer


def _part(layer: QuantizedLinear | WeightOnlyLinear, dim: int, rank: int,
          ranks: int) -> QuantizedLinear | WeightOnlyLinear:
    """The layer of rows (0) or columns (1) of the weight. Rank 0 alone adds the bias of a sum."""
    if isinstance(layer, WeightOnlyLinear):
        return part_of(layer, dim, rank, ranks)
    whole = functional.swizzle(layer.unpack(), "linear")
    unit = ranks * (whole.block if dim else 1)
    if whole.shape[dim] % unit:
        raise UsageError(f"{'in_features' if dim else 'out_features'} must be a multiple of {unit} "
                         f"for {ranks} ranks, but is {whole.shape[dim]}", "leave this layer whole")
    data, scales = (tensor.view(torch.uint8).chunk(ranks, dim)[rank].contiguous()
                    for tensor in (whole.data, whole.scales))
    amax, bias = whole.amax, layer.bias
    if amax is not None and amax.dim() and not dim:
        amax = amax.chunk(ranks)[rank].clone()
    if bias is not None and not dim:
        bias = torch.nn.Parameter(bias.detach().chunk(ranks)[rank].clone(), bias.requires_grad)
    elif bias is not None and rank:
        bias = torch.nn.Parameter(torch.zeros_like(bias), bias.requires_grad)
    shape = tuple(size // ranks if axis == dim else size for axis, size in enumerate(whole.shape))
    weight = Scaled(data, scales, amax, (shape[0], shape[1]), whole.format, "linear", whole.recipe)
    return QuantizedLinear(weight, bias, layer.input_amax, activations=layer.activations)
