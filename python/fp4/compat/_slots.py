"""Slots of a paged cache, as vLLM has them."""

from __future__ import annotations

from typing import Any

import torch

from ..torch.planned import planned
from ..torch.slots import reshape_and_cache
from ._operands import check_tensor, refuse, scalar

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
