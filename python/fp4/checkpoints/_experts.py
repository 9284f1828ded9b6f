"""Experts of a checkpoint into a module of transformers that holds them as 3-D parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import torch

from ..errors import UsageError
from ..torch import RoutedExperts, Scaled, swizzle
from ..torch.routed import experts_of, gate_and_up, holds_experts
from ..torch.shards import Part, check_experts
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
            part: Part | None = None) -> RoutedExperts:
    """The module of these weights. `bias_of` gives a tensor of the checkpoint by its name in the
    model, if there is one. A `part` has some of the experts, or columns of each."""
    count = int(module.get_parameter("down_proj").shape[0])
    own, columns = _own(name, count, part), part if part is not None and part.dim else None
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
    biases = [bias_of(f"{name}.{last}_bias") for last in _STACKS]
    if columns is not None:
        return _columns_of(module, name, columns, (gates, ups, downs), biases)
    made = experts_of(module, gates, ups, downs, gate_up_bias=_some(biases[0], own),
                      down_bias=_some(biases[1], own))
    if part is None:
        return made
    return _marked(RoutedExperts(made.gate_up, made.down, first=own.start, total=count), part,
                   module)


def _columns_of(module: torch.nn.Module, name: str, part: Part,
                matrices: Sequence[Sequence[Scaled]],
                biases: Sequence[torch.Tensor | None]) -> RoutedExperts:
    """Columns of all experts. Rank 0 alone adds the biases behind them."""
    gates, ups, downs = matrices
    _check(name, part, len(downs), downs[0])
    rows, columns = (Part(dim, part.rank, part.ranks) for dim in range(2))
    size = downs[0].shape[1] // part.ranks
    down_bias = biases[1] if biases[1] is None or not part.rank else torch.zeros_like(biases[1])
    gates, ups, downs = ([cut.cut(swizzle(one, "linear")) for one in some] for cut, some in
                         ((rows, gates), (rows, ups), (columns, downs)))
    made = experts_of(module, gates, ups, downs, gate_up_bias=biases[0], down_bias=down_bias,
                      columns=slice(part.rank * size, (part.rank + 1) * size))
    return _marked(made, part, module)


def _marked(made: RoutedExperts, part: Part, module: torch.nn.Module) -> RoutedExperts:
    """Tells a decoder which part the experts are."""
    made.part = dataclasses.astuple(part)
    return made.train(module.training)


def _check(name: str, part: Part, count: int, down: Scaled | None) -> None:
    try:
        check_experts(part, count, 0 if down is None else down.shape[1],
                      "nvfp4" if down is None else down.format)
    except UsageError as error:
        raise UsageError(f"experts '{name}' cannot be shared: {error.message}",
                         error.note) from None


def _own(name: str, count: int, part: Part | None) -> range:
    """The numbers of the experts of a rank."""
    if part is None or part.dim:
        return range(count)
    _check(name, part, count, None)
    size = count // part.ranks
    return range(part.rank * size, (part.rank + 1) * size)


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
