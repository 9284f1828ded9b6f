"""From a model with linear layers to one that computes them in 4 bits."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..errors import UsageError
from .layers import Linear, NVFP4Training, QuantizedLinear
from .weight_only import WeightOnlyLinear


def quantize_(model: torch.nn.Module,
              filter: Callable[[torch.nn.Linear, str], bool] | None = None, *,
              format: str = "nvfp4", recipe: str = "", square: bool = False,
              training: NVFP4Training | bool = False, weight_only: bool = False) -> list[str]:
    """Replaces the torch.nn.Linear layers of `model` in place, and returns their names.

        fp4.torch.quantize_(model)                                # weights stored in 4 bits
        fp4.torch.quantize_(model, lambda layer, name: name != "head", training=True)

        fp4.torch.quantize_(model, weight_only=True)              # and activations stay 16 bits

    Args:
        filter: (layer, name) -> whether to replace it; all are, without it. Subclasses of
            torch.nn.Linear are never replaced.
        format, recipe, square: of the weights, as in `quantize`.
        training: make fp4.torch.Linear layers, which share the parameters of those that they
            replace. Without it they become QuantizedLinear layers.
        weight_only: make fp4.torch.WeightOnlyLinear layers, whose weights are prepacked and whose
            activations are not quantized.

    Raises:
        UsageError: a layer has sizes without a kernel, or `model` is itself such a layer. Then
            nothing was replaced.
    """
    if type(model) is torch.nn.Linear:
        raise UsageError("'model' must contain the layers, but is one itself",
                         "call fp4.torch.QuantizedLinear.from_linear or Linear.from_linear")
    found = {name: layer for name, layer in model.named_modules(remove_duplicate=False)
             if type(layer) is torch.nn.Linear and (filter is None or filter(layer, name))}
    made: dict[torch.nn.Linear, torch.nn.Module] = {}
    for name, layer in found.items():
        try:
            made[layer] = made.get(layer) or _convert(layer, format, recipe, square, training,
                                                      weight_only)
        except UsageError as error:
            raise UsageError(f"layer '{name}': {error.message}",
                             error.note + "; pass a filter that is False for it") from error
    for name, layer in found.items():
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, made[layer])
    return list(found)


def _convert(layer: torch.nn.Linear, format: str, recipe: str, square: bool,
             training: NVFP4Training | bool, weight_only: bool) -> torch.nn.Module:
    if training and weight_only:
        raise UsageError("'training' and 'weight_only' must not both be on: prepacked weights are "
                         "not trained", "leave one of them out")
    if training:
        if format != "nvfp4" or recipe or square:
            raise UsageError("'format', 'recipe' and 'square' are those of stored weights, but "
                             "'training' is on", "pass training=NVFP4Training(...)")
        return Linear.from_linear(layer, training if training is not True else None)
    kind = WeightOnlyLinear if weight_only else QuantizedLinear
    return kind.from_linear(layer, format=format, recipe=recipe, square=square)
