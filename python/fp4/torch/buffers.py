"""Scaled matrices as parts of a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..errors import UsageError
from .scaled import Scaled


class ScaledBuffers(torch.nn.Module):
    """A Scaled whose tensors are buffers of a module: state_dict, load_state_dict, deepcopy, to and
    cuda do with them what they do with other buffers.

        layer.weight = fp4.torch.ScaledBuffers(quantized)
        layer.weight.value               # the Scaled again
        layer.state_dict()               # weight.data, weight.scales, weight.amax and its facts

    A conversion of the module to another dtype, such as model.half(), leaves the buffers as they
    are: their bytes are no numbers.
    """

    _NAMES = ("data", "scales", "amax")

    def __init__(self, value: Scaled) -> None:
        super().__init__()
        for name in self._NAMES:
            self.register_buffer(name, None)
        self._assign(value)

    @property
    def value(self) -> Scaled:
        return Scaled(self.get_buffer("data"), self.get_buffer("scales"),
                      self._buffers["amax"], *self._facts)

    def _assign(self, value: Scaled) -> None:
        for name in self._NAMES:
            self._buffers[name] = getattr(value, name)
        self._facts = value._facts()

    def get_extra_state(self) -> dict[str, Any]:
        return dict(zip(("shape", "format", "layout", "recipe"), self._facts))

    def set_extra_state(self, state: dict[str, Any]) -> None:
        found = (tuple(state["shape"]), state["format"], state["layout"], state["recipe"])
        if found != self._facts:
            raise UsageError(f"the state must be of {self._facts}, but got {found}",
                             "nothing is converted: make a module of the same matrix to load it")

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> ScaledBuffers:
        del recurse  # there are no children
        for name, buffer in self._buffers.items():
            if buffer is not None:  # as integers, which no conversion of floating point touches
                integer = torch.int32 if buffer.dtype == torch.float32 else torch.uint8
                self._buffers[name] = fn(buffer.view(integer)).view(buffer.dtype)
        return self

    def extra_repr(self) -> str:
        rows, columns = self._facts[0]
        return f"{rows}x{columns} {self._facts[1]}, {self._facts[2]}, recipe='{self._facts[3]}'"
