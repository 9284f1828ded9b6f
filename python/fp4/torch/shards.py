"""A rank's part of the weights of a decoder: rows or columns of weight-only layers, experts, heads,
and rows of the language head."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from ..errors import UsageError
from . import recipes, weight_programs
from .experts import WeightOnlyExperts
from .routed import RoutedExperts
from .scaled import Scaled
from .weight_only import WeightOnlyLinear, layer_of_tiles, packed_tiles

_SHARE_OF_PROCESS = "pass load_into the share=(rank, ranks) of this process in the group"


@dataclasses.dataclass(frozen=True)
class Part:
    """The rows (`dim` 0) or columns (1) of a matrix that number `rank` of `ranks` has."""

    dim: int
    rank: int
    ranks: int

    def slices(self, shape: Sequence[int]) -> tuple[slice, ...]:
        """The place in a matrix of this shape, whose parts have one size."""
        size = shape[self.dim] // self.ranks
        own = slice(self.rank * size, (self.rank + 1) * size)
        return (own,) if self.dim == 0 else (slice(None), own)

    def of(self, x: torch.Tensor) -> torch.Tensor:
        """A copy, which does not keep the whole in memory."""
        return x[self.slices(x.shape)].clone(memory_format=torch.contiguous_format)

    def __str__(self) -> str:
        return f"part {self.rank} of {self.ranks} of the {'columns' if self.dim else 'rows'}"


def part_of(layer: WeightOnlyLinear, dim: int, rank: int, ranks: int) -> WeightOnlyLinear:
    """The layer of this rank's rows (`dim` 0) or columns (1) of the weight. No code and no scale
    changes, and whole tiles are cut as they are. Rank 0 alone adds the bias of columns, whose
    results are summed.

    Raises:
        UsageError: rows or columns that the ranks cannot share.
    """
    rows, columns = layer.out_features, layer.in_features
    size, unit = ((columns, recipes.BLOCKS[layer.format]) if dim else (rows, 1))
    if size % (ranks * unit):
        raise UsageError(f"{'in_features' if dim else 'out_features'} must be a multiple of "
                         f"{ranks * unit} for {ranks} ranks, but is {size}",
                         "leave this layer whole")
    alpha, bias = layer.alpha, layer.bias
    own = size // ranks
    if not dim:
        alpha = alpha if alpha is None or not alpha.dim() else _own(alpha, 0, rank, ranks)
        bias_of_rank = None if bias is None else _own(bias.detach(), 0, rank, ranks)
    else:
        bias_of_rank = bias if bias is None else torch.zeros_like(bias) if rank else (
            bias.detach().clone())
    packed = (_own(layer.packed, dim, rank, ranks) if not own % weight_programs.TILE[dim]
              else packed_tiles(_codes(layer, dim, rank, ranks)))
    made = layer_of_tiles(layer, packed, alpha, bias_of_rank,
                          *((rows, own) if dim else (own, columns)))
    if made.bias is not None and bias is not None:
        made.bias.requires_grad_(bias.requires_grad)
    return made


def experts_of_rank(experts: RoutedExperts, rank: int, ranks: int) -> RoutedExperts:
    """This rank's experts, one behind the other. Experts of other ranks add nothing to results.

    Raises:
        UsageError: experts that the ranks cannot share, or that are a part already.
    """
    count = experts.num_experts
    if count != experts.total:
        raise UsageError(f"the experts must be all {experts.total}, but are {count}",
                         "pass the model as a whole; the decoder takes this rank's part")
    if count % ranks:
        raise UsageError(f"the experts must be a multiple of the {ranks} ranks, but there are "
                         f"{count}", "make a group of fewer ranks")
    up, down = (_some_experts(part, rank, ranks) for part in (experts.gate_up, experts.down))
    return RoutedExperts(up, down, first=rank * (count // ranks), total=count).train(
        experts.training)


def _some_experts(layer: WeightOnlyExperts, rank: int, ranks: int) -> WeightOnlyExperts:
    made = copy.copy(layer)
    made.experts = layer.experts // ranks
    made._buffers = {name: value if value is None else _own(value, 0, rank, ranks)
                     for name, value in layer._buffers.items()}
    made._parameters = {name: value if value is None else torch.nn.Parameter(
        _own(value.detach(), 0, rank, ranks), requires_grad=False)
        for name, value in layer._parameters.items()}
    return made


def _own(x: torch.Tensor, dim: int, rank: int, ranks: int) -> torch.Tensor:
    """A copy, which does not keep the whole in memory."""
    return x.chunk(ranks, dim)[rank].clone(memory_format=torch.contiguous_format)


def _codes(layer: WeightOnlyLinear, dim: int, rank: int, ranks: int) -> Scaled:
    """This rank's codes and linear scales, where tiles span ranks."""
    whole = layer.unpack()
    data, scales = (_own(tensor.view(torch.uint8), dim, rank, ranks)
                    for tensor in (whole.data, whole.scales))
    shape = tuple(size // ranks if axis == dim else size for axis, size in enumerate(whole.shape))
    one_level = "torchao_1level" if layer.format == "nvfp4" else "ocp_floor"
    return Scaled(data.view(whole.data.dtype), scales.view(whole.scales.dtype), None,
                  (shape[0], shape[1]), whole.format, "linear", one_level)


@dataclasses.dataclass(frozen=True)
class Share:
    """The part of a decoder that one of `ranks` has: heads of queries and of keys, and their parts
    of the weights. One rank of one has all."""

    rank: int = 0
    ranks: int = 1

    def check(self, config: Any) -> None:
        """A UsageError if the ranks cannot share the heads of a model."""
        for name, count in (("attention", config.num_attention_heads),
                            ("key", config.num_key_value_heads)):
            if count % self.ranks:
                raise UsageError(f"the {name} heads must be a multiple of the {self.ranks} ranks, "
                                 f"but there are {count}",
                                 "a rank has whole heads: make a group of fewer ranks")

    def heads(self, config: Any) -> tuple[int, int]:
        """Heads of queries and of keys."""
        return (config.num_attention_heads // self.ranks,
                config.num_key_value_heads // self.ranks)

    def rows(self, name: str, layer: Any, whole: int = 0) -> Any:
        """Rows of a layer that has a kernel: results are a part of those of the whole.

        Args:
            whole: the rows that the layer has before it is shared, where they are known.
        """
        return self._part(name, layer, 0, whole)

    def columns(self, name: str, layer: Any, whole: int = 0) -> Any:
        """Columns of a layer that has a kernel: results are added."""
        return self._part(name, layer, 1, whole)

    def experts(self, name: str, experts: RoutedExperts) -> RoutedExperts:
        """Some of the experts of a layer: results are added."""
        mine = experts.total // self.ranks
        first = self.rank * mine
        if experts.was_read and (experts.first, experts.num_experts) != (first, mine):
            raise UsageError(f"'{name}' must be the {mine} of {experts.total} experts from number "
                             f"{first} on, but is {experts.num_experts} from {experts.first} on",
                             _SHARE_OF_PROCESS)
        if self.ranks == 1 or experts.was_read:
            return experts
        try:
            return experts_of_rank(experts, self.rank, self.ranks)
        except UsageError as error:
            raise UsageError(f"'{name}' cannot be shared: {error.message}", error.note) from None

    def own(self, values: torch.Tensor | None) -> torch.Tensor | None:
        """This rank's part of a vector with a number for each head."""
        return values if values is None or self.ranks == 1 else _own(values, 0, self.rank,
                                                                     self.ranks)

    def head(self, head: torch.nn.Module) -> torch.nn.Module:
        """Rows of the language head, or all where the ranks cannot share them."""
        size = getattr(head, "out_features", 1)
        if self.ranks == 1 or size % self.ranks:
            return head
        if isinstance(head, WeightOnlyLinear):
            return part_of(head, 0, self.rank, self.ranks)
        if type(head) is not torch.nn.Linear:
            return head
        made = torch.nn.Linear(head.in_features, size // self.ranks, bias=False, device="meta")
        for name, values in head.named_parameters():
            made.register_parameter(name, torch.nn.Parameter(
                _own(values.detach(), 0, self.rank, self.ranks), requires_grad=False))
        return made

    def _part(self, name: str, layer: Any, dim: int, whole: int) -> Any:
        read = getattr(layer, "part", None)
        if read is not None:
            mine, read = Part(dim, self.rank, self.ranks), Part(*read)
            if read != mine:
                raise UsageError(f"'{name}' must be {mine}, but is {read}", _SHARE_OF_PROCESS)
            return layer
        if self.ranks == 1 or not isinstance(layer, WeightOnlyLinear):
            return layer
        size = layer.in_features if dim else layer.out_features
        if whole and size != whole:
            raise UsageError(f"'{name}' must have the {whole} {'columns' if dim else 'rows'} of "
                             f"all ranks, but has {size}",
                             "pass the model as a whole; the decoder takes this rank's part")
        try:
            return part_of(layer, dim, self.rank, self.ranks)
        except UsageError as error:
            raise UsageError(f"'{name}' cannot be shared: {error.message}",
                             "make a group of fewer ranks") from None


#: All of a decoder.
WHOLE = Share()
