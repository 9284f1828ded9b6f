"""A mixture of experts with activations of 16 bits or E4M3 and 4-bit weights, from the choice
of experts to their sums, in one program each:

    mixture(x, logits, correction?, shared?, RULE, EXPERTS)      -> y, weights, ids
    routed_experts(x, ids, weights, shared?, total, EXPERTS)     -> y  (ids i32, weights f32)

RULE is the numbers of fp4.torch.route, and EXPERTS the tensors and numbers of two
WeightOnlyExperts, of which the first has gates (`operands`). Numbers of experts are from `first` on
those of the experts that are here. The others add nothing.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from ..errors import UsageError
from . import mixture_programs, programs, weight_programs
from .checking import check_rows
from .execution import run, run_into
from .expert_programs import FP8, Product
from .experts import WeightOnlyExperts, facts_of_tiles, gate_of
from .fp8_experts import FP8Experts
from .mixture_programs import Mixture
from .operation import Operation
from .routing_programs import Route
from .row_results import Optional
from .strides import dense, padded
from .weight_only import element_of

_Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
_TILE = weight_programs.TILE[0]
#: Rows of an expert up to which tiles are the same.
_EXPECTED = (1, 8, 16, 64)

# ===--- Operations -------------------------------------------------------=== #


def operands(up: WeightOnlyExperts | FP8Experts,
             down: WeightOnlyExperts | FP8Experts) -> tuple[Any, ...]:
    """The arguments EXPERTS but for the last one."""
    tensors, others = up._buffers, down._buffers
    return (tensors["packed"], tensors["alpha"], up._parameters["bias"], tensors["gate_packed"],
            tensors["gate_alpha"], up._parameters["gate_bias"], up.activation, up.limit, up.slope,
            others["packed"], others["alpha"], down._parameters["bias"], up.out_features)


def _products(x: torch.Tensor, experts: tuple[Any, ...]) -> tuple[Product, Product, list[Optional]]:
    """The two matmuls, and their tensors in the order of a call."""
    (packed, alpha, bias, gate_packed, gate_alpha, gate_bias, activation, limit, slope,
     down_packed, down_alpha, down_bias, columns) = experts
    if packed.dtype == torch.float8_e4m3fn:
        return _products_of_fp8(x, experts)
    rows, format, quantizes = facts_of_tiles(packed.shape)
    count = rows // (-(-columns // _TILE) * _TILE)
    width = weight_programs.whole_blocks(columns, format)  # what is behind `columns` is zero
    element = element_of(x.dtype, format)
    if element == "f16" and format == "mxfp4" and not quantizes:
        raise UsageError("'x' must be bfloat16 beside weights of mxfp4, but got float16",
                         "fp4.torch.RoutedExperts multiplies it in two parts")
    up = Product(count, width, weight_programs.whole_blocks(x.shape[1], format), element, format,
                 alpha is not None, bias=_name(bias), gate=gate_of(activation, limit, slope),
                 gate_bias=_name(gate_bias), result=element, quantizes=quantizes)
    down = Product(count, x.shape[1], width, element, format, down_alpha is not None,
                   bias=_name(down_bias), result=element, quantizes=quantizes)
    return up, down, [packed, alpha, _rows(bias, width), gate_packed, gate_alpha,
                      _rows(gate_bias, width), down_packed, down_alpha,
                      _rows(down_bias, x.shape[1])]


def _products_of_fp8(x: torch.Tensor,
                     experts: tuple[Any, ...]) -> tuple[Product, Product, list[Optional]]:
    """The two matmuls of weights of FP8, of which those of gates are a part of the first."""
    (packed, scales, _, _, _, _, activation, limit, slope, down_packed, down_scales, _,
     columns) = experts
    count, element = packed.shape[0] // (2 * columns), element_of(x.dtype, FP8)
    up = Product(count, columns, x.shape[1], element, FP8, True, quantizes=True, result=element,
                 gate=gate_of(activation, limit, slope))
    down = Product(count, x.shape[1], columns, element, FP8, True, quantizes=True, result=element)
    return up, down, [packed, scales, down_packed, down_scales]


def _mixture(x: torch.Tensor, logits: torch.Tensor, correction: Optional, shared: Optional, k: int,
             scores: str, renormalize: str, num_groups: int, top_groups: int, factor: float,
             eps: float, *rest: Any) -> _Three:
    if not x.shape[0]:
        return _mixture_fake(x, logits, correction, shared, k, scores)
    rule = (k, scores, renormalize, num_groups, top_groups, factor, eps)
    found: _Three = run(*_call(x, logits, correction, shared, rule, rest),
                        target=weight_programs.TARGET)
    return found


def mixture_into(out: torch.Tensor, x: torch.Tensor, logits: torch.Tensor, correction: Optional,
                 shared: Optional, rule: tuple[Any, ...], *rest: Any) -> None:
    """Writes y of `mixture` into `out`, in bfloat16, float16 or float32: sums are rounded once, to
    its dtype. `rule` is RULE, and `rest` EXPERTS."""
    make, (what,), *tensors = _call(x, logits, correction, shared, rule, rest)
    what = dataclasses.replace(what, result=programs.ELEMENTS[out.dtype])
    _, weights, ids = _mixture_fake(x, logits, correction, shared, *rule[:2])
    run_into(make, (what,), (out, weights, ids), *tensors, target=weight_programs.TARGET)


def _call(x: torch.Tensor, logits: torch.Tensor, correction: Optional, shared: Optional,
          rule: tuple[Any, ...], rest: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of execution.run for a mixture."""
    *experts, first = rest
    up, down, tensors = _products(x, tuple(experts))
    k, scores, renormalize, *numbers = rule
    route = Route(logits.shape[1], programs.ELEMENTS[logits.dtype], k, scores, renormalize,
                  _name(correction), *numbers)
    what = Mixture(up, down, k, first, route, _name(shared), up.element,
                   _expected(x, k, up, logits.shape[1]))
    return (mixture_programs.mixture, (what,), padded(dense(x), up.k), dense(logits),
            _dense(correction), _dense(shared), *tensors)


def _mixture_fake(x: torch.Tensor, logits: torch.Tensor, correction: Optional, shared: Optional,
                  k: int, scores: str, *rest: Any) -> _Three:
    shape = (x.shape[0], k)
    return (x.new_empty(x.shape), x.new_empty(shape, dtype=torch.float32),
            x.new_empty(shape, dtype=torch.int32))


def _routed(x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor, shared: Optional, total: int,
            *rest: Any) -> torch.Tensor:
    if not x.shape[0]:
        return x.new_empty(x.shape)
    check_rows(ids, "ids", total, skips=True)
    y: torch.Tensor = run(*_routed_call(x, ids, weights, shared, total, rest),
                          target=weight_programs.TARGET)
    return y


def routed_into(out: torch.Tensor, x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor,
                total: int, *rest: Any) -> None:
    """Writes y of `routed_experts` into `out`, in bfloat16, float16 or float32: sums are rounded
    once, to its dtype. `rest` is EXPERTS."""
    make, (what,), *tensors = _routed_call(x, ids, weights, None, total, rest)
    what = dataclasses.replace(what, result=programs.ELEMENTS[out.dtype])
    run_into(make, (what,), (out,), *tensors, target=weight_programs.TARGET)


def _routed_call(x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor, shared: Optional,
                 total: int, rest: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of execution.run for experts that are chosen already."""
    *experts, first = rest
    up, down, tensors = _products(x, tuple(experts))
    what = Mixture(up, down, ids.shape[1], first, None, _name(shared), up.element,
                   _expected(x, ids.shape[1], up, total))
    return (mixture_programs.mixture, (what,), padded(dense(x), up.k), dense(ids), dense(weights),
            _dense(shared), *tensors)


def _routed_fake(x: torch.Tensor, *rest: Any) -> torch.Tensor:
    return x.new_empty(x.shape)


def _expected(x: torch.Tensor, k: int, up: Product, total: int) -> int | None:
    """The rows of an expert that plans are chosen for, where other ranks have some of `total`: the
    rows of x are those of all, so that a kernel by rows would have tiles for too many. Beyond the
    last number the largest tiles serve."""
    if up.experts == total:
        return None
    rows = -(-x.shape[0] * k // total)
    return next((number for number in _EXPECTED if rows <= number), None)


def _name(tensor: Optional) -> str:
    return "" if tensor is None else programs.ELEMENTS[tensor.dtype]


def _dense(tensor: Optional) -> Optional:
    return None if tensor is None else dense(tensor)


def _rows(bias: Optional, columns: int) -> Optional:
    """A bias [E, N] as the row of each group, with zeros behind it."""
    return None if bias is None else dense(padded(bias, columns)).unsqueeze(1)


_EXPERTS = ("Tensor packed, Tensor? alpha, Tensor? bias, Tensor? gate_packed, Tensor? gate_alpha, "
            "Tensor? gate_bias, str activation, float? limit, float? slope, Tensor down_packed, "
            "Tensor? down_alpha, Tensor? down_bias, int columns, int first")
mixture = Operation(
    "mixture(Tensor x, Tensor logits, Tensor? correction, Tensor? shared, int k, str scores, "
    f"str renormalize, int num_groups, int top_groups, float factor, float eps, {_EXPERTS}) "
    "-> (Tensor, Tensor, Tensor)", _mixture, _mixture_fake)
routed_experts = Operation(
    f"routed_experts(Tensor x, Tensor ids, Tensor weights, Tensor? shared, int total, {_EXPERTS}) "
    "-> Tensor", _routed, _routed_fake)
