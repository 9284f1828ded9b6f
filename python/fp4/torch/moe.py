"""A mixture of experts as one layer: its router, its experts, and what all tokens share."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from ..errors import UsageError
from . import functional as fp4
from .mixture import mixture, mixture_into, operands
from .planned import planned
from .routed import RoutedExperts, experts_from, holds_experts
from .router import Router, chosen, router_from
from .routing import MOST_EXPERTS, MOST_OF_TOKEN, are_groups, route

#: What a block of transformers calls its parts.
_ROUTERS, _SHARED = ("gate", "router"), ("shared_experts", "shared_expert")
_SHARED_GATE = "shared_expert_gate"

_planned_mixture = planned(mixture.overload)


class MoE(torch.nn.Module):
    """A layer of experts: y = sum of weight * expert(x) over the experts that the router chooses,
    plus what shared experts give.

        layer.mlp = fp4.torch.MoE.from_block(layer.mlp)    # of Mixtral, Qwen3, gpt-oss, DeepSeek-V3

    Behind the logits a call is one program: it chooses experts, orders tokens by them, gathers
    their rows, multiplies twice, adds the weighted results and those of shared experts in fp32, and
    rounds once. Counts of tokens stay on the device, so that graphs can be captured. Torch
    does what is around the matmuls where gradients are recorded, and for float16 beside MXFP4.

    x is [..., hidden_size] in bfloat16 or float16, of any sizes that WeightOnlyExperts takes.

    Attributes:
        router: a Router.
        experts: a RoutedExperts with experts of `router`, all or those of a rank.
        shared: a module whose result for x is added, or None.
        returns_weights: forward returns the weights of experts, float32 [T, k], too.

    Raises:
        UsageError: parts that do not fit.
    """

    def __init__(self, router: Router, experts: RoutedExperts,
                 shared: torch.nn.Module | None = None, *, returns_weights: bool = False) -> None:
        super().__init__()
        shape = [experts.total, experts.hidden_size]
        if list(router.get_parameter("weight").shape) != shape:
            raise UsageError(f"'router' must have a weight {shape}, which the experts need, but "
                             f"got {list(router.get_parameter('weight').shape)}")
        self.router, self.experts, self.shared = router, experts, shared
        self.returns_weights = returns_weights

    @classmethod
    def from_block(cls, block: Any, *, format: str = "nvfp4", recipe: str = "",
                   w4a8: bool = False) -> MoE:
        """The layer of a block of transformers with a router, experts, and perhaps shared experts,
        whose parameters and modules it shares but for the experts, which may be RoutedExperts
        already. `w4a8` gives them activations of E4M3.

        Raises:
            UsageError: a block that computes something else.
        """
        router, shared, returns_weights = _parts_of(block)
        experts = block.experts
        if not isinstance(experts, RoutedExperts):
            experts = experts_from(experts, format=format, recipe=recipe, w4a8=w4a8)
        made = cls(router_from(router), experts, shared, returns_weights=returns_weights)
        return made.train(block.training)

    def forward(self, x: torch.Tensor) -> Any:
        """y like x [..., hidden_size]; with `returns_weights` the weights [T, k] behind it."""
        experts, router = self.experts, self.router
        if x.shape[-1:] != (experts.hidden_size,):
            raise UsageError(f"'x' must be [..., {experts.hidden_size}], but got {list(x.shape)}")
        rows = x.reshape(-1, experts.hidden_size)
        shared, logits, correction = self._beside(x)
        if self._fits() and experts.is_one_program(rows, logits, shared):
            fp4._check_devices(x=rows, weight=experts.gate_up.packed, logits=logits)
            call = mixture.overload if is_dynamo_compiling() else _planned_mixture
            y, weights, _ = call(
                rows, logits, correction, shared, *_numbers_of(router),
                *operands(experts.gate_up, experts.down), experts.first)
        else:
            weights, ids = chosen(logits, router.rule, correction)
            y = experts(rows, ids, weights, shared)
        y = y.view(x.shape)
        return (y, weights) if self.returns_weights else y

    def _write_into(self, out: torch.Tensor, x: torch.Tensor) -> None:
        """Writes y of x [T, hidden_size] into `out`, in the dtype of x or float32, to which the
        sums are rounded once. Nothing is recorded for gradients."""
        shared, logits, correction = self._beside(x)
        experts = self.experts
        if self._fits() and experts.is_one_program(x, logits, shared):
            mixture_into(out, x, logits, correction, shared, _numbers_of(self.router),
                         *operands(experts.gate_up, experts.down), experts.first)
        else:
            weights, ids = chosen(logits, self.router.rule, correction)
            out.copy_(experts(x, ids, weights, shared))

    def _choose(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The weights, float32 [T, k], and the experts, int32 [T, k], of x [T, hidden_size]."""
        logits, correction = self.router(x), self.router._buffers["correction"]
        if not self._fits():
            weights, ids = chosen(logits, self.router.rule, correction)
            return weights, ids.to(torch.int32)
        k, scores, renormalize, groups, top_groups, factor, eps = _numbers_of(self.router)
        return route(logits, k, scores=scores, renormalize=renormalize, bias=correction,
                     num_groups=groups, top_groups=top_groups, factor=factor, eps=eps)

    def _beside(self, x: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor, Any]:
        """The results of shared experts, the logits, and the correction of the router."""
        rows = x.reshape(-1, x.shape[-1])
        shared = None if self.shared is None else self.shared(x).reshape(rows.shape)
        return shared, self.router(rows), self.router._buffers["correction"]

    def _fits(self) -> bool:
        """Returns True where a program has the rule of the router."""
        rule, experts = self.router.rule, self.experts
        return (experts.total <= MOST_EXPERTS and rule.k <= MOST_OF_TOKEN
                and are_groups(experts.total, rule.num_groups))


def _numbers_of(router: Router) -> tuple[Any, ...]:
    """The members of the rule of a router."""
    return (router.k, router.scores, router.renormalize, router.num_groups, router.top_groups,
            router.factor, router.eps)


class GatedShared(torch.nn.Module):
    """Shared experts times the sigmoid of a gate, as those of Qwen2-MoE."""

    def __init__(self, expert: torch.nn.Module, gate: torch.nn.Module) -> None:
        super().__init__()
        self.expert, self.gate = expert, gate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = torch.sigmoid(self.gate(x)) * self.expert(x)
        return y


def _parts_of(block: Any) -> tuple[torch.nn.Module, torch.nn.Module | None, bool]:
    """The router and the shared experts of a block, and whether it returns weights."""
    modules, name = block._modules, type(block).__name__
    routers = [part for part in _ROUTERS if part in modules]
    experts = modules.get("experts")
    if len(routers) != 1 or experts is None or not (
            isinstance(experts, RoutedExperts) or holds_experts(experts)):
        raise UsageError(f"'block' must have experts and a router, but {name} has "
                         f"{', '.join(modules) or 'no modules'}",
                         "make a fp4.torch.MoE of its parts")
    shared = next((modules[part] for part in _SHARED if modules.get(part) is not None), None)
    gate = modules.get(_SHARED_GATE)
    if shared is not None and gate is not None:
        shared = GatedShared(shared, gate)
    return modules[routers[0]], shared, _returns_weights(block, routers[0], shared)


class _Multiply(torch.nn.Module):
    """Stands for a part of a block: multiplies its first argument by a number."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self.number = number

    def forward(self, x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        return x * self.number


class _Choose(torch.nn.Module):
    """Stands for a router."""

    def __init__(self, experts: int) -> None:
        super().__init__()
        self.experts = experts

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows = x.reshape(-1, x.shape[-1])
        return (rows.new_zeros(len(rows), self.experts), rows.new_ones(len(rows), 1),
                torch.zeros(len(rows), 1, dtype=torch.int64, device=rows.device))


def _returns_weights(block: Any, router: str, shared: torch.nn.Module | None) -> bool:
    """Returns True for a block that returns weights too: calls it with other parts, and compares
    the result with the sum of theirs."""
    probe = copy.copy(block)
    parts: dict[str, torch.nn.Module] = {router: _Choose(8), "experts": _Multiply(2.0)}
    parts |= {part: _Multiply(4.0) for part in _SHARED if block._modules.get(part) is not None}
    if isinstance(shared, GatedShared):
        parts[_SHARED_GATE] = _Multiply(0.5)
    probe._modules = {**dict.fromkeys(block._modules), **parts}
    size = getattr(block.experts, "hidden_size", None) or getattr(block.experts, "hidden_dim", None)
    x = torch.linspace(-1, 1, 3 * (size or 64), dtype=torch.float32, device="cpu").view(1, 3, -1)
    expected = 2.0 * x
    if shared is not None:
        expected = expected + 4.0 * x * (torch.sigmoid(0.5 * x)
                                         if isinstance(shared, GatedShared) else 1.0)
    try:
        with torch.no_grad():
            found = probe(x)
    except Exception as error:
        raise _unlike(block) from error
    y, *rest = found if isinstance(found, tuple) else (found,)
    is_known = not rest or (len(rest) == 1 and rest[0].numel() == 3)
    if not is_known or y.shape != x.shape or not torch.allclose(y, expected):
        raise _unlike(block)
    return bool(rest)


def _unlike(block: Any) -> UsageError:
    return UsageError(f"'block' must give the sum of its experts and shared experts, but "
                      f"{type(block).__name__} gives something else",
                      "quantize_ serves its experts, and leaves the block as it is")
