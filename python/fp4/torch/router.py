"""Routers: the choice of experts by a small linear layer, with the rule of a model."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from typing import Any

import torch

from ..errors import UsageError

#: What the numbers of a router are called in modules of transformers.
_GROUPS = ("num_group", "n_group", "num_groups")
_TOP_GROUPS = ("topk_group", "top_groups")
_FACTORS = ("routed_scaling_factor", "router_scaling_factor")
_CORRECTION = "e_score_correction_bias"
_EPS = (0.0, 1e-20)


@dataclasses.dataclass(frozen=True)
class Rule:
    """The choice of experts by logits; members are arguments of fp4.torch.route."""

    k: int
    scores: str = "softmax"
    renormalize: str = "none"
    num_groups: int = 1
    top_groups: int = 1
    factor: float = 1.0
    eps: float = 0.0


def chosen(logits: torch.Tensor, rule: Rule,
           correction: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and ids, [T, k], by torch, with gradients of the weights."""
    x = logits.float()
    scores = {"softmax": x.softmax(-1), "sigmoid": x.sigmoid(), "logits": x}[rule.scores]
    wanted = scores if correction is None else scores + correction.float()
    if rule.num_groups > 1:
        groups = wanted.view(len(x), rule.num_groups, x.shape[1] // rule.num_groups)
        best = groups.topk(2, -1).values.sum(-1).topk(rule.top_groups, -1).indices
        others = torch.ones_like(groups[..., 0], dtype=torch.bool).scatter(1, best, False)
        wanted = groups.masked_fill(others[..., None], -torch.inf).view_as(scores)
    ids = wanted.topk(rule.k, -1).indices
    weights = scores.gather(1, ids)
    total = weights.sum(-1, keepdim=True) + rule.eps
    if rule.renormalize == "softmax":
        weights = weights.softmax(-1)
    weights = weights * rule.factor
    return weights / total if rule.renormalize == "sum" else weights, ids


class Router(torch.nn.Module):
    """A linear layer whose results are the logits of experts, and the rule by which `route` chooses
    experts by them.

        Router(weight, Rule(8, renormalize="sum"))                     # Qwen3

    Attributes:
        weight: [experts, hidden_size].
        bias: [experts] or None.
        correction: [experts] or None, what is added to the scores for the choice alone.
        rule: k, scores, renormalize, num_groups, top_groups, factor and eps of fp4.torch.route.
        in_float32: logits are float32, as those of DeepSeek-V3, and else like activations.
    """

    def __init__(self, weight: torch.nn.Parameter, rule: Rule, *,
                 bias: torch.nn.Parameter | None = None, correction: torch.Tensor | None = None,
                 in_float32: bool = False) -> None:
        super().__init__()
        for name, value in (("bias", bias), ("correction", correction)):
            if value is not None and tuple(value.shape) != (weight.shape[0],):
                raise UsageError(f"'{name}' must have a number for each of {weight.shape[0]} "
                                 f"experts, but got the shape {list(value.shape)}")
        self.register_parameter("weight", weight)
        self.register_parameter("bias", bias)
        self.register_buffer("correction", correction)
        self.in_float32 = in_float32
        (self.k, self.scores, self.renormalize, self.num_groups, self.top_groups, self.factor,
         self.eps) = dataclasses.astuple(rule)

    @property
    def rule(self) -> Rule:
        return Rule(self.k, self.scores, self.renormalize, self.num_groups, self.top_groups,
                    self.factor, self.eps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits [T, experts] of x [T, hidden_size]."""
        weight: torch.Tensor = self.get_parameter("weight")
        bias: torch.Tensor | None = self._parameters["bias"]
        if self.in_float32:
            x, weight = x.float(), weight.float()
            bias = None if bias is None else bias.float()
        return torch.nn.functional.linear(x, weight, bias)

    def extra_repr(self) -> str:
        return f"{dataclasses.astuple(self.rule)}"


def router_from(module: Any) -> Router:
    """The router of a module of transformers, which returns logits, weights and ids, and shares its
    parameters. The rule is the one that gives what the module gives.

    Raises:
        UsageError: a module that computes something else.
    """
    name = type(module).__name__
    weight = getattr(module, "weight", None)
    k = getattr(module, "top_k", None)
    if not isinstance(weight, torch.nn.Parameter) or weight.dim() != 2 or not isinstance(k, int):
        raise UsageError("'router' must have a weight [experts, hidden_size] and top_k, but "
                         f"{name} has not", "make a fp4.torch.Router of its weight and rule")
    correction = getattr(module, _CORRECTION, None)
    bias = module._parameters.get("bias")
    probe, x, logits, weights, ids = _probed(module, name)
    stored = getattr(probe, _CORRECTION, None)
    is_likely = logits.dtype == torch.float32 != probe.weight.dtype
    # Modules may return other logits than those of a linear layer, such as scores.
    rules = _rules(module, k)
    for in_float32 in (is_likely, not is_likely):
        made = Router(probe.weight, rules[0], bias=probe._parameters.get("bias"),
                      in_float32=in_float32)
        with torch.no_grad():
            logits = made(x)
        for rule in rules:
            by_torch, numbers = chosen(logits, rule, stored)
            if _is_same(by_torch, numbers, weights, ids, len(weight)):
                return Router(weight, rule, bias=bias, correction=correction,
                              in_float32=in_float32)
    raise UsageError(f"'router' must choose experts by a rule of fp4.torch.route, but that of "
                     f"{name} is another one", "leave this module as it is")


def _rules(module: Any, k: int) -> list[Rule]:
    """The rules that a module with these numbers may have."""
    numbers = [next((getattr(module, name) for name in names
                     if isinstance(getattr(module, name, None), (int, float))), 1)
               for names in (_GROUPS, _TOP_GROUPS, _FACTORS)]
    groups = dict.fromkeys(((int(numbers[0]), int(numbers[1])), (1, 1)))
    options = itertools.product(("softmax", "sigmoid", "logits"), ("none", "sum", "softmax"),
                                groups, dict.fromkeys((float(numbers[2]), 1.0)), _EPS)
    return [Rule(k, scores, renormalize, pair[0], pair[1], factor, eps)
            for scores, renormalize, pair, factor, eps in options]


#: Of probes, whatever dtype and device torch has as defaults.
_PLAIN: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}


def _probed(module: Any, name: str) -> tuple[Any, torch.Tensor, torch.Tensor, torch.Tensor,
                                             torch.Tensor]:
    """A copy of the module with random numbers in bfloat16, some tokens, and what it returns for
    them: logits, weights and ids. The numbers of a correction are of the size of scores."""
    generator = torch.Generator().manual_seed(1)

    def random(like: torch.Tensor) -> torch.Tensor:
        dtype = like.dtype if like.dtype.is_floating_point else torch.float32
        made = torch.randn(like.shape, generator=generator, **_PLAIN).to(dtype)
        return made.div_(like.shape[-1]**0.5)

    probe = copy.copy(module)
    probe._parameters = {key: None if value is None else torch.nn.Parameter(
        random(value).bfloat16()) for key, value in module._parameters.items()}
    probe._buffers = {key: None if value is None else random(value)
                      for key, value in module._buffers.items()}
    x = torch.randn(16, probe.weight.shape[1], generator=generator, **_PLAIN).bfloat16()
    with torch.no_grad():
        found = probe(x)
    if not isinstance(found, tuple) or len(found) != 3:
        raise UsageError(f"'router' must return logits, weights and ids, but {name} returns a "
                         f"{type(found).__name__}",
                         "make a fp4.torch.Router of its weight and rule")
    logits, weights, ids = found
    return probe, x, logits, weights, ids


def _is_same(weights: torch.Tensor, ids: torch.Tensor, expected: torch.Tensor,
             others: torch.Tensor, experts: int) -> bool:
    """Returns True for the same weight of each expert, in any order, within a rounding to
    bfloat16."""
    if expected.shape != weights.shape:
        return False
    one, other = (torch.zeros(len(found), experts, **_PLAIN).scatter(1, numbers.long(),
                                                                     found.float())
                  for found, numbers in ((weights, ids), (expected, others)))
    return torch.allclose(one, other, rtol=0.01, atol=1e-4)
