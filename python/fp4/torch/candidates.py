"""Finds the modules of a model that multiply by a weight, and what keeps one from being
replaced."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch.nn.utils import parametrize

Filter = Callable[[torch.nn.Module, str], bool]

_HEADS = ("lm_head",)


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A module that multiplies by a weight.

    Attributes:
        name: in the model.
        module: itself.
        is_experts: whether it holds matrices as parameters of 3 dimensions.
        obstacle: why it cannot be replaced, or "".
        is_expected: whether the caller or the documentation says that it stays.
    """

    name: str
    module: torch.nn.Module
    is_experts: bool = False
    obstacle: str = ""
    is_expected: bool = False


def candidates(model: torch.nn.Module, filter: Filter | None, head: bool) -> list[Candidate]:
    """In the order of the model, under every name. `filter` and `head` are those of quantize_."""
    heads = set() if head else _heads(model)
    found = []
    for name, module in model.named_modules(remove_duplicate=False):
        is_linear = isinstance(module, torch.nn.Linear) or is_conv1d(module)
        is_experts = not is_linear and has_stacks(module)
        if not (is_linear or is_experts) or _is_ours(module):
            continue
        if module in heads:
            obstacle, is_expected = "is the head of the model, which head=True converts", True
        elif filter is not None and not filter(module, name):
            obstacle, is_expected = "the filter is False for it", True
        else:
            obstacle, is_expected = "" if is_experts else _obstacle(module), False
        found.append(Candidate(name, module, is_experts, obstacle, is_expected))
    return found


def is_conv1d(module: torch.nn.Module) -> bool:
    """Returns True for transformers' layer of GPT-2, whose weight is [in_features,
    out_features]."""
    kind = type(module)
    return kind.__name__ == "Conv1D" and kind.__module__ == "transformers.pytorch_utils"


def has_stacks(module: torch.nn.Module) -> bool:
    """Returns True if the module has matrices as parameters of 3 dimensions, as experts do;
    convolutions of torch have such weights too."""
    return not type(module).__module__.startswith("torch.nn.") and any(
        parameter.dim() == 3 and parameter.is_floating_point()
        for parameter in module.parameters(recurse=False))


def shared_with(model: torch.nn.Module, module: torch.nn.Module) -> str:
    """The name of an embedding that has the weight of `module`, or ""."""
    weight = module._parameters.get("weight")
    name: str
    for name, other in model.named_modules() if weight is not None else ():
        if isinstance(other, torch.nn.Embedding) and other.weight is weight:
            return name
    return ""


def _heads(model: torch.nn.Module) -> set[torch.nn.Module]:
    """Returns the heads: the module that transformers names, layers with the name of a head, and
    those that share the weight of an embedding."""
    embedded = {id(module.weight) for module in model.modules()
                if isinstance(module, torch.nn.Embedding)}
    heads = set()
    for name, module in model.named_modules(remove_duplicate=False):
        if name.rpartition(".")[2] in _HEADS or id(module._parameters.get("weight")) in embedded:
            heads.add(module)
        head = _output_embeddings(module)
        if head is not None:
            heads.add(head)
    return {module for module in heads if not isinstance(module, torch.nn.Embedding)}


def _output_embeddings(module: torch.nn.Module) -> torch.nn.Module | None:
    find = getattr(module, "get_output_embeddings", None)
    try:
        found = find() if callable(find) else None
    except (AttributeError, NotImplementedError):  # of a model without a head
        return None
    return found if isinstance(found, torch.nn.Module) else None


def _is_ours(module: torch.nn.Module) -> bool:
    return any(kind.__module__.startswith("fp4.") for kind in type(module).__mro__)


def _obstacle(module: torch.nn.Module) -> str:
    kind = type(module)
    if parametrize.is_parametrized(module):
        return ("is parametrized: torch.nn.utils.parametrize.remove_parametrizations first")
    if kind is not torch.nn.Linear and not is_conv1d(module):
        return (f"is a {kind.__module__}.{kind.__qualname__}, a subclass of Linear, which may "
                "compute something else")
    if module._parameters.get("weight") is None:
        return "has a weight that a hook computes: torch.nn.utils.remove_weight_norm first"
    if "forward" in vars(module):
        return ("has another forward, as accelerate's hooks make it: quantize before the model is "
                "dispatched to devices")
    return ""
