"""FlashAttention's functions for sequences of one length and packed ones, of flash-attn 2.8.3.

Powers and sums come in the order of fp4's kernels: last bits differ. A query that sees no key gives
zeros, and the logarithm minus infinity, where FlashAttention has plus infinity.

Logarithms of sums have FlashAttention's biases: with causal, slopes and no window slope * j for
key j, else -slope * |i + Sk - Sq - j| for query i.

Refused are dropout, windows that end behind the query, and slopes of each sequence. Gradients flow
but with slopes and pages. `max_seqlen_q` and `deterministic` have no effect: every result is
deterministic. A window of more than `max_seqlen_k` keys is none.

Source: flash_attn_interface of the source distribution.
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import UsageError
from ..torch.attend import attention
from ._operands import check_tensor, eager, refuse, type_of

__all__ = ["flash_attn_func", "flash_attn_varlen_func"]

_attend: Any = attention  # whose overloads know the value of return_lse


@eager
def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """Attention of [B, Sq, Hq, D], [B, Sk, Hk, D] and [B, Sk, Hk, E]; logarithms are [B, Hq, Sq].
    Other arguments are those of flash_attn_varlen_func."""
    for name, tensor in zip("qkv", (q, k, v)):
        check_tensor(tensor, name)
    most = k.shape[1] if k.dim() > 1 else 0
    return _attended((q, k, v), dropout_p, softmax_scale, causal, window_size, softcap,
                     alibi_slopes, return_attn_probs, most)


@eager
def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: torch.Tensor | None = None,
) -> Any:
    """Attention of packed sequences, [total_q, Hq, D].

    Args:
        q, k, v: [total_q, Hq, D], [total_k, Hk, D] and [total_k, Hk, E], of bfloat16 or float16.
        cu_seqlens_q, cu_seqlens_k: int32 [B + 1], where sequences begin and end.
        window_size: (left, 0), or (left, -1) with causal, or (-1, -1).
        return_attn_probs: also return the logarithms of sums [Hq, total_q], and an empty tensor.
        block_table: int32 [B, P]; k and v are then pages [N, T, Hk, D] of T tokens, a multiple
            of 8.

    Raises:
        UsageError: an argument that does not fit. CompileError: a GPU or a shape without a kernel.
    """
    for name, tensor in zip("qkv", (q, k, v)):
        check_tensor(tensor, name)
    for name, tensor in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        check_tensor(tensor, name)
        if tensor.dtype != torch.int32 or tensor.dim() != 1 or tensor.shape != cu_seqlens_q.shape:
            raise UsageError(f"argument '{name}' must be int32 of one dimension, as many numbers "
                             f"as 'cu_seqlens_q' has, but got {type_of(tensor)}",
                             "a sequence begins where the one before ends")
    keys: dict[str, Any] = {"cu_seqlens_k": cu_seqlens_k}
    if block_table is not None:
        keys = {"pages": block_table, "lengths": cu_seqlens_k.diff()}
    return _attended((q, k, v), dropout_p, softmax_scale, causal, window_size, softcap,
                     alibi_slopes, return_attn_probs, max_seqlen_k, cu_seqlens_q=cu_seqlens_q,
                     **keys)


def _attended(tensors: tuple[Any, Any, Any], dropout_p: float, scale: float | None, causal: bool,
              window_size: tuple[int, int], softcap: float, slopes: torch.Tensor | None,
              return_probs: bool, most_keys: int, **sequences: Any) -> Any:
    """The result, and with `return_probs` the logarithms of sums by head, and an empty tensor."""
    refuse(bool(dropout_p), "'dropout_p' other than 0")
    if slopes is not None:
        check_tensor(slopes, "alibi_slopes")
        refuse(slopes.dim() > 1, "'alibi_slopes' of each sequence",
               "pass one slope for each head, [Hq]")
    causal, window = _masked(causal, window_size)
    results: Any = _attend(*tensors, causal=causal, scale=scale, softcap=softcap or None,
                           window=window, alibi_slopes=slopes, return_lse=return_probs, **sequences)
    if not return_probs:
        return results
    result, lse = results
    if slopes is not None and causal and (window is None or window > most_keys):
        lse = lse + slopes * _last_keys(*tensors[:2], **sequences).unsqueeze(-1)
    return result, lse.transpose(-1, -2).contiguous(), result.new_empty(0)


def _last_keys(query: torch.Tensor, key: torch.Tensor, cu_seqlens_q: torch.Tensor | None = None,
               cu_seqlens_k: torch.Tensor | None = None, lengths: torch.Tensor | None = None,
               pages: torch.Tensor | None = None) -> torch.Tensor:
    """i + Sk - Sq of each query i of its sequence: the number of the last key that a causal mask
    lets it see."""
    if cu_seqlens_q is None:
        return torch.arange(query.shape[1], device=query.device) + key.shape[1] - query.shape[1]
    if lengths is None:
        assert cu_seqlens_k is not None
        lengths = cu_seqlens_k.diff()
    rows = torch.arange(query.shape[0], device=query.device, dtype=torch.int32)
    ends = cu_seqlens_q[1:].contiguous()
    sequence = torch.searchsorted(ends, rows, right=True).clamp(max=ends.numel() - 1)
    return rows - ends[sequence] + lengths[sequence]


def _masked(causal: bool, window_size: Any) -> tuple[bool, int | None]:
    """The causal mask and the window that a window (left, right) is."""
    if not isinstance(window_size, (tuple, list)) or len(window_size) != 2 or not all(
            isinstance(x, int) for x in window_size):
        raise UsageError(f"argument 'window_size' must be (left, right), but got {window_size!r}",
                         "pass (-1, -1) without a window")
    left, right = window_size
    right = 0 if causal else right
    refuse(right > 0 or (right < 0 <= left), f"'window_size' {tuple(window_size)}",
           "a window ends with its query: pass (left, 0)")
    return right == 0, left + 1 if left >= 0 else None
