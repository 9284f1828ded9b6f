"""A rank's part of the weights of a decoder: rows or columns of weight-only layers, experts or
columns of all of them, heads, and rows of the language head."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..errors import UsageError
from . import recipes, weight_programs
from .experts import WeightOnlyExperts
from .fp8_experts import FP8Experts
from .routed import RoutedExperts
from .scaled import Scaled
from .w4a8 import packed_tiles as packed_bytes
from .w4a8 import unpacked as unpacked_bytes
from .weight_only import WeightOnlyLinear, layer_of_tiles, packed_tiles, unpacked

_SHARE_OF_PROCESS = ("pass load_into the share=(rank, ranks) of this process in the group, and the "
                     "expert_parallel of its Decoder")


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

    def cut(self, whole: Scaled) -> Scaled:
        """This part of a weight with linear scales. Codes and scales stay."""
        data, scales = (self.of(tensor.view(torch.uint8)) for tensor in (whole.data, whole.scales))
        shape = [size // (self.ranks if axis == self.dim else 1)
                 for axis, size in enumerate(whole.shape)]
        return Scaled(data.view(whole.data.dtype), scales.view(whole.scales.dtype), whole.amax,
                      (shape[0], shape[1]), whole.format, "linear", whole.recipe)

    def __str__(self) -> str:
        return f"part {self.rank} of {self.ranks} of the {'columns' if self.dim else 'rows'}"


def part_of_experts(rank: int, ranks: int, expert_parallel: bool) -> Part:
    """The experts (`dim` 0) of a rank, or its intermediate columns of each (1)."""
    return Part(int(not expert_parallel and ranks > 1), rank, ranks)


def of_experts(part: Part) -> str:
    """Says which part of the experts of a layer a rank has."""
    return (f"part {part.rank} of {part.ranks} of the "
            f"{'columns of each expert' if part.dim else 'experts'}")


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
              else packed_tiles(_codes(layer, Part(dim, rank, ranks))))
    made = layer_of_tiles(layer, packed, alpha, bias_of_rank,
                          *((rows, own) if dim else (own, columns)))
    if made.bias is not None and bias is not None:
        made.bias.requires_grad_(bias.requires_grad)
    return made


def experts_of_rank(experts: RoutedExperts, part: Part) -> RoutedExperts:
    """This rank's part of the experts of a layer (of_experts), one behind the other. Results of
    ranks are added. Rank 0 alone adds the biases of columns.

    Raises:
        UsageError: experts that the ranks cannot share, or that are a part already.
    """
    count, ranks = experts.num_experts, part.ranks
    if count != experts.total:
        raise UsageError(f"the experts must be all {experts.total}, but are {count}",
                         "pass the model as a whole; the decoder takes this rank's part")
    if isinstance(experts.gate_up, FP8Experts) or isinstance(experts.down, FP8Experts):
        return _some_of_fp8(experts, part)
    check_experts(part, count, experts.intermediate_size, experts.down.format)
    if part.dim:
        return RoutedExperts(_columns_of(experts.gate_up, Part(0, part.rank, ranks)),
                             _columns_of(experts.down, Part(1, part.rank, ranks))).train(
                                 experts.training)
    up, down = (_some_experts(layer, part) for layer in (experts.gate_up, experts.down))
    return RoutedExperts(up, down, first=part.rank * (count // ranks), total=count).train(
        experts.training)


def _some_of_fp8(experts: RoutedExperts, part: Part) -> RoutedExperts:
    """Experts of a rank with weights of FP8, whose rows are those of gates and of ups."""
    if part.dim:
        raise UsageError("experts of fp8_block128 must be shared by whole experts, but these are "
                         "shared by columns", "pass expert_parallel=True")
    mine = experts.num_experts // part.ranks
    if mine * part.ranks != experts.num_experts:
        raise UsageError(f"the experts must be a multiple of the {part.ranks} ranks, but there are "
                         f"{experts.num_experts}", "make a group of fewer ranks")
    parts = []
    for layer in (experts.gate_up, experts.down):
        made = copy.copy(layer)
        made.experts = mine
        made._buffers = {name: value if value is None else part.of(value)
                         for name, value in layer._buffers.items()}
        parts.append(made)
    return RoutedExperts(*parts, first=part.rank * mine, total=experts.total).train(
        experts.training)


def check_experts(part: Part, count: int, columns: int, format: str) -> None:
    """A UsageError if ranks cannot share `count` experts with so many intermediate columns."""
    unit = part.ranks * recipes.BLOCKS[format]
    if not part.dim and count % part.ranks:
        raise UsageError(f"the experts must be a multiple of the {part.ranks} ranks, but there are "
                         f"{count}", "make a group of fewer ranks, or pass expert_parallel=False")
    if part.dim and columns % unit:
        raise UsageError(f"the intermediate columns of experts must be a multiple of {unit} for "
                         f"{part.ranks} ranks, but there are {columns}",
                         "make a group of fewer ranks, or pass expert_parallel=True")


def _some_experts(layer: WeightOnlyExperts, part: Part) -> WeightOnlyExperts:
    return _changed(layer, lambda value, _: part.of(value), experts=layer.experts // part.ranks)


def _columns_of(layer: WeightOnlyExperts, part: Part) -> WeightOnlyExperts:
    """Rows (`dim` 0) or columns (1) of the weight of each expert."""
    sizes = [layer.out_features, layer.in_features]
    sizes[part.dim] //= part.ranks

    def cut(value: torch.Tensor, name: str) -> torch.Tensor:
        if name.endswith("packed"):
            return _tiles_of(layer, value, part, sizes[part.dim])
        if name.endswith("alpha") or (part.dim and not part.rank):
            return value.clone()
        return torch.zeros_like(value) if part.dim else _own(value, 1, part.rank, part.ranks)

    return _changed(layer, cut, out_features=sizes[0], in_features=sizes[1])


def _tiles_of(layer: WeightOnlyExperts, packed: torch.Tensor, part: Part,
              own: int) -> torch.Tensor:
    """The tiles of `own` rows or columns of each expert: whole tiles as they are."""
    each = packed.view(layer.experts, -1, *packed.shape[1:])
    unit = (weight_programs.TILE[0], weight_programs.BYTE_COLUMNS if layer.w4a8 else
            weight_programs.TILE[1])[part.dim]
    if not own % unit:
        return _own(each, 1 + part.dim, part.rank, part.ranks).flatten(0, 1)
    shape = layer.out_features, layer.in_features
    if layer.w4a8:
        return torch.cat([packed_bytes(part.cut(unpacked_bytes(tiles, shape))) for tiles in each])
    return torch.cat([packed_tiles(part.cut(unpacked(tiles, None, shape))) for tiles in each])


def _changed(layer: WeightOnlyExperts, change: Callable[[torch.Tensor, str], torch.Tensor],
             **sizes: int) -> WeightOnlyExperts:
    """A copy with other tensors and sizes."""
    made = copy.copy(layer)
    for name, size in sizes.items():
        setattr(made, name, size)
    made._buffers = {name: value if value is None else change(value, name)
                     for name, value in layer._buffers.items()}
    made._parameters = {name: value if value is None else torch.nn.Parameter(
        change(value.detach(), name), requires_grad=False)
        for name, value in layer._parameters.items()}
    return made


def _own(x: torch.Tensor, dim: int, rank: int, ranks: int) -> torch.Tensor:
    """A copy, which does not keep the whole in memory."""
    return x.chunk(ranks, dim)[rank].clone(memory_format=torch.contiguous_format)


def _codes(layer: WeightOnlyLinear, part: Part) -> Scaled:
    """This rank's codes and linear scales, where tiles span ranks."""
    whole = layer.unpack()
    one_level = "torchao_1level" if layer.format == "nvfp4" else "ocp_floor"
    return part.cut(Scaled(whole.data, whole.scales, None, whole.shape, whole.format, "linear",
                           one_level))


@dataclasses.dataclass(frozen=True)
class Share:
    """The part of a decoder that one of `ranks` has: heads of queries and of keys, and their parts
    of the weights. One rank of one has all.

    Attributes:
        expert_parallel: a rank has some experts, and not columns of all.
    """

    rank: int = 0
    ranks: int = 1
    expert_parallel: bool = True

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
        """This rank's part of the experts of a layer: results are added."""
        mine = part_of_experts(self.rank, self.ranks, self.expert_parallel)
        read = None if experts.part is None else Part(*experts.part)
        if read is not None and read != mine:
            raise UsageError(f"'{name}' must be {of_experts(mine)}, but is "
                             f"{of_experts(read)}", _SHARE_OF_PROCESS)
        if self.ranks == 1 or read is not None:
            return experts
        try:
            return experts_of_rank(experts, mine)
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
