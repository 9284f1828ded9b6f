"""Checkpoints into models, and models into checkpoints."""

from __future__ import annotations

import json
import os
import pathlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from ..errors import UsageError
from ..torch import QuantizedLinear, Report, RoutedExperts, Scaled, WeightOnlyLinear
from ..torch.convert import tell_transformers
from ..torch.recipes import is_supplied
from ._global_scales import GlobalScale
from ._layouts import layout_of
from ._loading import MERGED, Loading, Options
from ._read import Checkpoint, open
from ._write import quantization_config, write


def load_into(model: torch.nn.Module, path: str | os.PathLike[str], *, layout: str | None = None,
              global_scale: str | None = None, weight_only: bool | None = None,
              merged: Mapping[str, Sequence[str]] = MERGED,
              rename: Callable[[str], str] | None = None, check_scales: bool = True,
              share: tuple[int, int] | None = None, expert_parallel: bool = True) -> Report:
    """Loads a checkpoint with 4-bit weights into a model: layers whose weights it has are replaced,
    and all other parameters and buffers are filled.

        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config)
        fp4.checkpoints.load_into(model, "Llama-3.1-8B-NVFP4/")

    A layer becomes what Checkpoint.linear makes of it. A layer of the model that stands for several
    weights of the file has their rows in this order, each with its scale (merge). Experts that the
    model holds as 3-D parameters become RoutedExperts.

    Args:
        path: as fp4.checkpoints.open takes it.
        model: its parameters may be on the device meta. Loaded tensors go to the device of the
            parameters that they replace, and from meta to the CPU.
        layout, global_scale, check_scales: those of fp4.checkpoints.open.
        weight_only: which layers to make, whatever the file says.
        merged: the last part of the name of a layer, and those of the weights that it stands for.
        rename: from names in the file to those in the model.
        share: (rank, ranks): read this rank's part of a Decoder's layers.
        expert_parallel: that of the Decoder: with `share`, read some experts, or columns of all.

    Returns:
        The fate of each layer.

    Raises:
        UsageError: a weight for which the model has no layer, or of another shape; a parameter that
            the file does not have. The model may be changed in part.
    """
    if share is not None and not 0 <= share[0] < share[1]:
        raise UsageError(f"'share' must be a rank below the number of ranks, but got {share}",
                         "pass (group.rank(), group.size())")
    options = Options(rename or (lambda name: name), merged, weight_only, share,
                      expert_parallel)
    with open(path, layout=layout, global_scale=global_scale,
              check_scales=check_scales) as checkpoint:
        loading = Loading(model, checkpoint, options)
        lines = [loading.replace(name) for name in loading.names]
        _fill(model, checkpoint, loading.used, options)
    tell_transformers(model)
    return Report(tuple(lines))


def save(model: torch.nn.Module, path: str | os.PathLike[str], layout: str, *,
         ignore: Iterable[str] = (), nearest: bool = True) -> None:
    """Writes a model with layers of stored weights as a checkpoint that other packages read: a
    folder with model.safetensors, and a config.json with its "quantization_config".

    Args:
        path: of the folder.
        layout: one of fp4.checkpoints.LAYOUTS that holds matrices by their names.
        ignore: names for the section of config.json besides those of the model's linear layers.
        nearest: as in `write`.

    Raises:
        UsageError: a layer that the layout cannot hold, such as one with a scale for each row.
    """
    known = layout_of(layout)
    weights: dict[str, Scaled] = {}
    inputs: dict[str, GlobalScale] = {}
    plain: list[str] = list(ignore)
    for name, module in model.named_modules():
        if isinstance(module, (QuantizedLinear, WeightOnlyLinear)):
            weights[name] = module.unpack()
            scale = getattr(module, "input_amax", None)
            if scale is not None and known.kind(weights[name].format).input:
                inputs[name] = _input_scale(module, scale)
        elif type(module).__module__.startswith("fp4."):
            if module is not model and not _is_inside(name, weights):
                raise UsageError(f"layer '{name}' is a {type(module).__name__}, which layout "
                                 f"'{layout}' does not hold", "save its state_dict instead")
        elif isinstance(module, torch.nn.Linear):
            plain.append(name)
    if not weights:
        raise UsageError("'model' must have layers with weights in 4 bits, but has none",
                         "call fp4.torch.quantize_(model)")
    others = {name: value.contiguous() for name, value in _without_copies(model).items()
              if not _is_inside(name, weights) or name.endswith(".bias")}
    folder = pathlib.Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "model.safetensors", weights, layout, input_scales=inputs, tensors=others,
          nearest=nearest)
    format = next(iter(weights.values())).format
    section = quantization_config(layout, format, ignore=plain,
                                  inputs=len(inputs) == len(weights))
    to_dict = getattr(getattr(model, "config", None), "to_dict", dict)
    content = {**to_dict(), "quantization_config": section}
    (folder / "config.json").write_text(
        json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")


def _fill(model: torch.nn.Module, checkpoint: Checkpoint, used: set[str],
          options: Options) -> None:
    """Loads every tensor that is no weight in 4 bits."""
    places = {options.rename(name): name for name in checkpoint.others if name not in used}
    groups: dict[int, list[str]] = {}
    targets: dict[str, torch.Tensor] = {}
    ours = [name for name, module in model.named_modules()
            if isinstance(module, (QuantizedLinear, RoutedExperts, WeightOnlyLinear))]
    for name, tensor in _state(model).items():
        if not _is_inside(name, ours):
            groups.setdefault(id(tensor), []).append(name)
            targets[name] = tensor
    for names in groups.values():  # names that share a parameter have one tensor
        given = next((name for name in names if name in places), None)
        if given is None:
            raise UsageError(f"parameter '{names[0]}' is not in the checkpoint",
                             "it may have another name there: pass rename=")
        value = checkpoint.tensor(places[given])
        if value.shape != targets[given].shape:
            raise UsageError(f"tensor '{places[given]}' must have the shape "
                             f"{list(targets[given].shape)} of '{given}', but has "
                             f"{list(value.shape)}", "its config.json is of another model")
        _put(model, names, targets[given], value)
    left = sorted(set(places) - set(targets))
    if left:
        warnings.warn(f"load_into found no place for {len(left)} tensors of the checkpoint, such "
                      f"as '{places[left[0]]}'", stacklevel=3)


def _state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and persistent buffers themselves, under all their names."""
    held = {**dict(model.named_parameters(remove_duplicate=False)),
            **dict(model.named_buffers(remove_duplicate=False))}
    return {name: held[name] for name in model.state_dict() if name in held}


def _put(model: torch.nn.Module, names: Sequence[str], old: torch.Tensor,
         value: torch.Tensor) -> None:
    if not old.is_meta:
        with torch.no_grad():
            old.copy_(value)
        return
    new = value.to(old.dtype)
    if isinstance(old, torch.nn.Parameter):
        new = torch.nn.Parameter(new, old.requires_grad)
    for name in names:
        parent, _, last = name.rpartition(".")
        module = model.get_submodule(parent)
        held: dict[str, Any] = module._parameters if last in module._parameters else module._buffers
        held[last] = new


def _without_copies(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The state of a model, with a tensor that has several names under the first."""
    seen: set[int] = set()
    found = {}
    for name, tensor in _state(model).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor.detach()
    return found


def _is_inside(name: str, layers: Iterable[str]) -> bool:
    held = layers if isinstance(layers, (dict, set)) else set(layers)
    parts = name.split(".")
    return any(".".join(parts[:count]) in held for count in range(1, len(parts)))


def _input_scale(layer: torch.nn.Module, scale: torch.Tensor) -> GlobalScale:
    weight = layer.unpack()  # type: ignore[operator]
    return GlobalScale(scale, "encode" if is_supplied(weight.recipe) else "decode")
