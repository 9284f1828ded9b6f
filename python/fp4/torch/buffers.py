"""Scaled matrices as parts of a module."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch

from ..errors import UsageError
from .scaled import SCALE_DTYPES, Scaled


class ScaledBuffers(torch.nn.Module):
    """A Scaled whose tensors are buffers of a module: state_dict, load_state_dict, deepcopy, to and
    cuda do with them what they do with other buffers.

        layer.matrix = fp4.torch.ScaledBuffers(quantized)
        layer.matrix.value               # the Scaled again
        layer.state_dict()               # matrix.data, matrix.scales, matrix.amax, matrix.facts

    Data and scales are bytes, and `facts` the shape, format, layout and recipe as bytes of JSON, as
    safetensors can hold them. A state of another matrix is refused.

    A conversion of the module to another dtype, such as model.half(), leaves the buffers as they
    are.
    """

    def __init__(self, value: Scaled) -> None:
        super().__init__()
        self.register_buffer("data", value.data.view(torch.uint8))
        self.register_buffer("scales", value.scales.view(torch.uint8))
        self.register_buffer("amax", value.amax)
        self._facts = value._facts()
        self.register_buffer("facts", _encoded(self._facts).to(value.device))

    @property
    def value(self) -> Scaled:
        """The matrix; its tensors are the buffers themselves."""
        scales = self.get_buffer("scales").view(SCALE_DTYPES[self._facts[1]])
        return Scaled(self.get_buffer("data").view(torch.float4_e2m1fn_x2), scales,
                      self._buffers["amax"], *self._facts)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        given = state_dict.get(f"{prefix}facts")
        if given is not None and not given.is_meta and _decoded(given) != self._facts:
            raise UsageError(f"the state must be of {self._facts}, but got {_decoded(given)}",
                             "nothing is converted: make a module of the same matrix to load it")
        super()._load_from_state_dict(state_dict, prefix, *rest)

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


def _encoded(facts: tuple[Any, ...]) -> torch.Tensor:
    with torch.device("cpu"):
        return torch.tensor(list(json.dumps(facts).encode()), dtype=torch.uint8)


def _decoded(facts: torch.Tensor) -> tuple[Any, ...]:
    try:
        shape, *names = json.loads(bytes(facts.tolist()))
        return (tuple(shape), *names)
    except (ValueError, TypeError) as error:
        raise UsageError(f"the facts of a matrix must be bytes of JSON, but got {facts.dtype} of "
                         f"shape {list(facts.shape)}", "the state is damaged") from error
