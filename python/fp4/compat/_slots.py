"""Slots of a paged cache, as vLLM and FlashInfer have them."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import UsageError
from ..torch.checking import is_checked
from ..torch.planned import planned
from ..torch.slots import reshape_and_cache
from ._operands import check_tensor, eager, refuse, scalar, type_of

_FP8 = ("fp8", "fp8_e4m3")


@planned
def cached(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any, dtype: str,
           k_scale: Any, v_scale: Any) -> None:
    """Writes the tokens that have a slot. Caches of bytes have the elements of E4M3."""
    refuse(dtype != "auto" and dtype not in _FP8, f"kv_cache_dtype = {dtype!r}",
           f"pass 'auto' or '{_FP8[0]}'; fp4.torch.reshape_and_cache has nvfp4 and MX formats")
    for name, tensor in (("key", key), ("value", value), ("slot_mapping", slots),
                         ("key_cache", key_cache), ("value_cache", value_cache)):
        check_tensor(tensor, name)
    count = slots.shape[0] if slots.dim() == 1 else len(key)
    rows = (key[:count], value[:count])
    if dtype == "auto":
        reshape_and_cache(*rows, slots, key_cache, value_cache)
        return
    factors = [scalar(k_scale, "k_scale"), scalar(v_scale, "v_scale")]
    codes = [cache.view(torch.float8_e4m3fn) if cache.dtype == torch.uint8 else cache
             for cache in (key_cache, value_cache)]
    reshape_and_cache(*rows, slots, *codes, format="fp8", key_factor=factors[0],
                      value_factor=factors[1])


@eager
def append_paged_kv_cache(
    append_key: torch.Tensor,
    append_value: torch.Tensor,
    batch_indices: torch.Tensor,
    positions: torch.Tensor,
    paged_kv_cache: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
    kv_indices: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_last_page_len: torch.Tensor,
    kv_layout: str = "NHD",
) -> None:
    """Writes tokens of the cache's dtype: to a pair of tensors in one kernel.

    Raises:
        UsageError: an argument that does not fit.
    """
    _check_lists(append_key, append_value, batch_indices=batch_indices, positions=positions,
                 kv_indices=kv_indices, kv_indptr=kv_indptr)
    caches, is_pair = _parts(paged_kv_cache, kv_layout, append_key.dtype)
    size = caches[0].shape[1 if kv_layout == "NHD" else 2]
    token, number = positions.long() % size, positions.long() // size
    if is_checked():
        counts = kv_indptr.diff()[batch_indices.long()]
        wrong = (number < 0) | (number >= counts)
        if wrong.any():
            raise UsageError(f"argument 'positions' must be of a page of 'kv_indices', but number "
                             f"{int(wrong.nonzero()[0])} is {int(positions[wrong][0])}",
                             "give the sequence more pages first")
    page = kv_indices.long()[kv_indptr.long()[batch_indices.long()] + number]
    if is_pair:
        reshape_and_cache(append_key, append_value, page * size + token, *caches,
                          kv_layout=kv_layout)
        return
    for tokens, cache in zip((append_key, append_value), caches):
        places = cache if kv_layout == "NHD" else cache.transpose(1, 2)
        places[page, token] = tokens.detach()


def _check_lists(key: Any, value: Any, **lists: Any) -> None:
    for name, tensor in {"append_key": key, "append_value": value, **lists}.items():
        check_tensor(tensor, name)
    for name in ("batch_indices", "positions"):
        if tuple(lists[name].shape) != (len(key),):
            raise UsageError(f"argument '{name}' must have a number for each of the {len(key)} "
                             f"tokens of 'append_key', but got {type_of(lists[name])}",
                             "a token is of a sequence, at a position")


def _parts(cache: Any, kv_layout: str, dtype: torch.dtype) -> tuple[tuple[Any, Any], bool]:
    """The caches of keys and of values, and whether they are a pair."""
    if kv_layout not in ("NHD", "HND"):
        raise UsageError(f"argument 'kv_layout' must be 'NHD' or 'HND', but got {kv_layout!r}",
                         "tokens are in front of heads, or behind them")
    is_pair = isinstance(cache, (tuple, list)) and len(cache) == 2
    for one in cache if is_pair else (cache,):
        check_tensor(one, "paged_kv_cache")
        has_shape = one.dim() == 4 if is_pair else one.dim() == 5 and one.shape[1] == 2
        if not has_shape or one.dtype != dtype:
            raise UsageError(f"argument 'paged_kv_cache' must be {str(dtype)[6:]}, a pair of 4 "
                             f"dimensions each, or of shape [N, 2, ...], but got {type_of(one)}",
                             "fp4.torch.reshape_and_cache quantizes what it writes")
    return (cache[0], cache[1]) if is_pair else (cache[:, 0], cache[:, 1]), is_pair
