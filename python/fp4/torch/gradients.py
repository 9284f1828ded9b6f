"""Gradients of the operations.

hadamard has its exact gradient, fake_quantize passes it straight through, and scaled_mm has that of
its bias. 4-bit elements and their scales have no gradient, and neither have the operations that are
not here: to ask for one is an error.
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import UsageError
from . import ops
from .operation import NO_GRADIENT


def _keep_transform(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _, ctx.dim, ctx.size, ctx.sign_mask = inputs


def _transform_back(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    """The transform is y = H S x with a symmetric H and the diagonal S of signs: x' = S H y'."""
    back = torch.ops.fp4.hadamard(gradient, ctx.dim, ctx.size, 0)
    index = torch.arange(gradient.shape[ctx.dim], device=gradient.device)
    signs = (1 - 2 * ((ctx.sign_mask >> (index % 16)) & 1)).to(gradient.dtype)
    return back * (signs if ctx.dim == 1 else signs[:, None]), None, None, None


ops.hadamard.register_autograd(_transform_back, setup_context=_keep_transform)


def _pass_through(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    return gradient.clone(), None, None, None, None, None


ops.fake_quantize.register_autograd(_pass_through)


def _keep_bias(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    bias = inputs[6]
    ctx.bias_dtype = None if bias is None else bias.dtype


def _to_bias(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    if any(ctx.needs_input_grad[:6]):
        raise UsageError("the operands of fp4.scaled_mm have no gradient", NO_GRADIENT)
    bias = None
    if ctx.needs_input_grad[6]:
        bias = gradient.sum(0, dtype=torch.float32).to(ctx.bias_dtype)
    return (None,) * 6 + (bias,) + (None,) * 4


ops.scaled_mm.register_autograd(_to_bias, setup_context=_keep_bias)
