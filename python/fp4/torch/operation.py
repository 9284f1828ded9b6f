"""Makes operations torch.ops.fp4.* known to torch.

An operation is defined and implemented with torch.library.Library, because what
torch.library.custom_op puts between the dispatcher and the implementation takes longer than the
host's share of a launch (benchmarks/python/dispatch.py). One kernel for Autograd records a gradient
where one is asked for, and otherwise calls the implementation at once. Calls that are repeated
leave out the dispatcher too (planned.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from ..errors import UsageError
from . import execution
from .planned import planned

_C: Any = torch._C  # its stubs lack the dispatcher
_LIBRARY: Any = torch.library.Library("fp4", "DEF")  # type: ignore[no-untyped-call]


def _bits(key: str) -> int:
    found: int = _C.DispatchKeySet(getattr(_C.DispatchKey, key)).raw_repr()
    return found


#: Something else than the implementation is to be called: a mode such as FakeTensorMode, a subclass
#: such as DTensor, functionalization, a transform of torch.func, or the fake one of meta tensors.
_WATCHED = (_bits("Python") | _bits("Functionalize") | (_bits("Meta") & ~_bits("CPU")) |
            _bits("FuncTorchGradWrapper") | _bits("FuncTorchBatched") |
            _bits("FuncTorchDynamicLayerBackMode"))

NO_GRADIENT = ("fp4.torch.fake_quantize passes gradients straight through, and fp4.torch.Linear "
               "has those of a linear layer; x.detach() if none is wanted")


class Operation:
    """torch.ops.fp4.NAME, of a schema "NAME(arguments) -> results".

    Args:
        implementation: of tensors in memory, on the CPU and on CUDA devices.
        fake: the results of tensors without memory.
    """

    def __init__(self, schema: str, implementation: Callable[..., Any],
                 fake: Callable[..., Any]) -> None:
        self.name = schema.split("(", 1)[0]
        implementation = planned(_collected(implementation, fake))  # for callers in C++
        _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        _LIBRARY.impl(self.name, implementation, "CompositeExplicitAutograd")
        torch.library.register_fake(f"fp4::{self.name}", fake, lib=_LIBRARY)
        self.overload: Any = getattr(torch.ops.fp4, self.name).default
        self._backward: Callable[..., Any] | None = None
        self._keep: Callable[..., Any] | None = None
        _LIBRARY.impl(self.name, _recording(self, implementation), "Autograd", with_keyset=True)
        for caller in (self.overload, getattr(torch.ops.fp4, self.name)):
            with contextlib.suppress(AttributeError):  # another torch: calls take the dispatcher
                call = planned(caller._op)  # what torch calls, and with it the dispatcher
                torch.jit._builtins._register_builtin(call, f"fp4::{self.name}")
                caller._op = call

    def register_autograd(self, backward: Callable[..., Any], *,
                          setup_context: Callable[..., Any] | None = None) -> None:
        """backward(ctx, *gradients) gives the gradient of each argument; setup_context(ctx,
        inputs, output) keeps what it needs. Without it, to ask for a gradient is an error."""
        self._backward, self._keep = backward, setup_context

    def forward(self, ctx: Any, *arguments: Any) -> Any:
        """The forward pass of the autograd function."""
        with _C._AutoDispatchBelowAutograd():
            result = self.overload(*arguments)
        if self._keep is not None:
            self._keep(ctx, arguments, result)
        return result

    def backward(self, ctx: Any, *gradients: Any) -> Any:
        if self._backward is None:
            raise UsageError(f"fp4.{self.name} has no gradient", NO_GRADIENT)
        return self._backward(ctx, *gradients)


def _collected(implementation: Callable[..., Any], fake: Callable[..., Any]) -> Callable[..., Any]:
    """The implementation, whose results are zeros where programs are collected."""

    def call(*arguments: Any) -> Any:
        try:
            return implementation(*arguments)
        except execution.Found:
            found = fake(*arguments)
            for tensor in found if isinstance(found, tuple) else (found,):
                tensor.untyped_storage().fill_(0)
            return found

    return call


def _recording(operation: Operation, implementation: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of `operation` for Autograd."""
    overload = operation.overload
    optional = torch._C.OptionalType.ofTensor()
    tensors = tuple(index for index, argument in enumerate(overload._schema.arguments)
                    if argument.type.isSubtypeOf(optional))
    function: Any = type(f"Fp4_{operation.name}", (torch.autograd.Function,), {
        "forward": staticmethod(operation.forward), "backward": staticmethod(operation.backward)})
    is_recording, below = torch.is_grad_enabled, _C._after_autograd_keyset

    def call(keyset: Any, *arguments: Any) -> Any:
        if is_recording():
            for index in tensors:
                if index < len(arguments):  # the dispatcher leaves defaults out
                    tensor = arguments[index]
                    if tensor is not None and tensor.requires_grad:
                        return function.apply(*arguments)
        if keyset.raw_repr() & _WATCHED:
            with _C._AutoDispatchBelowAutograd():
                return overload.redispatch(keyset & below, *arguments)
        return implementation(*arguments)

    return call
