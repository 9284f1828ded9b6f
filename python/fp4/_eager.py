"""Functions that torch.compile calls, and does not trace."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., Any])


def eager(reason: str) -> Callable[[_Function], _Function]:
    """As torch.compiler.disable: the graph breaks at the function, or with fullgraph=True there is
    an error with the reason. torch.compiler.disable imports Dynamo at once, which takes seconds;
    this function waits until somebody else has imported Dynamo."""

    def decorate(function: _Function) -> _Function:
        known: list[Callable[..., Any]] = []

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            if "torch._dynamo" not in sys.modules:
                return function(*arguments, **named)
            if not known:
                known.append(sys.modules["torch"].compiler.disable(function, reason=reason))
            return known[0](*arguments, **named)

        call._torchdynamo_disable = True  # type: ignore[attr-defined]
        call._torchdynamo_disable_msg = reason  # type: ignore[attr-defined]
        return cast(_Function, call)

    return decorate
