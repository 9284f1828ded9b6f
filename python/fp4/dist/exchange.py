"""Results that the ranks of a decoder see of each other: each writes its part to a place, and then
all have the parts of all, in the order of ranks.

    exchange = exchange_of(group, rooms, device)
    part = exchange.place("sum", (rows, columns), torch.float32)
    ...                                              # a kernel writes this rank's part
    parts = exchange.parts("sum", part)              # a tensor for each rank

Nothing is added here: a kernel that reads the parts adds them in the order of ranks, so that all
ranks have the same bits, whichever exchange they have.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from ..errors import DeviceError, Error, UsageError
from .groups import Group, _gather, exchange, members

_T = TypeVar("_T")

#: Begins of slots are multiples of it.
_ALIGNMENT = 1024


class Exchange:
    """One rank's way to the results of all.

    Attributes:
        name: of the way, as a report says it.
        reason: why it was chosen, where another would be faster; may be empty.
        rank, ranks: of this process, and of the group.
        can_capture: a CUDA graph replays `parts`.
    """

    name = ""
    reason = ""
    can_capture = False

    def __init__(self, rank: int, ranks: int) -> None:
        self.rank, self.ranks = rank, ranks

    def place(self, slot: str, shape: tuple[int, int], dtype: torch.dtype,
              device: torch.device) -> torch.Tensor:
        """Memory for this rank's part, in a slot that no other part has until the parts of the next
        slot are there."""
        del slot
        return torch.empty(shape, dtype=dtype, device=device)

    def parts(self, slot: str, part: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The parts of all ranks, once all have written theirs."""
        raise NotImplementedError

    def values(self, value: Any) -> list[Any]:
        """The `value` of every rank, in the order of ranks. The host waits for it."""
        raise NotImplementedError

    def agree(self, facts: Mapping[str, Any]) -> None:
        """A UsageError on every rank if the facts of one differ from those of rank 0."""
        check_alike(self.values(dict(facts)))

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """A block that fails on every rank if it raises an error on one: no rank waits for one that
        has stopped. Other ranks get a UsageError that says which rank failed, and why."""
        failure: Exception | None = None
        try:
            yield
        except Exception as error:
            failure = error
        found = self.values(None if failure is None else _said(failure))
        if failure is not None:
            raise failure
        for rank, said in enumerate(found):
            if said is not None:
                raise UsageError(f"all ranks must be ready, but rank {rank} failed: {said[0]}",
                                 said[1])


class Collectives(Exchange):
    """An all-gather of torch.distributed for each slot."""

    def __init__(self, group: Group, device: torch.device) -> None:
        super().__init__(*members(group))
        self.group, self.name = group, str(dist.get_backend(group))
        self._gpu = device if device.type == "cuda" else None

    @property
    def can_capture(self) -> bool:  # type: ignore[override]
        return self.name == "nccl"

    def parts(self, slot: str, part: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows, columns = part.shape
        whole = part.new_empty(self.ranks * rows, columns)
        _gather(whole, part, group=self.group)
        return whole.chunk(self.ranks)

    def values(self, value: Any) -> list[Any]:
        with torch.cuda.device(self._gpu) if self._gpu else contextlib.nullcontext():
            return exchange(value, self.group, self.ranks)


class PeerMemory(Collectives):
    """Memory of each GPU that all GPUs of the group read over NVLink: a part is written where it is
    read, and a slot costs one barrier, a kernel of a warp. Parts with no room go by the group.

    A slot may be written again once the parts of another slot have been there: each rank has then
    read this one. So there must be two slots at least.

    Args:
        rooms: bytes of each slot, the same on all ranks.
    """

    name = "peer memory"
    can_capture = True

    def __init__(self, group: dist.ProcessGroup, rooms: Mapping[str, int],
                 device: torch.device) -> None:
        super().__init__(group, device)
        self.name = PeerMemory.name
        import torch.distributed._symmetric_memory as symmetric
        self._begins: dict[str, int] = {}
        end = 0
        for slot, room in rooms.items():
            self._begins[slot] = end
            end += -(-room // _ALIGNMENT) * _ALIGNMENT
        self._rooms = dict(rooms)
        self._memory = symmetric.empty(max(end, _ALIGNMENT), dtype=torch.uint8, device=device)
        self._handle: Any = symmetric.rendezvous(self._memory, group)
        self._views: dict[tuple[Any, ...], tuple[torch.Tensor, ...]] = {}

    def place(self, slot: str, shape: tuple[int, int], dtype: torch.dtype,
              device: torch.device) -> torch.Tensor:
        views = self._views_of(slot, shape, dtype)
        return views[self.rank] if views else super().place(slot, shape, dtype, device)

    def parts(self, slot: str, part: torch.Tensor) -> tuple[torch.Tensor, ...]:
        views = self._views_of(slot, tuple(part.shape), part.dtype)
        if not views:
            return super().parts(slot, part)
        self._handle.barrier()
        return views

    def _views_of(self, slot: str, shape: tuple[int, ...],
                  dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
        """The part of each rank, or none where the slot has no room for it."""
        key = slot, shape, dtype
        if key not in self._views:
            rows, columns = shape
            size = dtype.itemsize
            has_room = rows * columns * size <= self._rooms[slot]
            self._views[key] = tuple(
                self._handle.get_buffer(rank, shape, dtype, self._begins[slot] // size)
                for rank in range(self.ranks)) if has_room else ()
        return self._views[key]

    def check(self) -> None:
        """A RuntimeError if a rank does not read what the others wrote, after the last barrier, where
        no rank waits for this one."""
        slot, failures = next(iter(self._rooms)), []
        for turn in range(2):
            part = self.place(slot, (1, 4), torch.int32, self._memory.device)
            part.fill_(self.rank + 100 * turn)
            found = torch.stack(self.parts(slot, part)).view(self.ranks, 4).tolist()
            self._handle.barrier()
            expected = [[rank + 100 * turn] * 4 for rank in range(self.ranks)]
            if found != expected:
                failures.append(f"peers wrote {expected}, but {found} was read")
        if failures:
            raise RuntimeError(failures[0])


class Threads(Exchange):
    """The ranks of a decoder as threads of one process, on one device: a program that adds the same
    parts in the same order as those of several GPUs, to compare bits with."""

    name = "threads"

    def __init__(self, rank: int, ranks: int, meeting: threading.Barrier,
                 table: dict[tuple[str, int], Any]) -> None:
        super().__init__(rank, ranks)
        self._meeting, self._table = meeting, table

    @classmethod
    def of(cls, ranks: int, timeout: float = 600.0) -> list[Threads]:
        """An exchange for each thread, which waits for the others `timeout` seconds at most."""
        meeting = threading.Barrier(ranks, timeout=timeout)
        table: dict[tuple[str, int], Any] = {}
        return [cls(rank, ranks, meeting, table) for rank in range(ranks)]

    @classmethod
    def run(cls, function: Callable[[Threads], _T], ranks: int,
            timeout: float = 600.0) -> list[_T]:
        """The results of a function of each rank's exchange, in threads that have the current CUDA
        device of the caller. Raises the first error of any rank, and the other ranks stop."""
        device = torch.cuda.current_device() if torch.cuda.is_available() else None
        results: dict[int, _T] = {}
        failures: list[BaseException] = []

        def work(one: Threads) -> None:
            try:
                if device is not None:
                    torch.cuda.set_device(device)
                results[one.rank] = function(one)
            except BaseException as failure:
                failures.append(failure)
                one.abort()
        threads = [threading.Thread(target=work, args=(one,)) for one in cls.of(ranks, timeout)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return [results[rank] for rank in range(ranks)]

    def parts(self, slot: str, part: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self._all(slot, part))

    def values(self, value: Any) -> list[Any]:
        return self._all("values", value)

    def abort(self) -> None:
        """Says that this rank stops: all ranks that wait for it, or will, raise a DeviceError."""
        self._meeting.abort()

    def _all(self, slot: str, value: Any) -> list[Any]:
        self._table[slot, self.rank] = value
        self._meet(slot)
        found = [self._table[slot, rank] for rank in range(self.ranks)]
        self._meet(slot)
        return found

    def _meet(self, slot: str) -> None:
        try:
            self._meeting.wait()
        except threading.BrokenBarrierError:
            raise DeviceError(f"rank {self.rank} must have the {slot!r} of all {self.ranks} ranks, "
                              "but another one has stopped or does not come",
                              "see the error of the other rank; all ranks call a decoder alike"
                              ) from None


def _said(failure: Exception) -> tuple[str, str]:
    """The message and the note of an error, for other ranks."""
    if isinstance(failure, Error):
        return failure.message, failure.note
    return f"{type(failure).__name__}: {failure}", ""


def check_alike(found: list[dict[str, Any]]) -> None:
    """A UsageError that names the first fact in which a rank differs from rank 0."""
    for rank, facts in enumerate(found):
        for name in {**found[0], **facts}:
            first, value = found[0].get(name), facts.get(name)
            if value != first:
                raise UsageError(f"all ranks must have {name} {first}, as rank 0 has, "
                                 f"but rank {rank} has {value}",
                                 "make the decoder of all ranks from one model and with the same "
                                 "arguments")


def exchange_of(group: dist.ProcessGroup | Exchange, rooms: Mapping[str, int],
                device: torch.device) -> Exchange:
    """The fastest exchange that the group has: peer memory where all GPUs reach each other, or
    else its collectives. All ranks choose alike."""
    if isinstance(group, Exchange):
        return group
    plain = Collectives(group, device)
    with plain.together():
        members(group, device)
        if device.type == "cuda" and device.index != torch.cuda.current_device():
            raise UsageError("the model must be on the current GPU, "
                             f"cuda:{torch.cuda.current_device()}, but is on {device}",
                             "call torch.cuda.set_device first")
    plain.agree({"a model on": device.type})
    if device.type != "cuda":
        return plain
    ranks = plain.ranks
    made, reason = None, _no_peers(device, group, ranks)
    if not reason:
        made, reason = _peer_memory(group, rooms, device)
    reasons = exchange(reason, group, ranks)
    if made is not None and not any(reasons):
        return made
    plain.reason = next(filter(None, reasons))
    return plain


def _no_peers(device: torch.device, group: dist.ProcessGroup, ranks: int) -> str:
    """Why the GPUs of a group do not read each other's memory, or nothing. The answer is that of
    all ranks, because a rank alone in the rendezvous would wait."""
    names = exchange(_name_of(device), group, ranks)
    reason = _no_common_host(names) or _unreadable(device, names)
    return next(filter(None, exchange(reason, group, ranks)), "")


def _name_of(device: torch.device) -> tuple[str, str]:
    """The host and the GPU, whose index may be another one in each process."""
    return socket.gethostname(), str(torch.cuda.get_device_properties(device).uuid)


def _no_common_host(names: list[tuple[str, str]]) -> str:
    """Why GPUs of these names have no memory in common, or nothing."""
    hosts = {host for host, _ in names}
    if len(hosts) > 1:
        return f"ranks are on {len(hosts)} hosts"
    return "ranks share a GPU" if len(set(names)) < len(names) else ""


def _unreadable(device: torch.device, names: list[tuple[str, str]]) -> str:
    """Why `device` does not read another GPU that this process sees, or nothing. The rendezvous
    tells of GPUs that it does not see."""
    for index in range(torch.cuda.device_count()):
        other = torch.device("cuda", index)
        if other != device and _name_of(other) in names and (
                not torch.cuda.can_device_access_peer(device, other)):
            return f"{device} cannot read the memory of {other}"
    return ""


def _peer_memory(group: dist.ProcessGroup, rooms: Mapping[str, int],
                 device: torch.device) -> tuple[PeerMemory | None, str]:
    """Peer memory that was tried, or why there is none."""
    try:
        made = PeerMemory(group, rooms, device)
        made.check()
    except (ImportError, AttributeError, RuntimeError) as error:
        return None, f"there is no symmetric memory: {str(error).partition(chr(10))[0]}"
    return made, ""
