"""fp4._native (python/native): calls whose checks are known to pass, without Python code."""

from collections.abc import Callable
from typing import Any, NoReturn, final

#: make(*arguments, **options) on any device; make_here(*arguments_here) on the current one.
_Maker = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], Callable[..., Any] | None,
               tuple[Any, ...]]

@final
class Gate:
    """Holds calls off an executable that is destroyed."""

    def enter(self) -> bool:
        """Returns True if the gate is open; then the same thread leaves."""
    def leave(self) -> None:
        """After a call that entered."""
    def close(self) -> None:
        """Waits for the calls that run, and holds later ones off."""

class Calls:
    """Calls whose checks are known to pass; the base of Program."""

    def __call__(self, *tensors: Any, function: str | None = None, out: Any = None,
                 verify: bool = False, stream: Any = None) -> Any: ...
    def _remember(self, name: str | None, tensors: tuple[Any, ...], executable: object, gate: Gate,
                  function: int, device: int, arguments: bytes, results: bytes,
                  outputs: tuple[Any, ...], makers: tuple[_Maker, ...], /) -> bool:
        """Keeps the plan of a call that was checked; False for tensors that have none."""

@final
class Planned:
    """A function of torch whose calls are programs alone (fp4.torch.planned)."""

    def __init__(self, function: Callable[..., Any],
                 record: Callable[[Planned, tuple[Any, ...]], Any]) -> None: ...
    def call(self, *arguments: Any, **names: Any) -> Any:
        """Runs the sequence of such a call, or record(self, arguments) where none is known, or the
        function where there is none."""
    def keep(self, arguments: tuple[Any, ...],
             steps: tuple[tuple[Calls, tuple[Any, ...], tuple[tuple[int, int, int], ...],
                                tuple[_Maker, ...], tuple[tuple[int, int, int], ...]], ...],
             results: tuple[tuple[int, int, int], ...], empties: tuple[_Maker, ...], /) -> bool:
        """Keeps the sequence of a call, whose steps have makers or targets of their results;
        `empties` make results without elements. False where there is none, which is kept too, and
        for arguments that can have none."""

def watch(records_gradients: Callable[[], bool], watchers: tuple[Callable[[], Any], ...],
          is_quiet: Callable[[], bool], constants: tuple[type, ...], /) -> None:
    """Takes what tells that a planned call must not run: a watcher that returns neither False nor
    None nor 0, unless is_quiet() then returns True. Arguments of the types `constants` are compared
    by identity."""

def hold(change: int, /) -> None:
    """Adds 1 or -1 to the number of holds that stop planned calls."""

def load(path: str, raise_error: Callable[[int, str, str, str], NoReturn], /) -> None:
    """Takes the functions of libfp4 at a path; an ImportError where one is missing."""

def accept(types: tuple[type, ...], exchange_api: object, is_negative: Callable[[Any], bool],
           current_device: Callable[[], int] | None, /) -> None:
    """Takes the types of torch and how their tensors are read; a BufferError where the API is of
    another version. `current_device` is None where there is one CUDA device at most."""
