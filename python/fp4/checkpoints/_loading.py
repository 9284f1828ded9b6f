"""Weights of a checkpoint on their way into the layers of a model."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence

import torch

from ..errors import UsageError
from ..torch import LayerReport, WeightOnlyLinear
from ..torch.convert import put
from ..torch.recipes import BLOCKS
from ..torch.shards import Part, part_of_experts
from ._experts import Experts, experts_in, made_of, names_of
from ._read import Checkpoint

#: Layers that models have in place of several of a checkpoint, by the last parts of their names.
MERGED: Mapping[str, Sequence[str]] = {"qkv_proj": ("q_proj", "k_proj", "v_proj"),
                                       "gate_up_proj": ("gate_proj", "up_proj")}

#: Layers of which each rank of a decoder has a part.
_SHARED = re.compile(r"layers\.\d+\.(?:self_attn|mlp)\.((?:q|k|v|o|gate|up|down)_proj)$")


@dataclasses.dataclass(frozen=True)
class Options:
    """The arguments of load_into that say which layer gets which weight.

    Attributes:
        rename: from the name of a tensor in the file to that in the model.
        merged: the last part of the name of a layer, and those of the weights that it stands for.
        weight_only: which layers to make; None: what the checkpoint says.
        share: the number of a rank and that of all ranks, of which each reads its part.
        expert_parallel: a rank reads some experts, and not columns of all.
    """

    rename: Callable[[str], str]
    merged: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=lambda: MERGED)
    weight_only: bool | None = None
    share: tuple[int, int] | None = None
    expert_parallel: bool = True

    @property
    def expert_part(self) -> Part | None:
        """This rank's part of the experts of each layer; None: all of them."""
        return self.share and part_of_experts(*self.share, self.expert_parallel)

    def part_of(self, name: str) -> Part | None:
        """This rank's part of a layer of a decoder; None: all of it."""
        found = self.share and _SHARED.search(name)
        if not found:
            return None
        assert self.share is not None
        return Part(int(found[1] in ("o_proj", "down_proj")), *self.share)


class Loading:
    """The layers of a model that a checkpoint has in 4 bits.

    Attributes:
        linears: the names of linear layers in the model, and of the weights of each.
        experts: the names of modules with experts, and the weights of each.
        used: names of other tensors of the checkpoint that the layers have taken.
    """

    def __init__(self, model: torch.nn.Module, checkpoint: Checkpoint, options: Options) -> None:
        self._model, self._checkpoint, self._options = model, checkpoint, options
        places = {options.rename(name): name for name in checkpoint}
        self.experts = experts_in(places, dict(model.named_modules(remove_duplicate=False)))
        held = {name for each in self.experts.values() for name in names_of(each)}
        self.linears = _targets(model, places, held, options)
        self.used: set[str] = set()

    @property
    def names(self) -> list[str]:
        return [*self.linears, *self.experts]

    def stored_bytes(self, name: str) -> int:
        """Bytes of the codes and block scales of a layer, one of `names`."""
        weights = names_of(self.experts[name]) if name in self.experts else self.linears[name]
        entries = [self._checkpoint[weight] for weight in weights]
        return sum((entry.experts or 1) * entry.shape[0] * entry.shape[1] *
                   (BLOCKS[entry.format] + 2) // (2 * BLOCKS[entry.format]) for entry in entries)

    def replace(self, name: str) -> LayerReport:
        """Puts the layer of 4 bits into the place of `name`, one of `names`, and on its device."""
        if name in self.experts:
            return self._replace_experts(name, self.experts[name])
        return self._replace_linear(name, self.linears[name])

    def _replace_linear(self, name: str, weights: tuple[str, ...]) -> LayerReport:
        checkpoint = self._checkpoint
        self.used |= {f"{weight}.bias" for weight in weights}
        layer = self._model.get_submodule(name)
        assert isinstance(layer, torch.nn.Linear)
        rows = sum(checkpoint[weight].shape[0] for weight in weights)
        columns = checkpoint[weights[0]].shape[1]
        if (rows, columns) != (layer.out_features, layer.in_features):
            raise UsageError(f"layer '{name}' must have a weight of {layer.out_features} x "
                             f"{layer.in_features}, but the checkpoint has {rows} x {columns}",
                             "its config.json is of another model")
        try:
            part = self._options.part_of(name)
            made = checkpoint._merged(weights, self._options.weight_only, part)
            if part is not None:
                _mark(made, part)
        except UsageError as error:
            if error.message.startswith(("tensor", "weight")):
                raise
            raise UsageError(f"layer '{name}': {error.message}", error.note) from error
        before = bytes_of(layer)
        where = layer.weight.device
        if where.type != "meta":
            made = made.to(where)
        put(self._model, name, made.train(layer.training))
        return LayerReport(name, type(layer).__name__, made.unpack().format, before,
                           bytes_of(made), f"a {type(made).__name__}")

    def _replace_experts(self, name: str, experts: Experts) -> LayerReport:
        module = self._model.get_submodule(name)
        tensors = {self._options.rename(other): other for other in self._checkpoint.others}

        def bias_of(place: str) -> torch.Tensor | None:
            if place not in tensors:
                return None
            self.used.add(tensors[place])
            return self._checkpoint.tensor(tensors[place])

        made = made_of(module, name, experts, self._checkpoint, bias_of,
                       self._options.expert_part)
        where = module.get_parameter("down_proj").device
        put(self._model, name, made if where.type == "meta" else made.to(where))
        return LayerReport(name, type(module).__name__, made.down.format,
                           sum(parameter.nbytes for parameter in module.parameters()),
                           bytes_of(made), f"a {type(made).__name__}")


def _mark(layer: torch.nn.Module, part: Part) -> None:
    """Tells a decoder which part the layer is."""
    if not isinstance(layer, WeightOnlyLinear):
        raise UsageError("layers that ranks share must be WeightOnlyLinear, but the checkpoint "
                         "quantizes inputs too", "pass weight_only=True")
    layer.part = dataclasses.astuple(part)


def bytes_of(module: torch.nn.Module) -> int:
    """Bytes of parameters and buffers."""
    return sum(tensor.nbytes for tensor in (*module.parameters(), *module.buffers()))


def _targets(model: torch.nn.Module, places: Mapping[str, str], held: set[str],
             options: Options) -> dict[str, tuple[str, ...]]:
    """The layers of the model, and the weights of the checkpoint that each stands for. Experts
    have those in `held`."""
    modules = dict(model.named_modules(remove_duplicate=False))
    found: dict[str, tuple[str, ...]] = {}
    for place, name in places.items():
        if name in held:
            continue
        if isinstance(modules.get(place), torch.nn.Linear):
            found[place] = (name,)
            continue
        parent, dot, last = place.rpartition(".")
        for whole, parts in options.merged.items():
            layer = f"{parent}{dot}{whole}"
            if last in parts and isinstance(modules.get(layer), torch.nn.Linear):
                missing = [part for part in parts if f"{parent}{dot}{part}" not in places]
                if missing:
                    raise UsageError(f"layer '{layer}' must have the weights {', '.join(parts)}, "
                                     f"but the checkpoint has no '{parent}{dot}{missing[0]}' in 4 "
                                     "bits", "pass merged={} and load the layer by hand")
                found[layer] = tuple(places[f"{parent}{dot}{part}"] for part in parts)
                break
        else:
            raise UsageError(f"weight '{name}' has no layer in the model: it has no linear layer "
                             f"'{place}'", "pass rename=, a function from names of the checkpoint "
                             "to those of the model")
    return found
