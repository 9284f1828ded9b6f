"""A mixture of experts that the ranks of a group share: each has some of the experts.

    tokens of x               what travels                          sums
    on all ranks              nothing                               all-reduce
    of each rank, its own     rows to the ranks of their experts,   all-to-all back
                              by all-to-all (dispatch)              (combine)

A row is sent to a rank once, however many of its experts are there, and a rank sends back one row
of sums for it. Sums are in float32, and ranks are added in their order, so that no bit depends on
the way of tokens. Expert parallelism of a Decoder is the first way, whose sums the next norm adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from ..errors import UsageError
from ..torch.moe import MoE
from ..torch.routed import RoutedExperts
from ..torch.shards import Part, experts_of_rank
from .groups import Gathering, Group, all_reduce_sum, members


class ExpertParallelMoE(torch.nn.Module):
    """fp4.torch.MoE whose experts the ranks of a group share (expert parallel). All ranks have the
    router and what is shared. There is no gradient.

    Args:
        moe: with all experts, of which this rank takes its part, or with that part.
        sequence_parallel: x has rows of this rank alone.

    Raises:
        UsageError: experts that the ranks cannot share, or the part of another rank.
    """

    def __init__(self, moe: MoE, group: Group = None, *, sequence_parallel: bool = False) -> None:
        super().__init__()
        rank, self._ranks = members(group, moe.experts.down.packed.device)
        self.moe = MoE(moe.router, _own(moe.experts, rank, self._ranks))
        self.shared = moe.shared
        self.group, self.sequence_parallel = group, sequence_parallel

    def forward(self, x: torch.Tensor, sizes: Sequence[int] | None = None) -> torch.Tensor:
        """y like x [..., hidden_size].

        Args:
            sizes: with `sequence_parallel`, the rows of every rank. Then all get all rows, and
                CUDA graphs can be captured. Without it rows travel to the ranks of their experts
                alone, and the host waits for their number.
        """
        hidden = self.moe.experts.hidden_size
        if x.shape[-1:] != (hidden,):
            raise UsageError(f"'x' must be [..., {hidden}], but got {list(x.shape)}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise UsageError("a parallel mixture has no gradient, but 'x' needs one",
                             "call it under torch.no_grad(), or pass x.detach()")
        rank, _ = members(self.group, x.device)
        rows = x.reshape(-1, hidden)
        if sizes is not None:
            self._check_sizes(sizes, len(rows), rank)
        with torch.no_grad():
            total = self._of_own(rows, sizes) if self.sequence_parallel else self._of_all(rows)
            if self.shared is not None:
                total += self.shared(x).reshape(rows.shape).float()
            return total.to(x.dtype).view(x.shape)

    def _check_sizes(self, sizes: Sequence[int], count: int, rank: int) -> None:
        if not self.sequence_parallel:
            raise UsageError("'sizes' must come with 'sequence_parallel', but it is off",
                             "all ranks have the same rows")
        if len(sizes) != self._ranks or sizes[rank] != count or min(sizes) < 0:
            raise UsageError(f"'sizes' must be the rows of {self._ranks} ranks, of which rank "
                             f"{rank} has {count}, but got {list(sizes)}",
                             "pass the rows of each rank, in the order of the ranks")

    def _of_all(self, rows: torch.Tensor) -> torch.Tensor:
        """The sums of rows that all ranks have."""
        total = rows.new_zeros(rows.shape, dtype=torch.float32)
        if len(rows):
            self.moe._write_into(total, rows)
        return all_reduce_sum(total, self.group)

    def _of_own(self, rows: torch.Tensor, sizes: Sequence[int] | None) -> torch.Tensor:
        """The sums of rows that this rank alone has."""
        weights, ids = self.moe._choose(rows)
        sent, k = _packed(rows, ids, weights), ids.shape[1]
        if sizes is None:
            places = self._places(ids)
            out = [len(place) for place in places]
            back = _counts(out, rows.device, self.group)
            received = _moved(sent[torch.cat(places)], out, back, self.group)
        else:
            places, out, back = [None] * self._ranks, [len(rows)] * self._ranks, list(sizes)
            width = sent.shape[1]
            received = Gathering(sent, [size * width for size in back],
                                 self.group).rows().view(-1, width)
        found = torch.split(_moved(self._sums(received, rows, k), back, out, self.group), out)
        total = rows.new_zeros(rows.shape, dtype=torch.float32)
        for place, part in zip(places, found):
            total = total + part if place is None else total.index_add_(0, place, part)
        return total

    def _places(self, ids: torch.Tensor) -> list[Any]:
        """The rows that have experts of each rank."""
        owners = ids // self.moe.experts.num_experts
        return [(owners == rank).any(1).nonzero().flatten() for rank in range(self._ranks)]

    def _sums(self, received: torch.Tensor, like: torch.Tensor, k: int) -> torch.Tensor:
        """The weighted sums of the experts that are here, of rows as `_packed` makes them."""
        x, ids, weights = _unpacked(received, like, k)
        sums = like.new_zeros(x.shape, dtype=torch.float32)
        if len(x):
            self.moe.experts._write_into(sums, x, ids, weights)
        return sums

    def extra_repr(self) -> str:
        return f"ranks={self._ranks}, sequence_parallel={self.sequence_parallel}"


def _own(experts: RoutedExperts, rank: int, ranks: int) -> RoutedExperts:
    """This rank's experts."""
    mine = experts.total // ranks
    if (experts.first, experts.num_experts) == (rank * mine, mine) and mine * ranks == (
            experts.total) and (experts.part is None or not experts.part[0]):
        return experts
    try:
        return experts_of_rank(experts, Part(0, rank, ranks))
    except UsageError as error:
        raise UsageError(error.message, f"pass all experts, or those of rank {rank}, whose number "
                         "the ranks divide") from None


def _packed(x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The bytes of each row: its elements, its ids and its weights."""
    return torch.cat([part.contiguous().view(torch.uint8) for part in (x, ids, weights)], 1)


def _unpacked(rows: torch.Tensor, like: torch.Tensor,
              k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    width = like.shape[1] * like.element_size()
    parts = torch.split(rows, [width, 4 * k, 4 * k], 1)
    x, ids, weights = (part.contiguous().view(dtype) for part, dtype in
                       zip(parts, (like.dtype, torch.int32, torch.float32)))
    return x, ids, weights


def _counts(out: list[int], device: torch.device, group: Group) -> list[int]:
    """The rows that each rank sends to this one, of those that this one sends. The host waits."""
    sent = torch.tensor(out, dtype=torch.int64, device=device)
    found = torch.empty_like(sent)
    dist.all_to_all_single(found, sent, group=group)
    counts: list[int] = found.tolist()
    return counts


def _moved(rows: torch.Tensor, out: list[int], back: list[int], group: Group) -> torch.Tensor:
    """The rows that ranks have for this one: each sends `out` rows to every rank in turn."""
    found = rows.new_empty(sum(back), rows.shape[1])
    dist.all_to_all_single(found, rows.contiguous(), back, out, group=group)
    return found
