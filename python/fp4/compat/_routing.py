"""The choice of experts of fp4.compat: fp4.torch.route with results that the caller gives."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import UsageError
from ..torch.checking import check_rows
from ..torch.routing import permute_tokens, route
from ._operands import check_tensor, eager, into, refuse, type_of

_IDS = (torch.int32, torch.int64, torch.uint32)
_ALIGNED = (torch.int32, torch.int64)
#: Added to the sum of weights by kernels for DeepSeek-V3.
_EPS = 1e-20


def routed(logits: Any, bias: Any, k: int, name: str, **options: Any
           ) -> tuple[torch.Tensor, torch.Tensor]:
    """fp4.torch.route of the argument `name`, without gradients."""
    check_tensor(logits, name)
    if bias is not None:
        check_tensor(bias, "bias")
    return route(logits.detach(), k, bias=None if bias is None else bias.detach(), **options)


def grouped(scores: Any, bias: Any, groups: int, best: int, k: int, factor: float, *,
            is_sigmoid: bool, renormalizes: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The choice of DeepSeek-V3, from logits or from scores as they are."""
    return routed(scores, bias, k, "scores", scores="sigmoid" if is_sigmoid else "logits",
                  renormalize="sum" if renormalizes else "none", num_groups=groups,
                  top_groups=best, factor=factor, eps=_EPS if renormalizes else 0.0)


def store(results: tuple[torch.Tensor, torch.Tensor], weights: Any, ids: Any,
          names: tuple[str, str]) -> None:
    """Copies weights and ids into the tensors of the caller."""
    for result, given, name, dtypes in zip(results, (weights, ids), names,
                                           ((torch.float32,), _IDS)):
        check_tensor(given, name)
        if given.shape != result.shape or given.dtype not in dtypes:
            kinds = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
            raise UsageError(f"argument '{name}' must be {kinds} of shape {list(result.shape)}, "
                             f"but got {type_of(given)}", "it gets the result")
        into(given, result.to(given.dtype), name)


def aligned(topk_ids: Any, experts: int, block: int, expert_map: Any, given: dict[str, Any]
            ) -> None:
    """Writes vLLM's order of pairs, blocks and total to the tensors `given`."""
    check_tensor(topk_ids, "topk_ids")
    if topk_ids.dim() != 2 or topk_ids.dtype not in _ALIGNED:
        raise UsageError(f"argument 'topk_ids' must be int32 or int64 of shape [T, k], but got "
                         f"{type_of(topk_ids)}", "a row has the experts of a token")
    check_rows(topk_ids, "topk_ids", experts, skips=True,
               remedy="-1 stands for a pair without an expert")
    is_expert = (topk_ids >= 0) & (topk_ids < experts)
    ids = torch.where(is_expert, topk_ids, -1)  # int64 ids would be others as int32
    if expert_map is not None:
        ids = _mapped(ids, experts, expert_map)
    order = permute_tokens(ids.to(torch.int32), experts, multiple=block)
    rows, ends = order.rows.flatten(), order.offsets[1:]
    pairs, device = rows.numel(), rows.device
    sizes = {name: _size_of(given[name], name) for name in ("sorted_token_ids", "experts_ids")}
    least = min(pairs * block, pairs + experts * (block - 1))
    for name, count in (("sorted_token_ids", least), ("experts_ids", -(-least // block))):
        if sizes[name] < count:
            raise UsageError(f"argument '{name}' must have at least {count} numbers, but got "
                             f"{type_of(given[name])}", "experts begin at whole blocks")
    numbers = torch.arange(pairs, dtype=torch.int32, device=device)
    last = torch.full_like(rows, sizes["sorted_token_ids"])  # of pairs without a place
    places = torch.full((sizes["sorted_token_ids"] + 1,), pairs, dtype=torch.int32, device=device)
    places.scatter_(0, torch.where(rows < 0, last, rows), numbers)
    starts = torch.arange(sizes["experts_ids"], device=device) * block
    owners = torch.searchsorted(ends, starts, right=True, out_int32=True)
    results = {"sorted_token_ids": places[:-1],
               "experts_ids": torch.where(starts < ends[-1], owners, -1).to(torch.int32),
               "num_tokens_post_pad": ends[-1:].to(torch.int32)}
    if given["scatter_idx"] is not None:
        results["scatter_idx"] = torch.where(rows < 0, -1, numbers)[:, None]
    for name, result in results.items():
        into(given[name], result, name)


def _mapped(ids: torch.Tensor, experts: int, expert_map: Any) -> torch.Tensor:
    """The ids that a map gives; -1 for -1."""
    check_tensor(expert_map, "expert_map")
    if expert_map.shape != (experts,) or expert_map.dtype != torch.int32:
        raise UsageError(f"argument 'expert_map' must be int32 of shape [{experts}], but got "
                         f"{type_of(expert_map)}", "each expert has a number here, or -1")
    check_rows(expert_map, "expert_map", experts, skips=True,
               remedy="-1 stands for an expert of another rank")
    return torch.where(ids < 0, -1, expert_map[ids.clamp(min=0).long()])


def _size_of(given: Any, name: str) -> int:
    check_tensor(given, name)
    if given.dim() != 1:
        raise UsageError(f"argument '{name}' must be a vector, but got {type_of(given)}",
                         "it gets the result")
    return int(given.shape[0])


@eager
def fused_topk_deepseek(
    scores: torch.Tensor,
    bias: torch.Tensor,
    n_group: int,
    topk_group: int,
    topk: int,
    routed_scaling_factor: float,
    topk_values: torch.Tensor,
    topk_indices: torch.Tensor,
    launch_with_pdl: bool = True,
    routing_replay_out: torch.Tensor | None = None,
    *,
    backend: str = "default",
) -> None:
    """Chooses the experts of DeepSeek-V3 by fp4.torch.route.

    Scores are 1 / (1 + exp(-x)) in float32, where FlashInfer has 0.5 * tanh(0.5 x) + 0.5: weights
    may differ in their last bits, and the choice among scores that round alike.

    Args:
        scores: the logits, bf16, f16 or f32.
        topk_values: f32 [T, topk], which gets the weights.
        topk_indices: int32, int64 or uint32 [T, topk], which gets the experts.
        launch_with_pdl: without effect.
        routing_replay_out: refused, as is a backend but "default".

    Raises:
        UsageError: an argument that does not fit.
    """
    del launch_with_pdl
    refuse(backend != "default", f"'backend' {backend!r}", "every backend computes the same")
    refuse(routing_replay_out is not None, "'routing_replay_out'", "copy 'topk_indices' instead")
    found = grouped(scores, bias, n_group, topk_group, topk, routed_scaling_factor,
                    is_sigmoid=True, renormalizes=True)
    store(found, topk_values, topk_indices, ("topk_values", "topk_indices"))
