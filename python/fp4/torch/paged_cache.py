"""A paged cache of keys and values, that sequences fill token by token."""

from __future__ import annotations

import torch

from ..errors import UsageError
from .attend import attention
from .row_results import check_tensor, said


class PagedCache:
    """Keys and values of sequences in pages of tokens, as vLLM and FlashInfer keep them (NHD).

        cache = fp4.torch.PagedCache(2, 4096, key_heads=8, elements=128, device="cuda")
        cache.append(key, value)               # [2, S, 8, 128] each: S tokens of each sequence
        y = cache.attention(query)             # [2, S, Hq, 128]: the queries of these tokens

    Nothing waits for the device: a CUDA graph of `append` and `attention` can be replayed for each
    token.

    Attributes:
        key, value: [N, T, Hk, D] and [N, T, Hk, E], zero at first: N pages of T tokens.
        pages: int32 [B, P], the pages of each sequence.
        lengths: int32 [B], the tokens of each sequence.
    """

    def __init__(self, sequences: int, tokens: int, *, key_heads: int, elements: int,
                 value_elements: int | None = None, page_tokens: int = 64,
                 dtype: torch.dtype = torch.bfloat16,
                 device: torch.device | str | None = None) -> None:
        """Makes room for `tokens` tokens of each of `sequences`, in whole pages.

        Args:
            page_tokens: tokens of a page, a multiple of 8.
            value_elements: E, elements of a head of values; D unless given.

        Raises:
            UsageError: a size that is not positive, or pages that have no kernel.
        """
        sizes = {"sequences": sequences, "tokens": tokens, "key_heads": key_heads,
                 "elements": elements, "page_tokens": page_tokens}
        for name, size in sizes.items():
            if size < 1:
                raise UsageError(f"'{name}' must be positive, but got {size}", "")
        if page_tokens % 8:
            raise UsageError(f"'page_tokens' must be a multiple of 8, but got {page_tokens}",
                             "16, 32, 64 or 128 tokens are usual")
        count = -(-tokens // page_tokens)
        shape = (sequences * count, page_tokens, key_heads)
        self.key = torch.zeros(*shape, elements, dtype=dtype, device=device)
        self.value = torch.zeros(*shape, value_elements or elements, dtype=dtype, device=device)
        pages = torch.arange(sequences * count, dtype=torch.int32, device=device)
        self.pages = pages.view(sequences, count)
        self.lengths = torch.zeros(sequences, dtype=torch.int32, device=device)

    def append(self, key: torch.Tensor, value: torch.Tensor) -> None:
        """Writes the keys and values of S more tokens of each sequence, [B, S, Hk, D] and
        [B, S, Hk, E], behind those that it has. A sequence must have room for them: there are
        P * T tokens.

        Raises:
            UsageError: an argument that does not fit.
        """
        sequences, tokens = len(self.lengths), self.key.shape[1]
        for name, tensor, cache in (("key", key, self.key), ("value", value, self.value)):
            check_tensor(tensor, name)
            if (tensor.dim() != 4 or tensor.shape[0] != sequences or tensor.dtype != cache.dtype
                    or tensor.shape[2:] != cache.shape[2:]
                    or tensor.shape[1] != key.shape[1]):
                raise UsageError(f"'{name}' must be {str(cache.dtype).removeprefix('torch.')} of "
                                 f"shape {[sequences, 'S', *cache.shape[2:]]}, but got "
                                 f"{said(tensor)}", "pass the same new tokens of all sequences")
        place = self.lengths[:, None] + torch.arange(key.shape[1], device=self.key.device)
        page = self.pages.gather(1, (place // tokens).long())
        slot = (page * tokens + place % tokens).flatten()
        self.key.flatten(0, 1).index_copy_(0, slot, key.flatten(0, 1))
        self.value.flatten(0, 1).index_copy_(0, slot, value.flatten(0, 1))
        self.lengths += key.shape[1]

    def gather(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The keys and values of all sequences in their order, [B, P * T, Hk, D] and
        [B, P * T, Hk, E]: those behind a length are no tokens of it."""
        pages = self.pages.long()
        return self.key[pages].flatten(1, 2), self.value[pages].flatten(1, 2)

    def attention(self, query: torch.Tensor, *, causal: bool = True,
                  scale: float | None = None) -> torch.Tensor:
        """`fp4.torch.attention` of queries [B, Sq, Hq, D], those of the last tokens of each
        sequence, and all keys of the cache."""
        return attention(query, self.key, self.value, causal=causal, scale=scale,
                         lengths=self.lengths, pages=self.pages)
