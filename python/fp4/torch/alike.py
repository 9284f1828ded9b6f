"""The facts that ranks which share a decoder must have in common: its arguments, the configuration
of its model, and checksums of the weights."""

from __future__ import annotations

import math
from typing import Any

import torch

#: Entries of a configuration that say where a model comes from, and not what it is.
_ORIGINS = ("_name_or_path", "transformers_version", "architectures")


@torch.no_grad()
def facts_of(model: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns the facts by the words that an error calls them."""
    config = {key: value for key, value in model.config.to_dict().items() if key not in _ORIGINS}
    return {**{f"'{name}'": value for name, value in arguments.items()},
            **{f"the {key} of the model": value for key, value in config.items()},
            **{f"a checksum of '{name}' of": value for name, value in _checksums(model).items()}}


def _checksums(model: Any) -> dict[str, tuple[Any, ...]]:
    """The dtype, the shape and the checksum of every parameter and every buffer of a state: tiles
    and their scales are buffers. Parts that each rank has read have no checksum in common."""
    tensors = {name: value.detach() for name, value in model.state_dict().items()
               if isinstance(value, torch.Tensor)}
    read = tuple(f"{name}." for name, module in model.named_modules()
                 if getattr(module, "part", None))
    sums = {name: checksum(value) * (not name.startswith(read)) for name, value in tensors.items()}
    found = torch.stack(list(sums.values())).tolist() if sums else []  # the host waits once
    return {name: (str(tensors[name].dtype)[6:], list(tensors[name].shape), *found[number])
            for number, name in enumerate(sums)}


def checksum(tensor: torch.Tensor) -> torch.Tensor:
    """Two sums of the bytes, int64 [2]: of rows and of columns, each multiplied by its place, since
    a plain sum is that of other orders too."""
    words = tensor.contiguous().view(-1).view(torch.uint8)
    if not words.numel() % 4 and not words.storage_offset() % 4:
        words = words.view(torch.int32)
    width = math.gcd(words.numel(), 1024) or 1
    table = words.view(-1, width)
    sums = [table.sum(dim, dtype=torch.int64) for dim in range(2)]
    return torch.stack([(one * torch.arange(1, len(one) + 1, device=one.device)).sum()
                        for one in sums])
