"""Conversion of a model with linear layers to one that computes them in 4 bits, and back."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import torch

from ..errors import UsageError
from .candidates import Candidate, candidates, is_conv1d, shared_with
from .damage import check_weight
from .layers import ACTIVATIONS, Linear, NVFP4Training, QuantizedLinear
from .report import LayerReport, Report
from .weight_only import WeightOnlyLinear

_HOOKS = ("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
          "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs")


@dataclasses.dataclass(frozen=True)
class Aim:
    """The kind of layer that quantize_ makes; the members are arguments of quantize_."""

    format: str
    recipe: str
    square: bool
    training: NVFP4Training | bool
    weight_only: bool
    activations: str
    check: bool
    batch_invariant: bool = False

    def __post_init__(self) -> None:
        if self.activations not in ACTIVATIONS:
            raise UsageError("'activations' must be token or tensor, but got "
                             f"{self.activations!r}")
        if self.training and self.weight_only:
            raise UsageError("'training' and 'weight_only' must not both be on: prepacked weights "
                             "are not trained", "leave one of them out")
        if self.batch_invariant and not self.weight_only:
            raise UsageError("'batch_invariant' must be off without 'weight_only'",
                             "leave it out: other matmuls have no split-K, and are batch-invariant")
        if self.training and (self.format != "nvfp4" or self.recipe or self.square):
            raise UsageError("'format', 'recipe' and 'square' are those of stored weights, but "
                             "'training' is on", "pass training=NVFP4Training(...)")


def quantize_(model: torch.nn.Module,
              filter: Callable[[torch.nn.Module, str], bool] | None = None, *,
              format: str = "nvfp4", recipe: str = "", square: bool = False,
              training: NVFP4Training | bool = False, weight_only: bool = False,
              activations: str = "token", head: bool = False, skip_unsupported: bool = False,
              check: bool = True, batch_invariant: bool = False) -> Report:
    """Replaces the linear layers of `model` in place, and returns what became of each.

        fp4.torch.quantize_(model)                                # weights stored in 4 bits
        fp4.torch.quantize_(model, lambda layer, name: "gate" not in name, training=True)

        report = fp4.torch.quantize_(model, weight_only=True)     # and activations stay 16 bits

    Layers are torch.nn.Linear, transformers' Conv1D, and its experts whose matrices are parameters
    of 3 dimensions, which become weight-only in either way. Subclasses, parametrized layers and
    experts that fp4 does not know stay as they are, and one warning names them.

    The head stays in its dtype, unless `head` is on: the output embeddings of transformers, a layer
    called lm_head, or one that shares the weight of an embedding.

    Args:
        filter: (layer, name) -> whether to replace it; all are, without it.
        format, recipe, square: of the weights, as in `quantize`.
        training: make fp4.torch.Linear layers, which share the parameters of those that they
            replace. Without it they become QuantizedLinear layers.
        weight_only: make fp4.torch.WeightOnlyLinear layers.
        activations: of QuantizedLinear layers, "token" or "tensor": what has an amax of its own.
        skip_unsupported: leave a layer whose sizes have no kernel as it is.
        check: look for weights that are NaN or infinite. The host waits for each layer.
        batch_invariant: of WeightOnlyLinear layers, whose bits may else depend on how many rows
            there are.

    Raises:
        UsageError: a layer has sizes without a kernel, or a weight that is no number, or `model` is
            itself such a layer. Then nothing was replaced.
    """
    if type(model) is torch.nn.Linear:
        raise UsageError("'model' must contain the layers, but is one itself",
                         "call fp4.torch.QuantizedLinear.from_linear or Linear.from_linear")
    aim = Aim(format, recipe, square, training, weight_only, activations, check,
               batch_invariant)
    made: dict[torch.nn.Module, torch.nn.Module | str] = {}
    found = candidates(model, filter, head)
    for candidate in found:
        if not candidate.obstacle and candidate.module not in made:
            made[candidate.module] = attempt(candidate, aim, skip_unsupported)
    report = Report(tuple(_line(model, candidate, made.get(candidate.module), found)
                          for candidate in found))
    for candidate in found:
        new = made.get(candidate.module)
        if isinstance(new, torch.nn.Module):
            put(model, candidate.name, new)
    tell_transformers(model)
    report.warn("quantize_", 2)
    return report


def dequantize_(model: torch.nn.Module) -> Report:
    """The inverse of quantize_: layers with stored weights become torch.nn.Linear layers of the
    numbers that they multiply by, in the dtype that the weight had. Experts stay as they are."""
    lines = []
    for name, module in list(model.named_modules(remove_duplicate=False)):
        if not isinstance(module, (QuantizedLinear, WeightOnlyLinear)):
            continue
        plain = plain_linear(module.weight + 0, module.bias).train(module.training)
        _carry_hooks(module, plain)
        lines.append(LayerReport(name, type(module).__name__, str(module.weight_dtype)[6:],
                                 _size(module), _size(plain)))
        put(model, name, plain)
    tell_transformers(model)
    return Report(tuple(lines))


def attempt(candidate: Candidate, aim: Aim, skip: bool = False) -> torch.nn.Module | str:
    """Returns the layer that replaces the candidate, or the reason why it stays."""
    module, name = candidate.module, candidate.name
    for called, parameter in module.named_parameters(recurse=False) if aim.check else ():
        check_weight(parameter, f"layer '{name}': {called}")
    try:
        made = _experts(module, aim) if candidate.is_experts else _linear(module, aim)
    except UsageError as error:
        if skip or candidate.is_experts:
            return error.message
        note = "pass a filter that is False for it, or skip_unsupported=True"
        raise UsageError(f"layer '{name}': {error.message}",
                         f"{error.note}; {note}" if error.note else note) from error
    _carry_hooks(module, made)
    return made


def _linear(module: torch.nn.Module, aim: Aim) -> torch.nn.Module:
    if is_conv1d(module):
        if aim.training:
            raise UsageError("is a Conv1D, whose transposed weight has no layer that trains it")
        weight, bias = module.get_parameter("weight"), module._parameters.get("bias")
        layer = plain_linear(weight.detach().t().contiguous(), bias).train(module.training)
    else:
        assert isinstance(module, torch.nn.Linear)
        layer = module
    if aim.training:
        return Linear.from_linear(layer, aim.training if aim.training is not True else None)
    options: dict[str, Any] = {"format": aim.format, "recipe": aim.recipe, "square": aim.square,
                               "check": False}
    if aim.weight_only:
        return WeightOnlyLinear.from_linear(layer, batch_invariant=aim.batch_invariant, **options)
    return QuantizedLinear.from_linear(layer, activations=aim.activations, **options)


def _experts(module: torch.nn.Module, aim: Aim) -> torch.nn.Module:
    from .routed import experts_from

    if aim.training:
        raise UsageError(f"is a {type(module).__name__} with parameters of 3 dimensions, which fp4 "
                         "does not train")
    made = experts_from(module, format=aim.format, recipe=aim.recipe)
    return made.train(module.training)


def plain_linear(weight: torch.Tensor, bias: torch.nn.Parameter | None) -> torch.nn.Linear:
    with torch.device("meta"):
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias is not None)
    layer.weight = torch.nn.Parameter(weight, requires_grad=False)
    layer.bias = bias  # type: ignore[assignment]
    return layer


def put(model: torch.nn.Module, name: str, new: torch.nn.Module) -> None:
    """Makes `new` the module of this name."""
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, new)


def _carry_hooks(old: torch.nn.Module, new: torch.nn.Module) -> None:
    for hooks in _HOOKS:
        getattr(new, hooks).update(getattr(old, hooks))


def _line(model: torch.nn.Module, candidate: Candidate, made: torch.nn.Module | str | None,
          found: list[Candidate]) -> LayerReport:
    module, name = candidate.module, candidate.name
    first = next(other.name for other in found if other.module is module)
    embedding = shared_with(model, module)
    before = _size(module, without_weight=bool(embedding)) if first == name else 0
    kind = type(module).__name__
    if not isinstance(made, torch.nn.Module):
        reason = made or candidate.obstacle
        return LayerReport(name, kind, "", before, before, reason, candidate.is_expected)
    reason = f"is '{first}' too" if first != name else ""
    if embedding:
        reason = f"'{embedding}' keeps the weight that it shares with this layer"
    if candidate.is_experts and not isinstance(made, QuantizedLinear):
        reason = "activations stay 16 bits"
    return LayerReport(name, kind, _format_of(made), before,
                       _size(made) if first == name else 0, reason)


def _format_of(made: torch.nn.Module) -> str:
    if isinstance(made, QuantizedLinear):
        return made.unpack().format
    for module in made.modules():
        format = getattr(module, "format", None)
        if isinstance(format, str):
            return format
    return "nvfp4"  # that trains


def _size(module: torch.nn.Module, without_weight: bool = False) -> int:
    named = [*module.named_parameters(), *module.named_buffers()]
    return sum(tensor.nbytes for name, tensor in named
               if not (without_weight and name == "weight"))


def tell_transformers(model: torch.nn.Module) -> None:
    """A model of transformers says in its config.json what its layers are."""
    if "transformers.modeling_utils" in sys.modules:  # otherwise it is none
        from ..transformers._layers import record

        record(model)
