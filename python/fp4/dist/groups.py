"""Process groups: what every collective function checks and calls."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from ..errors import UsageError

#: torch 2.13 renamed them; the older names warn there.
_gather: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_scatter: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

Group = dist.ProcessGroup | None


def members(group: Group, device: torch.device | None = None) -> tuple[int, int]:
    """The rank of this process in `group` and the size of the group, which must be able to move
    tensors of `device`, if one is given."""
    if not dist.is_initialized():
        raise UsageError("torch.distributed must be initialized",
                         "call torch.distributed.init_process_group first, or start with torchrun")
    if group is not None and not isinstance(group, dist.ProcessGroup):
        if group == dist.GroupMember.NON_GROUP_MEMBER:
            raise UsageError("this process must be a member of 'group', but is none",
                             "only the ranks that new_group was given may call this")
        raise TypeError("'group' must be a torch.distributed.ProcessGroup or None, but got "
                        f"{type(group).__name__}")
    rank = dist.get_rank(group)
    if rank < 0:
        raise UsageError("this process must be a member of 'group', but is none")
    backend = dist.get_backend(group)
    if backend == "nccl" and device is not None and device.type != "cuda":
        raise UsageError(f"tensors of an NCCL group must be on a CUDA device, but are on {device}",
                         "move them with .cuda(), or make a gloo group for CPU tensors")
    return rank, dist.get_world_size(group)


def exchange(value: Any, group: Group, size: int) -> list[Any]:
    """The `value` of every rank, in the order of ranks. The host waits for it."""
    found: list[Any] = [None] * size
    dist.all_gather_object(found, value, group)
    return found


def all_reduce_max(x: torch.Tensor, group: Group) -> torch.Tensor:
    dist.all_reduce(x, dist.ReduceOp.MAX, group)
    return x


def all_reduce_sum(x: torch.Tensor, group: Group) -> torch.Tensor:
    dist.all_reduce(x, dist.ReduceOp.SUM, group)
    return x


def reduce_scatter_rows(x: torch.Tensor, group: Group, size: int) -> torch.Tensor:
    """The sum over ranks of x [size * R, C]; each keeps its own R rows."""
    own = x.new_empty(x.shape[0] // size, *x.shape[1:])
    _scatter(own, x, group=group)
    return own


class Gathering:
    """An all-gather of bytes that has begun: flat pieces of `lengths[rank]` bytes."""

    def __init__(self, piece: torch.Tensor, lengths: list[int], group: Group) -> None:
        self._most, self._lengths = max(lengths), lengths
        flat = piece.reshape(-1)
        if flat.numel() < self._most:  # collectives move pieces of one size
            flat = torch.cat([flat, flat.new_zeros(self._most - flat.numel())])
        self._sent = flat  # the work reads it until it has ended
        self._all = flat.new_empty(self._most * len(lengths))
        self._work = (_gather(self._all, flat, group=group, async_op=True) if self._most else None)

    def wait(self) -> list[torch.Tensor]:
        """The pieces, as views of one buffer; on CUDA the current stream waits, not the host."""
        if self._work is not None:
            self._work.wait()
        return [self._all[rank * self._most:][:length]
                for rank, length in enumerate(self._lengths)]

    def rows(self) -> torch.Tensor:
        """The pieces one behind the other: no copy where they have one size."""
        pieces = self.wait()
        return self._all if set(self._lengths) == {self._most} else torch.cat(pieces)
