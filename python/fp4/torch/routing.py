"""The choice of experts, and tokens in their order, in one kernel each.

    route(logits, bias?, k, ...)           -> weights, ids
    permute_tokens(ids, experts, ...)      -> offsets, rows, tokens
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from ..errors import UsageError
from . import functional, programs, routing_programs
from .checking import check_rows
from .execution import run
from .operation import Operation
from .row_results import Optional, check_number, check_scale, check_tensor, said
from .strides import dense, placed_alike

_Two = tuple[torch.Tensor, torch.Tensor]
_Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

_SCORES, _RENORMALIZE = ("softmax", "sigmoid", "logits"), ("none", "sum", "softmax")
#: The most columns, experts of a token, groups, and ids that are ordered.
MOST_EXPERTS, MOST_OF_TOKEN, _GROUPS, _IDS = 512, 16, 32, 1 << 20
_MULTIPLE = 1024


class ExpertOrder(NamedTuple):
    """Tokens in the order of their experts.

    Attributes:
        offsets: int64 [experts + 1], the first row of each expert, and the end of the last.
        rows: int64 [T, k], the row of each pair; -1 where its expert is none of these.
        tokens: int64 [T * k + experts * (multiple - 1)], the token of each row; 0 without one.
    """

    offsets: torch.Tensor
    rows: torch.Tensor
    tokens: torch.Tensor


# ===--- Operations -------------------------------------------------------=== #


def _route(logits: torch.Tensor, bias: Optional, k: int, scores: str, renormalize: str,
           num_groups: int, top_groups: int, factor: float, eps: float) -> _Two:
    if not logits.numel():
        return _route_fake(logits, bias, k, scores, renormalize, num_groups, top_groups, factor,
                           eps)
    (placed,), is_strided = placed_alike(logits)
    what = routing_programs.Route(
        logits.shape[1], programs.ELEMENTS[logits.dtype], k, scores, renormalize,
        "" if bias is None else programs.ELEMENTS[bias.dtype], num_groups, top_groups, factor, eps,
        is_strided and not placed.is_contiguous())
    weights, ids = run(routing_programs.route, (what,), placed,
                       None if bias is None else dense(bias))
    return weights, ids


def _route_fake(logits: torch.Tensor, bias: Optional, k: int, scores: str, renormalize: str,
                num_groups: int, top_groups: int, factor: float, eps: float) -> _Two:
    shape = (logits.shape[0], k)
    return (logits.new_empty(shape, dtype=torch.float32),
            logits.new_empty(shape, dtype=torch.int32))


def _permute(ids: torch.Tensor, experts: int, first: int, multiple: int,
             total: int | None = None) -> _Three:
    if not ids.numel():
        offsets, rows, tokens = _permute_fake(ids, experts, first, multiple)
        return offsets.zero_(), rows, tokens.zero_()
    check_rows(ids, "ids", first + experts if total is None else total, skips=True,
               remedy="pass 'total', the experts of all ranks, or -1 for a pair without an expert")
    offsets, rows, tokens = run(routing_programs.expert_order,
                                (ids.shape[1], experts, first, multiple), ids.contiguous())
    return offsets, rows, tokens


def _permute_fake(ids: torch.Tensor, experts: int, first: int, multiple: int,
                  total: int | None = None) -> _Three:
    new = ids.new_empty
    return (new(experts + 1, dtype=torch.int64), new(ids.shape, dtype=torch.int64),
            new(ids.shape[0] * ids.shape[1] + experts * (multiple - 1), dtype=torch.int64))


_route_operation = Operation(
    "route(Tensor logits, Tensor? bias, int k, str scores, str renormalize, int num_groups, "
    "int top_groups, float factor, float eps) -> (Tensor, Tensor)", _route, _route_fake)
_permute_operation = Operation(
    "permute_tokens(Tensor ids, int experts, int first, int multiple, int? total=None) "
    "-> (Tensor, Tensor, Tensor)", _permute, _permute_fake)

# ===--- Functions --------------------------------------------------------=== #


def route(logits: torch.Tensor, k: int, *, scores: str = "softmax", renormalize: str = "none",
          bias: torch.Tensor | None = None, num_groups: int = 1, top_groups: int = 1,
          factor: float = 1.0, eps: float = 0.0) -> _Two:
    """Chooses k experts for each token; gives their weights, float32 [T, k], and ids, int32.

    Experts have scores, in f32, and those of the k largest scores + bias are chosen, the largest
    first; of equal ones the smaller id, and NaN before all numbers. Weights are the scores without
    bias, times `factor`. No gradient flows.

        route(x, 8, renormalize="sum")                          # Qwen3
        route(x, 4, scores="logits", renormalize="softmax")     # gpt-oss, Mixtral
        route(x, 8, scores="sigmoid", renormalize="sum", bias=b, num_groups=8, top_groups=4,
              factor=2.5, eps=1e-20)                            # DeepSeek-V3

    Args:
        logits: bfloat16, float16 or float32 [T, E], E up to 512.
        k: 1 to 16.
        scores: "softmax", "sigmoid", or "logits" themselves.
        renormalize: "sum" divides by eps + the sum of the k scores, "softmax" takes theirs.
        bias: [E], bfloat16, float16 or float32.
        num_groups, top_groups: experts are of groups of one size, a power of two; only those of the
            `top_groups` best are chosen, by the sum of their two best scores + bias.

    Raises:
        UsageError: an argument that does not fit.
    """
    functional._check_input(logits, "logits")
    if logits.dim() != 2 or not 1 <= logits.shape[1] <= MOST_EXPERTS:
        raise UsageError(f"'logits' must be a matrix of 1 to {MOST_EXPERTS} columns, but got the "
                         f"shape {list(logits.shape)}", "each expert has a column")
    check_scale(bias, "bias", logits.shape[1])
    for value, name, known in ((scores, "scores", _SCORES),
                               (renormalize, "renormalize", _RENORMALIZE)):
        if value not in known:
            raise UsageError(f"'{name}' must be {', '.join(known)}, but got {value!r}",
                             "compute other scores by torch, and pass them as 'logits'")
    _check_range(k, "k", 1, min(MOST_OF_TOKEN, logits.shape[1]))
    _check_groups(logits.shape[1], k, num_groups, top_groups)
    check_number(factor, "factor")
    check_number(eps, "eps")
    functional._check_devices(logits=logits, bias=bias)
    weights, ids = torch.ops.fp4.route(logits, bias, k, scores, renormalize, num_groups, top_groups,
                                       float(factor), float(eps))
    return weights, ids


def permute_tokens(ids: torch.Tensor, experts: int, *, first: int = 0,
                   multiple: int = 1, total: int | None = None) -> ExpertOrder:
    """Orders the pairs of tokens and experts by expert, and those of an expert by token.

    `gather_quantize(x, order.tokens)` has the rows of all experts, grouped GEMMs take
    `order.offsets`, and `combine(y, order.rows, weights)` has the results of the experts here.

    Args:
        ids: int32 [T, k], up to 1048576.
        experts, first: ids from `first` on are those of the experts here, up to 512. Others have
            row -1.
        multiple: 1 to 1024; the experts begin at multiples of it.
        total: the experts of all ranks, which `checked()` expects ids below; None for first +
            experts.

    Raises:
        UsageError: an argument that does not fit.
    """
    check_tensor(ids, "ids")
    if ids.dtype != torch.int32 or ids.dim() != 2 or not ids.shape[1]:
        raise UsageError(f"'ids' must be int32 of shape [T, k], but got {said(ids)}",
                         "route gives such ids")
    if ids.shape[0] * ids.shape[1] > _IDS:
        raise UsageError(f"'ids' must have at most {_IDS} numbers, but got {said(ids)}",
                         "order parts of the tokens")
    _check_range(experts, "experts", 1, MOST_EXPERTS)
    _check_range(first, "first", 0, 2**31 - 1)
    _check_range(multiple, "multiple", 1, _MULTIPLE)
    if total is not None:
        _check_range(total, "total", first + experts, 2**31 - 1)
    return ExpertOrder(*torch.ops.fp4.permute_tokens(ids, experts, first, multiple, total))


def _check_range(value: object, name: str, least: int, most: int) -> None:
    if not isinstance(value, int) or not least <= value <= most:
        raise UsageError(f"'{name}' must be {least} to {most}, but got {value!r}",
                         f"kernels have no {name} beyond these")


def are_groups(columns: int, num_groups: int) -> bool:
    """Returns True where a program has so many groups of `columns` experts."""
    size = columns // num_groups
    return num_groups == 1 or not (columns % num_groups or size < 2 or size & (size - 1))


def _check_groups(columns: int, k: int, num_groups: int, top_groups: int) -> None:
    _check_range(num_groups, "num_groups", 1, _GROUPS)
    _check_range(top_groups, "top_groups", 1, num_groups)
    size = columns // num_groups
    if not are_groups(columns, num_groups):
        raise UsageError(f"'num_groups' must make groups of a power of two of the {columns} "
                         f"experts, at least 2, but got {num_groups}",
                         "set the logits of experts that are not to be chosen to -inf")
    if k > top_groups * size:
        raise UsageError(f"'top_groups' must be so many groups of {size} that they have {k} "
                         f"experts, but got {top_groups}", "choose more groups, or fewer experts")
