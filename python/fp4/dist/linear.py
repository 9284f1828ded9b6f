"""Linear layers that the ranks of a group share, with weights in 4 bits.

    column-parallel   W = [W_0; W_1; ...]   rank r computes Y_r = X W_r^T, its columns of Y
    row-parallel      W = [W_0, W_1, ...]   rank r computes X_r W_r^T; Y is the sum over ranks

With sequence parallelism the rows of activations are sharded outside the pair of layers: the
column-parallel layer gathers X, quantized, and the row-parallel layer leaves each rank its rows of
Y. Without it X and Y are whole on every rank.

Y of a column-parallel layer has the bits of the layer that is not sharded. A row-parallel layer
adds its fp32 parts in another order than a tensor core does; the result is that sum, rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..errors import UsageError
from ..torch import functional
from ..torch.buffers import ScaledBuffers
from ..torch.scaled import Scaled
from . import collectives
from .groups import Group, all_reduce_sum, members, reduce_scatter_rows


def column_parallel_linear(x: torch.Tensor, weight: Scaled, bias: torch.Tensor | None = None,
                           group: Group = None, *, sequence_parallel: bool = False,
                           sizes: Sequence[int] | None = None,
                           dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """The columns of Y = X W^T + b that belong to the rows of W which this rank has.

    Args:
        x: X [M, K], the same on all ranks; with `sequence_parallel` this rank's rows of it. Ranks
            may have different rows.
        weight: [N_r, K], quantized with the amax of all rows of W (`quantize`).
        bias: [N_r].
        sizes: with `sequence_parallel`, as in `all_gather`.

    Returns:
        [M, N_r], with all M rows, in `dtype`.
    """
    _check_gradient(x, weight)
    if not sequence_parallel:
        members(group, x.device)
        q = functional.quantize(x, format=weight.format, recipe=weight.recipe)
        return functional.linear(q, weight, bias, dtype)
    q = collectives.quantize(x, group, format=weight.format, recipe=weight.recipe, layout="linear")
    whole = collectives.all_gather(q, 0, group, sizes=sizes, layout="tiled_128x4")
    return functional.linear(whole, weight, bias, dtype)


def row_parallel_linear(x: torch.Tensor, weight: Scaled, bias: torch.Tensor | None = None,
                        group: Group = None, *, sequence_parallel: bool = False,
                        dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """Y = X W^T + b, where each rank has some of the columns of X and of W.

    Args:
        x: this rank's columns of X, [M, K_r]; M is the same on all ranks, and with
            `sequence_parallel` a multiple of their number.
        weight: [N, K_r], quantized with the amax of all columns of W (`quantize`).
        bias: [N], the same on all ranks; it is added once.

    Returns:
        [M, N] on all ranks, or with `sequence_parallel` [M / ranks, N], this rank's rows. The parts
        are added in fp32, and the sum is rounded once to `dtype`.
    """
    _check_gradient(x, weight)
    functional.check_bias(bias, weight.shape[0])
    _, count = members(group, x.device)
    rows = x.numel() // x.shape[-1] if x.dim() and x.shape[-1] else 0
    if sequence_parallel and rows % count:
        raise UsageError(f"'x' must have rows of a multiple of {count}, the number of ranks, but "
                         f"got {rows}", "pad it with zeros")
    q = collectives.quantize(x, group, format=weight.format, recipe=weight.recipe)
    y = functional.linear(q, weight, None, torch.float32)
    y = reduce_scatter_rows(y, group, count) if sequence_parallel else all_reduce_sum(y, group)
    return (y if bias is None else y.add_(bias)).to(dtype)


class _ParallelLinear(torch.nn.Module):
    """A shard of a linear layer whose weight is stored in 4 bits and is not trained.

    Attributes:
        weight: an fp4.torch.ScaledBuffers with this rank's part of W.
        bias: a parameter or None.
        group: the ranks that share the layer; None is all.
        sequence_parallel: whether rows are sharded outside the pair of layers.
    """

    bias: torch.nn.Parameter | None
    _dim: int

    def __init__(self, weight: Scaled, bias: torch.nn.Parameter | None = None,
                 group: Group = None, *, sequence_parallel: bool = False) -> None:
        super().__init__()
        functional.check_bias(bias, weight.shape[0])
        self.weight = ScaledBuffers(functional.swizzle(weight))
        self.register_parameter("bias", bias)
        self.group, self.sequence_parallel = group, sequence_parallel

    @classmethod
    def from_linear(cls, source: torch.nn.Linear, group: Group = None, *, format: str = "nvfp4",
                    recipe: str = "", square: bool = False,
                    sequence_parallel: bool = False) -> Any:
        """Makes this rank's part of `source`, which every rank has as a whole. The format, recipe
        and square blocks are those of fp4.torch.quantize."""
        weight = source.weight.detach()
        rank, count = members(group, weight.device)
        block = {"nvfp4": 16, "mxfp4": 32}.get(format, 16)
        size = weight.shape[cls._dim]
        if size % (count * block):
            raise UsageError(f"{'out_features' if cls._dim == 0 else 'in_features'} must be a "
                             f"multiple of {count * block}, {block} for each rank, but is {size}",
                             "leave this layer as it is")
        part = weight.chunk(count, cls._dim)[rank].contiguous()
        q = collectives.quantize(part, group, format=format, recipe=recipe, square=square)
        return cls(q, cls._bias(source.bias, rank, count), group,
                   sequence_parallel=sequence_parallel).train(source.training)

    @classmethod
    def _bias(cls, bias: torch.nn.Parameter | None, rank: int,
              count: int) -> torch.nn.Parameter | None:
        if bias is None or cls._dim == 1:
            return bias
        return torch.nn.Parameter(bias.detach().chunk(count)[rank].clone(), bias.requires_grad)

    def extra_repr(self) -> str:
        rows, columns = self.weight.value.shape
        return (f"this rank's weight: {rows}x{columns}, bias={self.bias is not None}, "
                f"sequence_parallel={self.sequence_parallel}")


class ColumnParallelLinear(_ParallelLinear):
    """column_parallel_linear as a module: x [..., K] to [..., N / ranks]. With sequence parallelism
    x is a matrix [M_r, K], and `sizes` may be the rows of every rank."""

    _dim = 0

    def forward(self, x: torch.Tensor, sizes: Sequence[int] | None = None) -> torch.Tensor:
        """This rank's columns of Y, in the dtype of x."""
        y = column_parallel_linear(x, self.weight.value, self.bias, self.group, sizes=sizes,
                                   sequence_parallel=self.sequence_parallel, dtype=x.dtype)
        return y if self.sequence_parallel else y.view(*x.shape[:-1], -1)


class RowParallelLinear(_ParallelLinear):
    """row_parallel_linear as a module: x [..., K / ranks] to [..., N]. With sequence parallelism x
    is a matrix [M, K / ranks]."""

    _dim = 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Y, or with sequence parallelism this rank's rows of Y, in the dtype of x."""
        y = row_parallel_linear(x, self.weight.value, self.bias, self.group,
                                sequence_parallel=self.sequence_parallel, dtype=x.dtype)
        return y if self.sequence_parallel else y.view(*x.shape[:-1], -1)


def _check_gradient(x: Any, weight: Any) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"'x' must be a torch.Tensor, but got {type(x).__name__}")
    if not isinstance(weight, Scaled):
        raise TypeError(f"'weight' must be an fp4.torch.Scaled, but got "
                        f"{type(weight).__name__}\nnote: pass fp4.torch.quantize(weight)")
    if torch.is_grad_enabled() and x.requires_grad:
        raise UsageError("a parallel linear layer has no gradient, but 'x' needs one",
                         "call it under torch.no_grad(), or pass x.detach()")
