"""The decode of FlashMLA over a paged latent cache, computed by fp4.torch.attention.

    from fp4.compat.flash_mla import flash_mla_with_kvcache, get_mla_metadata

Metadata has no effect: plans cut keys into slices. The package's sparse and FP8 forms are refused.
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import UsageError
from ..torch.attend import attention
from ._operands import check_tensor, eager, refuse


def get_mla_metadata(*_: Any, **__: Any) -> tuple[None, None]:
    """The metadata of flash_mla_with_kvcache: none."""
    return None, None


@eager
def flash_mla_with_kvcache(
    q: torch.Tensor, k_cache: torch.Tensor, block_table: torch.Tensor, cache_seqlens: torch.Tensor,
    head_dim_v: int, tile_scheduler_metadata: Any = None, num_splits: Any = None,
    softmax_scale: float | None = None, causal: bool = False, is_fp8_kvcache: bool = False,
    indices: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of q, [B, Sq, Hq, 576], over k_cache, [N, T, 1, 576] in pages, and logarithms of
    sums [B, Hq, Sq].

    Raises:
        UsageError: an argument that does not fit, or sparse or FP8 caches.
    """
    for name, tensor in (("q", q), ("k_cache", k_cache), ("block_table", block_table),
                         ("cache_seqlens", cache_seqlens)):
        check_tensor(tensor, name)
    refuse(is_fp8_kvcache, "'is_fp8_kvcache'", "kernels have latent caches of 16 bits")
    refuse(indices is not None, "'indices'", "kernels see all tokens of a sequence")
    if not isinstance(head_dim_v, int) or not 0 < head_dim_v <= k_cache.shape[-1]:
        raise UsageError(f"argument 'head_dim_v' must be from 1 to the {k_cache.shape[-1]} "
                         f"elements of 'k_cache', but got {head_dim_v!r}", "pass 512 of 576")
    out, lse = attention(q, k_cache, None, latent=head_dim_v, lengths=cache_seqlens,
                         pages=block_table, causal=bool(causal), scale=softmax_scale,
                         return_lse=True)
    return out, lse.transpose(1, 2)
