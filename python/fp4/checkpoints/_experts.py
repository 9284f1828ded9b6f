"""Experts of a checkpoint into a module of transformers that holds them as 3-D parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import torch

from ..errors import UsageError
from ..torch import RoutedExperts, Scaled
from ..torch.routed import experts_of, gate_and_up, holds_experts
from ._read import Checkpoint

#: Names of the matrices of one expert.
_PARTS = {"gate_proj": "gate", "w1": "gate", "up_proj": "up", "w3": "up", "down_proj": "down",
          "w2": "down"}
_STACKS = ("gate_up_proj", "down_proj")


@dataclasses.dataclass
class Experts:
    """The weights of the experts of a module.

    Attributes:
        stacks: of all experts, by the name of the parameter.
        parts: of single experts, by "gate", "up" or "down" and the number.
    """

    stacks: dict[str, str] = dataclasses.field(default_factory=dict)
    parts: dict[tuple[str, int], str] = dataclasses.field(default_factory=dict)


def experts_in(places: Mapping[str, str],
               modules: Mapping[str, torch.nn.Module]) -> dict[str, Experts]:
    """Modules with experts by their names, and the weights that are theirs. `places` has the names
    of the checkpoint by those of the model."""
    found: dict[str, Experts] = {}
    for place, name in places.items():
        parent, _, last = place.rpartition(".")
        if last in _STACKS and _holds(modules, parent):
            found.setdefault(parent, Experts()).stacks[last] = name
            continue
        holder, _, number = parent.rpartition(".")
        if last in _PARTS and number.isdigit() and _holds(modules, holder):
            found.setdefault(holder, Experts()).parts[_PARTS[last], int(number)] = name
    return found


def names_of(experts: Experts) -> list[str]:
    return [*experts.stacks.values(), *experts.parts.values()]


def made_of(module: torch.nn.Module, name: str, experts: Experts, checkpoint: Checkpoint,
            bias_of: Callable[[str], torch.Tensor | None],
            share: tuple[int, int] | None = None) -> RoutedExperts:
    """The module of these weights. `bias_of` gives a tensor of the checkpoint by its name in the
    model, if there is one. `share`, a rank and the number of ranks, has some of the experts."""
    count = int(module.get_parameter("down_proj").shape[0])
    own = _own(name, count, share)
    if experts.stacks:
        stacks = {last: _stack(experts.stacks.get(last), name, last, count, own, checkpoint)
                  for last in _STACKS}
        pairs = [gate_and_up(module, weight) for weight in stacks["gate_up_proj"]]
        gates, ups, downs = ([one for one, _ in pairs], [other for _, other in pairs],
                             stacks["down_proj"])
    else:
        gates, ups, downs = ([_part(experts, name, what, number, checkpoint)
                              for number in own] for what in ("gate", "up", "down"))
    wanted = sorted(module.get_parameter("down_proj").shape[1:])
    if sorted(downs[0].shape) != wanted or sorted(ups[0].shape) != wanted:
        raise UsageError(f"experts '{name}' must have matrices of {wanted[0]} and {wanted[1]} "
                         f"features, but the checkpoint has {ups[0].shape} and {downs[0].shape}",
                         "its config.json is of another model")
    gate_up_bias, down_bias = (bias_of(f"{name}.{last}_bias") for last in _STACKS)
    made = experts_of(module, gates, ups, downs, gate_up_bias=_some(gate_up_bias, own),
                      down_bias=_some(down_bias, own))
    if share is None:
        return made
    part = RoutedExperts(made.gate_up, made.down, first=own.start, total=count)
    part.was_read = True
    return part.train(made.training)


def _own(name: str, count: int, share: tuple[int, int] | None) -> range:
    """The numbers of the experts of a rank."""
    rank, ranks = share or (0, 1)
    if count % ranks:
        raise UsageError(f"experts '{name}' must be a multiple of the {ranks} ranks, but there are "
                         f"{count}", "make a group of fewer ranks")
    return range(rank * (count // ranks), (rank + 1) * (count // ranks))


def _some(values: torch.Tensor | None, own: range) -> torch.Tensor | None:
    return None if values is None else values[own.start:own.stop].clone()


def _holds(modules: Mapping[str, torch.nn.Module], name: str) -> bool:
    return name in modules and holds_experts(modules[name])


def _stack(weight: str | None, name: str, last: str, count: int, own: range,
           checkpoint: Checkpoint) -> list[Scaled]:
    found = None if weight is None else checkpoint[weight].experts
    if weight is None or found != count:
        raise UsageError(f"experts '{name}' must have a '{last}' of {count} experts, but the "
                         f"checkpoint has {found or 'none'}")
    return [checkpoint.read(weight, expert=expert) for expert in own]


def _part(experts: Experts, name: str, what: str, number: int, checkpoint: Checkpoint) -> Scaled:
    weight = experts.parts.get((what, number))
    if weight is None:
        raise UsageError(f"experts '{name}' must have the {what} of expert {number}, but the "
                         "checkpoint has not")
    return checkpoint.read(weight)
