"""Functions whose repeated calls run without Python code.

A planned function checks its tensors and calls programs (execution.run). The first call of
certain types, shapes and constants is recorded: which programs ran on what memory, and which of
their results the function returned. fp4._native.Planned repeats the record for later calls of
such arguments. The native module calls the function every time where a call is not the calls of
programs alone, because torch copied an argument or changed a result, and

- while a mode or a transform of torch, a tracer, torch.autocast, a profiler or
  fp4.torch.simulator is on;
- for subclasses of tensors, and for tensors whose gradient is recorded;
- if there is no native module, or a torch before 2.10 (fp4._calls).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.overrides
import torch.utils._device

from .. import _calls
from .._eager import eager
from ..program import Program

_C: Any = torch._C  # its stubs lack these functions


@dataclasses.dataclass(frozen=True)
class _Ran:
    """A call of a program. Tensors are changed where their versions are others at the end. Given
    results are in memory of the caller."""

    program: Program
    tensors: tuple[torch.Tensor, ...]
    results: tuple[torch.Tensor, ...]
    versions: tuple[int, ...]
    are_given: bool


class _Recording(threading.local):
    calls: list[_Ran] | None = None


_recording = _Recording()


def note(program: Program, tensors: tuple[torch.Tensor, ...], results: Any, *,
         are_given: bool = False) -> None:
    """Says that a program ran, where a call is recorded."""
    if _recording.calls is not None:
        found = results if isinstance(results, tuple) else (results,)
        _recording.calls.append(_Ran(program, tensors, found, _versions(found), are_given))


def _versions(values: tuple[Any, ...]) -> tuple[int, ...]:
    """Counts of how often torch changed each tensor, but for tensors of the inference mode."""
    return tuple(value._version for value in values
                 if isinstance(value, torch.Tensor) and not value.is_inference())


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Meanwhile no call of any thread is repeated from its record."""
    if _calls.native is not None:
        _calls.native.hold(1)
    try:
        yield
    finally:
        if _calls.native is not None:
            _calls.native.hold(-1)


@functools.cache
def _is_available() -> bool:
    """Returns True if calls are repeated in this process."""
    if not _calls._accept(torch):
        return False
    try:
        watchers = (_C._len_torch_dispatch_stack, _C._len_torch_function_stack,
                    _C._are_functorch_transforms_active, _C._is_tracing,
                    _C._is_any_autocast_enabled, _C._autograd._profiler_enabled)
        modes: Any = torch.overrides._get_current_function_mode_stack
        default_device: Any = torch.utils._device.DeviceContext
    except AttributeError:  # of another torch, whose modes could not be seen
        return False
    others = [watcher for watcher in watchers if watcher is not _C._len_torch_function_stack]

    def is_quiet() -> bool:
        """Returns True if nothing but torch's default device is on, a mode that no call sees."""
        return not any(other() for other in others) and all(
            isinstance(mode, default_device) for mode in modes())

    _calls.native.watch(torch.is_grad_enabled, watchers, is_quiet, (torch.dtype,))
    return True


def planned(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors, None, numbers, strings and dtypes by position, whose repeated calls
    run no Python code. The programs that `function` runs must depend on these, and on the types
    and shapes of tensors, alone."""
    if not _is_available():
        return function
    call: Callable[..., Any] = _calls.native.Planned(function, _record(function)).call
    return call


def _record(function: Callable[..., Any]) -> Callable[..., Any]:
    @eager("a call that is recorded is not traced")
    def record(planned: Any, arguments: tuple[Any, ...]) -> Any:
        calls: list[_Ran] = []
        _recording.calls, before = calls, _versions(arguments)
        try:
            # Tensors of the inference mode have no versions. Nothing here requires a gradient.
            # Parts of the call that are planned themselves would run no Python code.
            with held(), torch.inference_mode(False), torch.no_grad():
                result = function(*arguments)
                sequence = _sequence(arguments, calls, result) if before == _versions(
                    arguments) else ((), (), ())
        finally:
            _recording.calls = None
        planned.keep(arguments, *sequence)
        return result

    return record


#: The number of a step, or -1 for arguments, or _EMPTY; which of its tensors; and bytes from its
#: begin.
_Source = tuple[int, int, int]
#: Results without elements or memory, which an operation has in the place of what it has not.
_EMPTY = -2


def _sequence(arguments: tuple[Any, ...], calls: list[_Ran],
              result: Any) -> tuple[tuple[Any, ...], tuple[_Source, ...], tuple[Any, ...]]:
    """The steps, results and makers of empty results of a call for Planned.keep; nothing where
    programs do not say all."""
    places: list[tuple[_Source, torch.Tensor]] = [
        ((-1, index, 0), tensor) for index, tensor in enumerate(
            argument for argument in arguments if isinstance(argument, torch.Tensor))]
    sources: list[tuple[_Source, ...]] = []
    targets: list[tuple[_Source, ...]] = []
    for number, call in enumerate(calls):
        operands = call.tensors + (call.results if call.are_given else ())
        found = [_source(tensor, places) for tensor in operands]
        known = tuple(source for source in found if source is not None)
        if len(known) != len(found) or call.versions != _versions(call.results):
            return (), (), ()
        sources.append(known[:len(call.tensors)])
        targets.append(known[len(call.tensors):])
        if any(step >= 0 for step, _, _ in targets[-1]):
            return (), (), ()
        if not call.are_given:
            places += [((number, index, 0), tensor) for index, tensor in enumerate(call.results)]
    if result is None and not all(call.are_given for call in calls):  # it may copy results
        return (), (), ()
    returned = () if result is None else result
    returned = returned if isinstance(returned, (tuple, list)) else (returned,)
    results, forms = [], {}
    empties: list[Any] = []
    for tensor in returned:
        if _is_empty(tensor, arguments):
            results.append((_EMPTY, len(empties), 0))
            empties.append(_calls.maker(torch, tensor))
            continue
        source = _source(tensor, places) if isinstance(tensor, torch.Tensor) else None
        if source is None or source[0] < 0 or source[2] or source in forms or not _is_whole(
                tensor, calls[source[0]].results[source[1]]):
            return (), (), ()
        results.append(source)
        forms[source] = tensor
    steps = tuple(
        (call.program, call.tensors, known,
         () if call.are_given else
         tuple(_calls.maker(torch, forms.get((number, index, 0), made))
               for index, made in enumerate(call.results)), given)
        for number, (call, known, given) in enumerate(zip(calls, sources, targets)))
    return steps, tuple(results), tuple(empties)


def _is_empty(value: Any, arguments: tuple[Any, ...]) -> bool:
    """Returns True for a new tensor of no memory."""
    return (isinstance(value, torch.Tensor) and not value.untyped_storage().nbytes() and
            all(value is not argument for argument in arguments))


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """The first byte of a tensor, and the one behind its last."""
    begin = tensor.data_ptr()
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return begin, begin + (last + 1) * tensor.element_size()


def _source(tensor: torch.Tensor, places: list[tuple[_Source, torch.Tensor]]) -> _Source | None:
    """The place that has all memory of a tensor; None where there is none or several, because
    arguments that share memory in this call need not in the next."""
    begin, end = _extent(tensor)
    found = []
    for source, place in places:
        start, stop = _extent(place)
        if place.numel() and start <= begin and end <= stop:
            found.append((*source[:2], begin - start))
    return found[0] if len(found) == 1 and tensor.numel() else None


def _is_whole(tensor: torch.Tensor, made: torch.Tensor) -> bool:
    """Returns True if a tensor has all bytes of a result in their order."""
    return (tensor.is_contiguous() and made.is_contiguous() and
            tensor.numel() * tensor.element_size() == made.numel() * made.element_size())
