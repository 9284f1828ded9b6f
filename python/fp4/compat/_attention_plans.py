"""Plans of attention over a paged cache: the lists that FlashInfer's wrappers take, checked once,
as the tables that fp4.torch.attention takes.

A CUDA graph has the addresses of the tensors of a plan, and its constants are compiled into
kernels. Therefore later plans for a graph write to the tensors of the first one, and must have its
constants.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from ..errors import UsageError
from ..torch.attend_programs import elements_of
from ._operands import check_tensor

#: Members that kernels have as constants, by what an error calls them.
_CONSTANTS = {
    "page_size": "'page_size'", "heads": "the numbers of heads", "head_dim": "the size of heads",
    "value_dim": "the size of heads of values", "dtype": "the type of queries",
    "causal": "'causal'", "scale": "'sm_scale'", "softcap": "'logits_soft_cap'",
    "window_left": "'window_left'", "position": "'pos_encoding_mode'",
    "tokens": "the queries of each sequence"}


@dataclasses.dataclass
class Plan:
    """The part of a plan that `run` takes."""

    lengths: torch.Tensor
    pages: torch.Tensor
    last_page: int  #: the largest number in `pages`, or -1 without one
    page_size: int
    heads: tuple[int, int]  #: of queries, and of keys and values
    head_dim: int
    value_dim: int
    dtype: torch.dtype
    causal: bool
    scale: float
    softcap: float | None
    window_left: int
    slopes: torch.Tensor | None
    tokens: int = 1  #: queries of each sequence, or 0 where they have offsets
    offsets: torch.Tensor | None = None
    rows: int = 0  #: of all queries

    @property
    def position(self) -> str:
        return "NONE" if self.slopes is None else "ALIBI"

    def spread(self, offsets: torch.Tensor, name: str, uniform: int | None,
               graph: bool) -> None:
        """Takes the offsets of packed queries, or their number where each sequence has as many;
        in a graph that must be known to stay so, as `uniform` says."""
        counts = counts_of(offsets, name, self.lengths.numel())
        self.rows, different = int(counts.sum()), set(counts.tolist())
        if len(different) == 1 and different != {0} and (not graph or different == {uniform}):
            self.tokens = different.pop()
        else:
            self.tokens, self.offsets = 0, offsets.to(self.lengths.device, torch.int32)

    def keep(self, first: Plan) -> None:
        """Writes this plan to the memory of the first one of a graph."""
        kept = [(name, getattr(first, name), getattr(self, name))
                for name in ("lengths", "pages", "offsets")]
        for name, old, new in kept:
            if (old is None) != (new is None) or (old is not None and old.shape != new.shape):
                raise UsageError("a plan for a CUDA graph must have the sequences of the first "
                                 f"one, but '{name}' has another shape",
                                 "make a wrapper for each number of sequences")
        for name, what in _CONSTANTS.items():
            before, now = getattr(first, name), getattr(self, name)
            if before != now:
                raise UsageError(f"a plan for a CUDA graph must keep {what} of the first one, "
                                 f"{before}, but got {now}",
                                 "captured kernels have it as a constant: make another wrapper")
        for name, old, new in kept:
            setattr(self, name, None if old is None else old.copy_(new))
        self.slopes = first.slopes

    def check_query(self, query: Any) -> None:
        check_tensor(query, "q")
        if query.dim() != 3 or query.dtype != self.dtype or query.shape[1:] != (
                self.heads[0], self.head_dim):
            raise UsageError(f"argument 'q' must be {self.dtype} of {self.heads[0]} heads of "
                             f"{self.head_dim}, as planned, but got {query.dtype} of shape "
                             f"{list(query.shape)}",
                             "pass q_data_type, num_qo_heads and head_dim of 'q' to plan")
        rows = query.shape[0]
        if rows < self.rows or (self.tokens and rows != self.rows):
            raise UsageError(f"argument 'q' must have the {self.rows} rows that were planned, but "
                             f"has {rows}", f"it has {self.tokens or 'some'} for each sequence")

    def check_cache(self, cache: tuple[torch.Tensor, torch.Tensor], pages: int,
                    kv_layout: str) -> None:
        """Keys and values must have the pages that were planned, of which there are `pages`."""
        page = [self.page_size, self.heads[1]]
        order = page if kv_layout == "NHD" else page[::-1]
        for name, tensor, elements in zip(("keys", "values"), cache,
                                          (self.head_dim, self.value_dim)):
            wanted = [*order, elements]
            if tensor.dim() != 4 or list(elements_of(tensor)[1:]) != wanted:
                raise UsageError(f"argument 'paged_kv_cache' must have pages of {wanted} elements "
                                 f"of {name}, as planned, but got {tensor.dtype} of shape "
                                 f"{list(tensor.shape)}",
                                 "pass page_size, num_kv_heads and the size of heads of the cache "
                                 f"to plan; kv_layout is '{kv_layout}'")
        if self.last_page >= pages:
            raise UsageError(f"argument 'paged_kv_cache' must have the page {self.last_page} that "
                             f"was planned, but has {pages} pages",
                             "'indices' are numbers of pages, not of tokens")


def check_count(value: Any, name: str) -> int:
    """A positive number of things."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(f"argument '{name}' must be a positive int, but got {value!r}",
                         "plan() takes the sizes of 'q' and of the cache")
    return value


def check_heads(queries: Any, keys: Any) -> tuple[int, int]:
    heads = check_count(queries, "num_qo_heads"), check_count(keys, "num_kv_heads")
    if heads[0] % heads[1]:
        raise UsageError(f"argument 'num_qo_heads' must be a multiple of num_kv_heads {keys}, but "
                         f"got {queries}", "as many heads of queries share each head of keys")
    return heads


def numbers_of(tensor: Any, name: str) -> torch.Tensor:
    """The numbers of a list, on the CPU."""
    check_tensor(tensor, name)
    if tensor.dim() != 1 or tensor.dtype not in (torch.int32, torch.int64):
        raise UsageError(f"argument '{name}' must be a list of int32, but got {tensor.dtype} of "
                         f"shape {list(tensor.shape)}", f"pass {name}.int() of one dimension")
    return tensor.cpu().long()  # type: ignore[no-any-return]


def counts_of(offsets: Any, name: str, sequences: int) -> torch.Tensor:
    """The differences of the offsets of sequences, on the CPU."""
    begin = numbers_of(offsets, name)
    counts = begin.diff()
    if not sequences or counts.numel() != sequences or begin[0] != 0 or (counts < 0).any():
        raise UsageError(f"argument '{name}' must have the begin of each of {sequences} sequences, "
                         f"the first of which is 0, and the end of the last one, but got "
                         f"{begin.tolist()}", "it has one number more than 'last_page_len'")
    return counts


def tables_of(lists: tuple[Any, Any, Any], prefix: str, page_size: int, most: int | None,
              ) -> tuple[torch.Tensor, torch.Tensor, int]:
    """The lengths of sequences, their pages, as many as a power of two, and the largest page. There
    is room for `most` pages, or for those that there are."""
    last = numbers_of(lists[2], f"{prefix}last_page_len")
    indices = numbers_of(lists[1], f"{prefix}indices")
    counts = counts_of(lists[0], f"{prefix}indptr", last.numel())
    total = int(counts.sum())
    if total > indices.numel() or (indices[:total] < 0).any():
        raise UsageError(f"argument '{prefix}indices' must have the {total} pages of "
                         f"'{prefix}indptr', from 0 upwards, but got {indices.tolist()}",
                         "a page has the number of its place in the cache")
    if most is not None and total > most:
        raise UsageError(f"argument '{prefix}indices' must fit the buffer for {most} pages that "
                         f"the CUDA graph has, but got {total} pages",
                         "make the wrapper with a larger buffer for the indices of pages")
    if ((counts > 0) & ((last < 1) | (last > page_size))).any():
        raise UsageError(f"argument '{prefix}last_page_len' must be from 1 up to page_size "
                         f"{page_size}, but got {last.tolist()}",
                         "a page that is full has page_size tokens")
    room = max(1, int(counts.max()) if most is None else most)
    place = torch.arange(1 << (room - 1).bit_length(), device="cpu")
    known = torch.cat([indices[:total], torch.zeros(1, dtype=torch.int64, device="cpu")])
    begin = counts.cumsum(0) - counts
    pages = known[torch.where(place < counts[:, None], begin[:, None] + place, total)]
    lengths = torch.where(counts > 0, (counts - 1) * page_size + last, 0)
    return lengths.int(), pages.int(), int(indices[:total].max()) if total else -1
