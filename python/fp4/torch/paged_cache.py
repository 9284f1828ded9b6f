"""A paged cache of keys and values, that sequences fill token by token."""

from __future__ import annotations

import torch

from ..errors import UsageError
from . import functional
from .attend import attention
from .attend_numbers import check_ranges
from .checking import is_checked
from .row_results import check_tensor, said
from .scaled import Scaled
from .slots import reshape_and_cache

#: The dtype of codes and of scales, the elements of a code's dtype, and those that share a scale.
_FORMATS = {"nvfp4": (torch.uint8, torch.float8_e4m3fn, 2, 16),
            "mxfp4": (torch.uint8, torch.float8_e8m0fnu, 2, 32),
            "mxfp8_e4m3": (torch.float8_e4m3fn, torch.float8_e8m0fnu, 1, 32),
            "fp8": (torch.float8_e4m3fn, None, 1, 0)}
#: The largest number of codes times a scale, by which NVFP4 divides an amax.
_RANGE = 2688.0


class PagedCache:
    """Keys and values of sequences in pages of tokens, as vLLM and FlashInfer keep them (NHD).

        cache = fp4.torch.PagedCache(2, 4096, key_heads=8, elements=128, device="cuda")
        cache.append(key, value)               # [2, S, 8, 128] each: S tokens of each sequence
        y = cache.attention(query)             # [2, S, Hq, 128]: the queries of these tokens

    CUDA graphs of `append` and `attention` can be replayed.

    With `format`, tokens are quantized as they are appended. `key_factors` and `value_factors` are
    then decode scales, 1 unless set: numbers of fp8 are up to 448 times theirs, and of nvfp4 up to
    2688 times.

    Attributes:
        key, value: [N, T, Hk, D] and [N, T, Hk, E], zero at first: N pages of T tokens.
        key_scales, value_scales: of the blocks of codes, [N, T, Hk, D/16] or [N, T, Hk, D/32];
            None without.
        key_factors, value_factors: float32 [1], decode scales of "fp8" and "nvfp4"; else None.
        pages: int32 [B, P], the pages of each sequence.
        lengths: int32 [B], the tokens of each sequence.
    """

    def __init__(self, sequences: int, tokens: int, *, key_heads: int, elements: int,
                 value_elements: int | None = None, page_tokens: int = 64,
                 dtype: torch.dtype = torch.bfloat16, format: str = "",
                 device: torch.device | str | None = None) -> None:
        """Makes room for `tokens` tokens of each of `sequences`, in whole pages.

        Args:
            page_tokens: tokens of a page, a multiple of 8, or of 16 with a format.
            dtype: of keys and values that are appended, bfloat16 or float16.
            format: "fp8", "nvfp4", or with bfloat16 "mxfp4" or "mxfp8_e4m3"; elements as they are
                unless given.
            value_elements: E, elements of a head of values; D unless given.

        Raises:
            UsageError: a size that is not positive, or pages that have no kernel.
        """
        sizes = {"sequences": sequences, "tokens": tokens, "key_heads": key_heads,
                 "elements": elements, "page_tokens": page_tokens}
        for name, size in sizes.items():
            if not isinstance(size, int) or size < 1:
                raise UsageError(f"'{name}' must be a positive int, but got {size!r}",
                                 "a cache has room for one token or more")
        if format and format not in _FORMATS:
            raise UsageError(f"'format' must be {', '.join(_FORMATS)} or '', but got {format!r}",
                             "'' keeps elements as they are")
        if dtype not in (torch.bfloat16, torch.float16):
            raise UsageError(f"'dtype' must be bfloat16 or float16, but got {str(dtype)[6:]}",
                             "attention has queries, keys and values of one of them")
        if format.startswith("mx") and dtype != torch.bfloat16:
            raise UsageError(f"'format' {format} must come with bfloat16, but got "
                             f"{str(dtype)[6:]}", "its scales have the exponents of bfloat16")
        unit = 16 if format else 8
        if page_tokens % unit:
            raise UsageError(f"'page_tokens' must be a multiple of {unit}, but got {page_tokens}",
                             "16, 32, 64 or 128 tokens are usual")
        count = -(-tokens // page_tokens)
        shape = (sequences * count, page_tokens, key_heads)
        self.format, self._dtype = format, dtype
        code, scale, packed, block = _FORMATS.get(format, (dtype, None, 1, 0))
        self._elements = (elements, value_elements or elements)
        self.key, self.value = (torch.zeros(*shape, size // packed, dtype=code, device=device)
                                for size in self._elements)
        self.key_scales, self.value_scales = (
            torch.zeros(*shape, -(-size // block), dtype=torch.uint8, device=device).view(scale)
            if scale is not None else None for size in self._elements)
        self.key_factors, self.value_factors = (
            torch.ones(1, dtype=torch.float32, device=device)
            if format in ("fp8", "nvfp4") else None for _ in range(2))
        pages = torch.arange(sequences * count, dtype=torch.int32, device=device)
        self.pages = pages.view(sequences, count)
        self.lengths = torch.zeros(sequences, dtype=torch.int32, device=device)

    def append(self, key: torch.Tensor, value: torch.Tensor) -> None:
        """Writes keys and values of S more tokens of each sequence, [B, S, Hk, D] and
        [B, S, Hk, E]. Room for them, up to P * T tokens, is checked on the CPU and in checked().

        Raises:
            UsageError: an argument that does not fit.
        """
        sequences, tokens = len(self.lengths), self.key.shape[1]
        heads = self.key.shape[2]
        for name, tensor, size in (("key", key, self._elements[0]),
                                   ("value", value, self._elements[1])):
            check_tensor(tensor, name)
            if (tensor.dim() != 4 or tensor.shape[0] != sequences or tensor.dtype != self._dtype
                    or tuple(tensor.shape[2:]) != (heads, size)
                    or tensor.shape[1] != key.shape[1]):
                raise UsageError(f"'{name}' must be {str(self._dtype).removeprefix('torch.')} of "
                                 f"shape {[sequences, 'S', heads, size]}, but got "
                                 f"{said(tensor)}", "pass the same new tokens of all sequences")
        after = self.lengths + key.shape[1]
        if not torch.compiler.is_compiling() and (is_checked() or after.device.type == "cpu"):
            check_ranges(self.key, after, self.pages, heads_first=False)
        place = self.lengths[:, None] + torch.arange(key.shape[1], device=self.key.device)
        page = self.pages.gather(1, (place // tokens).long())
        slot = (page * tokens + place % tokens).flatten().long()
        reshape_and_cache(key.flatten(0, 1), value.flatten(0, 1), slot, self.key, self.value,
                          format=self.format, key_scales=self.key_scales,
                          value_scales=self.value_scales, key_factor=self.key_factors,
                          value_factor=self.value_factors)
        self.lengths += key.shape[1]

    def _numbers(self, codes: torch.Tensor, scales: torch.Tensor | None,
                 factor: torch.Tensor | None, elements: int) -> torch.Tensor:
        """Rows of codes as numbers of the cache's dtype."""
        if not self.format:
            return codes
        if scales is None:
            numbers = codes.float() if factor is None else codes.float() * factor
            return numbers.to(self._dtype)
        if self.format == "mxfp8_e4m3":
            blocks = codes.float().reshape(*scales.shape, -1)
            return (blocks * scales.float().unsqueeze(-1)).flatten(-2).to(self._dtype)
        rows = codes.view(-1, codes.shape[-1])
        amax = None if factor is None else factor[0] * _RANGE
        scaled = Scaled(rows, scales.view(len(rows), -1), amax, (len(rows), elements), self.format,
                        "linear")
        return functional.dequantize(scaled, self._dtype).view(*codes.shape[:-1], elements)

    def gather(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The keys and values of all sequences in their order, [B, P * T, Hk, D] and
        [B, P * T, Hk, E]: those behind a length are no tokens of it. Codes are decoded."""
        pages = self.pages.long()
        found = []
        for codes, scales, factor, size in (
                (self.key, self.key_scales, self.key_factors, self._elements[0]),
                (self.value, self.value_scales, self.value_factors, self._elements[1])):
            chosen = None if scales is None else _bytes(scales)[pages].view(scales.dtype)
            numbers = self._numbers(_bytes(codes)[pages].view(codes.dtype), chosen, factor, size)
            found.append(numbers.flatten(1, 2))
        return found[0], found[1]

    def attention(self, query: torch.Tensor, *, causal: bool = True, scale: float | None = None,
                  softcap: float | None = None, window: int | None = None,
                  sinks: torch.Tensor | None = None) -> torch.Tensor:
        """`fp4.torch.attention` of the queries of the last tokens, [B, Sq, Hq, D]."""
        return attention(query, self.key, self.value, causal=causal, scale=scale,
                         softcap=softcap, window=window, sinks=sinks, lengths=self.lengths,
                         pages=self.pages, key_scales=self.key_scales,
                         value_scales=self.value_scales, key_factors=self.key_factors,
                         value_factors=self.value_factors)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of codes as one that torch can index."""
    return tensor if tensor.dtype in (torch.bfloat16, torch.float16) else tensor.view(torch.uint8)

