"""The weight of a layer that stores it in 4 bits, as a tensor of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree

from ..errors import UsageError

_REMEDY = ("fp4.torch.dequantize_(model) makes torch.nn.Linear layers, whose weights can be "
           "written; unpack() gives the fp4.torch.Scaled")


class StoredWeight(torch.Tensor):
    """A weight [out_features, in_features] whose shape, dtype and device are known, and whose
    numbers are dequantized each time that an operation of torch reads them.

    The weight cannot be written: an operation in place is an error, and views of it are copies.
    """

    _numbers: Callable[[torch.dtype], torch.Tensor]
    #: transformers makes no random numbers for a weight that says so.
    _is_hf_initialized = True

    @staticmethod
    def __new__(cls, numbers: Callable[[torch.dtype], torch.Tensor], shape: tuple[int, int],
                dtype: torch.dtype, device: torch.device) -> StoredWeight:
        made: StoredWeight = torch.Tensor._make_wrapper_subclass(
            cls, shape, dtype=dtype, device=device, requires_grad=False)
        made._numbers = numbers
        return made

    def __init__(self, *_: Any) -> None:
        super().__init__()

    @property
    def data(self) -> torch.Tensor:
        """The tensor itself, so that nobody writes into a copy."""
        return self

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        raise UsageError("a weight that is stored in 4 bits cannot be assigned", _REMEDY)

    def __setitem__(self, place: Any, value: Any) -> None:
        raise UsageError("a weight that is stored in 4 bits cannot be assigned", _REMEDY)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
            cls, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        del types
        expected = function._schema.arguments
        values = {**dict(zip((argument.name for argument in expected), arguments)), **(named or {})}
        if any(isinstance(values.get(argument.name), StoredWeight) for argument in expected
               if argument.alias_info is not None and argument.alias_info.is_write):
            raise UsageError(f"{function} writes a weight that is stored in 4 bits", _REMEDY)
        arguments, named = _pytree.tree_map_only(
            StoredWeight, lambda weight: weight._numbers(weight.dtype), (arguments, named or {}))
        return function(*arguments, **named)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        del tensor_contents
        return f"StoredWeight({list(self.shape)}, dtype={self.dtype}, device='{self.device}')"


def refuse_reset(layer: torch.nn.Module) -> None:
    """Refuses to reset a layer whose weight has no other numbers than the quantized ones."""
    raise UsageError(f"a {type(layer).__name__} has no parameters to reset: its weight is stored "
                     "in 4 bits", "quantize a torch.nn.Linear after its reset_parameters()")


def converted(dtype: torch.dtype, fn: Callable[..., Any]) -> torch.dtype:
    """Returns the dtype that Module._apply gives to a weight that is no parameter."""
    result: torch.dtype = fn(torch.empty(0, dtype=dtype)).dtype
    return result
