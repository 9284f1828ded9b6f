"""Checks of the operands of the functions of fp4.compat."""

from __future__ import annotations

from typing import Any

import torch

from .._eager import eager as _eager
from ..errors import UsageError
from ..torch.strides import dense, flat_rows

#: For the public functions: they note which layout scales have, and that is no part of a graph.
eager = _eager("fp4.compat is eager; fp4.torch has operators for torch.compile")


def refuse(condition: bool, what: str, why: str = "leave it out, or call that package") -> None:
    """An error for what the other package has, and fp4 has not."""
    if condition:
        raise UsageError(f"{what} has no kernel here", why)


def check_tensor(value: Any, name: str) -> None:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"argument '{name}' must be a torch tensor, but got {type(value).__name__}")


def type_of(value: torch.Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')} of shape {list(value.shape)}"


def check_input(x: Any, name: str, dtypes: tuple[torch.dtype, ...], block: int) -> None:
    """A matrix that is to be quantized, or a stack of them."""
    check_tensor(x, name)
    if x.dtype not in dtypes:
        names = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
        raise UsageError(f"argument '{name}' must be {names}, but got {type_of(x)}",
                         f"nothing is converted; pass x.to({dtypes[0]})")
    if x.dim() == 0 or x.shape[-1] % block or not x.shape[-1]:
        raise UsageError(f"argument '{name}' must have rows of a multiple of {block} elements, but "
                         f"got {type_of(x)}", "pad them with zeros")


def rows_of(x: torch.Tensor) -> torch.Tensor:
    """The matrix [M, K] of a tensor [..., K], whose rows follow one another: a copy on the device
    where they do not. No gradient is recorded."""
    return dense(flat_rows(x.detach()))


def scalar(value: Any, name: str) -> torch.Tensor:
    """Checks that an argument is one f32, and returns it as a scalar."""
    check_tensor(value, name)
    if value.numel() != 1 or value.dtype != torch.float32:
        raise UsageError(f"argument '{name}' must be one float32, but got {type_of(value)}",
                         "it is the scale of the whole tensor; pass one number as x.float()")
    return value.detach().reshape(())  # type: ignore[no-any-return]


def numbers(value: Any, name: str, count: int, dtypes: tuple[torch.dtype, ...]) -> torch.Tensor:
    """A contiguous vector of `count` numbers."""
    check_tensor(value, name)
    if value.dim() != 1 or value.numel() != count or not count or value.dtype not in dtypes:
        kinds = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
        raise UsageError(f"argument '{name}' must be {kinds} of shape [{max(count, 1)}], but got "
                         f"{type_of(value)}")
    return value.detach().contiguous()  # type: ignore[no-any-return]


def converted(value: Any, name: str) -> torch.Tensor:
    """Returns one f32 of one number of any floating-point dtype, for packages that convert it."""
    check_tensor(value, name)
    return scalar(value.float() if value.dtype.is_floating_point else value, name)


def alpha_of(alpha: torch.Tensor | None, rows: int) -> torch.Tensor | None:
    """One f32, or one for each row as a column."""
    if alpha is None or not isinstance(alpha, torch.Tensor) or alpha.numel() == 1:
        return None if alpha is None else scalar(alpha, "alpha")
    if alpha.dtype != torch.float32 or alpha.numel() != rows:
        raise UsageError(f"argument 'alpha' must be one float32, or one for each of {rows} rows, "
                         f"but got {type_of(alpha)}")
    return alpha.detach().reshape(rows, 1)


def check_codes(codes: Any, name: str) -> None:
    """A matrix of packed E2M1 codes."""
    check_tensor(codes, name)
    if codes.dim() != 2 or codes.dtype not in (torch.uint8, torch.float4_e2m1fn_x2):
        raise UsageError(f"argument '{name}' must be a matrix of uint8 or float4_e2m1fn_x2, two "
                         f"codes in a byte, but got {type_of(codes)}", "quantize it first")


def into(out: Any, result: torch.Tensor, name: str = "out") -> torch.Tensor:
    """`out`, the argument `name`, with the result in it."""
    check_tensor(out, name)
    found = (out.shape, out.dtype, out.device)
    if found != (result.shape, result.dtype, result.device):
        raise UsageError(f"argument '{name}' must be {type_of(result)} on {result.device}, but got "
                         f"{type_of(out)} on {out.device}")
    return out.copy_(result)  # type: ignore[no-any-return]
