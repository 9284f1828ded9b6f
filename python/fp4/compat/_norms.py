"""Norms with a quantizer to FP8 in one kernel, as FlashInfer and vLLM order their roundings."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from ..errors import UsageError
from ..torch import norm_programs
from ..torch.norm_programs import Norm
from ..torch.row_programs import Ending
from ..torch.row_results import check_number
from ..torch.strides import dense
from ._operands import check_tensor, converted, refuse, rows_of, scalar, type_of
from ._programs import element, target

_DTYPES = (torch.bfloat16, torch.float16)


def static_fp8(rule: Norm, eps: float, out: torch.Tensor, input: torch.Tensor,
               residual: torch.Tensor | None, weight: torch.Tensor, scale: torch.Tensor) -> None:
    """Writes the E4M3 elements of a norm by `rule`, whose columns and types follow from the
    operands, to `out`, and input + residual to `residual`."""
    rule = _completed(rule, eps, input, residual, weight)
    check_tensor(out, "out")
    refuse(out.dtype != torch.float8_e4m3fn, f"an 'out' of {str(out.dtype)[6:]}",
           "the elements are float8_e4m3fn")
    if out.shape != input.shape or not out.is_contiguous():
        raise UsageError(f"argument 'out' must be contiguous and of shape {list(input.shape)}, but "
                         f"got {type_of(out)} with strides {out.stride()}",
                         "pass torch.empty_like(input, dtype=torch.float8_e4m3fn)")
    what = dataclasses.replace(rule, ending=Ending("fp8_static", amax_rank=0))
    codes = out.view(-1, what.columns)
    if residual is None:
        _run(what, input, None, weight, scale, codes)
        return
    # A result has memory of its own, so the sum is copied.
    total = torch.empty_like(residual).view(codes.shape)
    _run(what, input, residual, weight, scale, (codes, total))
    residual.copy_(total.view(residual.shape))


def number(scale: Any, like: Any) -> torch.Tensor:
    """One f32 of a number, or of a tensor of any floating-point dtype."""
    if isinstance(scale, (int, float)) and isinstance(like, torch.Tensor):
        return torch.tensor(float(scale), device=like.device)
    return converted(scale, "scale")


def token_fp8(rule: Norm, eps: float, input: torch.Tensor, residual: torch.Tensor | None,
              weight: torch.Tensor,
              bound: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """E4M3 elements of a norm and the scale of each row, [M, 1]; input + residual in `residual`."""
    rule = _completed(rule, eps, input, residual, weight)
    given = None if bound is None else scalar(bound, "scale_ub")
    ending = Ending("fp8_token", amax_rank=-1 if given is None else 0)
    found = _run(dataclasses.replace(rule, ending=ending), input, residual, weight, given)
    if residual is not None:
        residual.copy_(found[2].view(residual.shape))
    return found[0].view(input.shape), found[1].view(-1, 1)


def _completed(rule: Norm, eps: float, input: torch.Tensor, residual: torch.Tensor | None,
               weight: torch.Tensor) -> Norm:
    """The rule with eps and the columns and the types of the operands, which are checked."""
    check_tensor(input, "input")
    check_tensor(weight, "weight")
    check_number(eps, "eps")
    if input.dtype not in _DTYPES:
        raise UsageError(f"argument 'input' must be bfloat16 or float16, but got {type_of(input)}",
                         "nothing is converted; pass x.bfloat16()")
    if input.dim() < 2 or not input.shape[-1]:
        raise UsageError("argument 'input' must have rows and columns, but got "
                         f"{type_of(input)}", "a vector is one row: x.view(1, -1)")
    columns = input.shape[-1]
    if weight.dtype != input.dtype or tuple(weight.shape) != (columns,):
        raise UsageError(f"argument 'weight' must be {str(input.dtype)[6:]} of shape [{columns}], "
                         f"but got {type_of(weight)}", "it has the dtype of the input")
    if residual is not None:
        check_tensor(residual, "residual")
        if residual.dtype != input.dtype or residual.shape != input.shape:
            raise UsageError(f"argument 'residual' must be {type_of(input)}, as the input is, but "
                             f"got {type_of(residual)}", "the sum is written to it in place")
        if not residual.is_contiguous():
            raise UsageError("argument 'residual' must be contiguous, but has strides "
                             f"{residual.stride()}", "the sum is written to it in place")
    return dataclasses.replace(rule, eps=float(eps), columns=columns,
                               source=element(input.dtype),
                               weight=element(weight.dtype),
                               residual=rule.residual if residual is not None else "")


def _run(what: Norm, input: torch.Tensor, residual: torch.Tensor | None, weight: torch.Tensor,
         scale: torch.Tensor | None, out: Any = None) -> Any:
    """The results of the program, written to `out` where it is given."""
    program = norm_programs.norm(what, target(input))
    rows = [rows_of(value) for value in (input, residual) if value is not None]
    given = [] if scale is None else [scale]
    return program(*rows, dense(weight.detach()), *given, out=out)
