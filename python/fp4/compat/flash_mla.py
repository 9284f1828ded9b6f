"""The decode of FlashMLA over a paged latent cache, computed by fp4.torch.attention.

    from fp4.compat.flash_mla import flash_mla_with_kvcache, get_mla_metadata

Metadata has no effect: plans cut keys into slices. Queries and caches of float8_e4m3fn have the
scales of vLLM's form. The package's sparse form, and its FP8 one of 656 bytes a token, are refused.
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import UsageError
from ..torch.attend import attention
from ._operands import check_tensor, eager, refuse, scalar, type_of


def get_mla_metadata(*_: Any, **__: Any) -> tuple[None, None]:
    """The metadata of flash_mla_with_kvcache: none."""
    return None, None


@eager
def flash_mla_with_kvcache(
    q: torch.Tensor, k_cache: torch.Tensor, block_table: torch.Tensor, cache_seqlens: torch.Tensor,
    head_dim_v: int, tile_scheduler_metadata: Any = None, num_splits: Any = None,
    softmax_scale: float | None = None, causal: bool = False, is_fp8_kvcache: bool = False,
    indices: torch.Tensor | None = None, *, descale_q: torch.Tensor | None = None,
    descale_k: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of q, [B, Sq, Hq, 576], over k_cache, [N, T, 1, 576] in pages, and logarithms of
    sums [B, Hq, Sq]. One float32 `descale_q` and `descale_k` multiply elements of float8_e4m3fn.

    Raises:
        UsageError: an argument that does not fit, sparse caches, or FP8 ones of 656 bytes.
    """
    for name, tensor in (("q", q), ("k_cache", k_cache), ("block_table", block_table),
                         ("cache_seqlens", cache_seqlens)):
        check_tensor(tensor, name)
    refuse(is_fp8_kvcache and k_cache.dtype == torch.uint8, "'is_fp8_kvcache' of 656 bytes a token",
           "pass queries and caches of float8_e4m3fn, with 'descale_q' and 'descale_k'")
    refuse(indices is not None, "'indices'", "kernels see all tokens of a sequence")
    if not isinstance(head_dim_v, int) or not 0 < head_dim_v <= k_cache.shape[-1]:
        raise UsageError(f"argument 'head_dim_v' must be from 1 to the {k_cache.shape[-1]} "
                         f"elements of 'k_cache', but got {head_dim_v!r}", "pass 512 of 576")
    of_keys, of_values = _factors(q, descale_q, descale_k)
    out, lse = attention(q, k_cache, None, latent=head_dim_v, lengths=cache_seqlens,
                         pages=block_table, causal=bool(causal), scale=softmax_scale,
                         key_factors=of_keys, value_factors=of_values, return_lse=True)
    return out, lse.transpose(1, 2)


def _factors(q: torch.Tensor, descale_q: torch.Tensor | None, descale_k: torch.Tensor | None
             ) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """The factors of products and of values; none without scales."""
    if descale_q is None and descale_k is None:
        return None, None
    if descale_q is None or descale_k is None or q.dtype != torch.float8_e4m3fn:
        raise UsageError(f"arguments 'descale_q' and 'descale_k' must come together, beside "
                         f"queries of float8_e4m3fn, but got {type_of(q)}", "pass both, or neither")
    of_query, of_keys = scalar(descale_q, "descale_q"), scalar(descale_k, "descale_k")
    return (of_query * of_keys).reshape(1), of_keys.reshape(1)
