"""Attention of tensors whose heads are in front of tokens, as torch.nn.functional has it.

    scaled_dot_product_attention(query, key, value, ...) -> elements
"""

from __future__ import annotations

import torch

from ..errors import UsageError
from .attend import _check_heads, attention
from .row_results import check_tensor

Maybe = torch.Tensor | None


def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                                 attn_mask: None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> torch.Tensor:
    """torch.nn.functional.scaled_dot_product_attention, where `attention` computes the same.

    Args:
        query, key, value: bfloat16 or float16 [B, Hq, Sq, D], [B, Hk, Sk, D] and [B, Hk, Sk, E].
            Tensors that are neither contiguous nor transposed views of [B, S, H, D] are copied.
        is_causal: query i sees keys up to i, as torch aligns the mask with the first key.
        enable_gqa: Hq is a multiple of Hk; without it Hq = Hk.

    Raises:
        UsageError: a mask, dropout, or an argument that does not fit. CompileError: a GPU or a
            shape without a kernel.
    """
    if attn_mask is not None or dropout_p:
        raise UsageError("'attn_mask' and 'dropout_p' must be left out",
                         "fp4.torch.attention has causal masks and lengths of sequences")
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        check_tensor(tensor, name)
        if tensor.dim() != 4:
            raise UsageError(f"'{name}' must be batches x heads x tokens x elements, but got the "
                             f"shape {list(tensor.shape)}",
                             "pass x.unsqueeze(0) of heads x tokens x elements")
        _check_heads(tensor, name, query)
        if tensor.shape[0] != query.shape[0]:
            raise UsageError(f"'{name}' must have the {query.shape[0]} batches of 'query', but has "
                             f"{tensor.shape[0]}", "write x.expand(batches, -1, -1, -1)")
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise UsageError(f"'key' must have the {query.shape[1]} heads of 'query', but has "
                         f"{key.shape[1]}", "pass enable_gqa=True where heads share keys")
    tokens, keys = query.shape[2], key.shape[2]
    if _are_lists(query, key, value, is_causal):
        return _attended_by_heads(query, key, value, is_causal, scale)
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    if not is_causal or tokens <= keys:  # no query sees the keys behind it
        key, value = (x[:, :tokens] if is_causal else x for x in (key, value))
        return attention(query, key, value, causal=is_causal, scale=scale).transpose(1, 2)
    parts = (attention(query[:, :keys], key, value, causal=True, scale=scale),
             attention(query[:, keys:], key, value, scale=scale))
    return torch.cat(parts, dim=1).transpose(1, 2)


def _are_lists(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, causal: bool) -> bool:
    """Returns True where heads in front of tokens are sequences without a copy."""
    heads, of_keys = query.shape[1], key.shape[1]
    return (all(x.is_contiguous() and x.numel() for x in (query, key, value))
            and query.shape[0] == key.shape[0] and key.shape[:3] == value.shape[:3]
            and heads % of_keys == 0
            and (not causal or query.shape[2] == key.shape[2]))


def _attended_by_heads(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, causal: bool,
                       scale: float | None) -> torch.Tensor:
    """The result of contiguous [B, H, S, D], whose heads are sequences: without a causal mask heads
    that share keys are tokens of one, which see the same keys."""
    shape = (*query.shape[:3], value.shape[3])
    of_queries, *of_keys = (x.flatten(0, 1).unsqueeze(2) for x in (query, key, value))
    if not causal:
        of_queries = of_queries.reshape(of_keys[0].shape[0], -1, 1, query.shape[3])
    return attention(of_queries, *of_keys, causal=causal, scale=scale).view(shape)
