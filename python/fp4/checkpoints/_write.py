"""Writes quantized weights as checkpoints."""

from __future__ import annotations

import os
import pathlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from ..errors import UsageError
from ..torch import Scaled, swizzle
from ..torch.recipes import BLOCKS
from ._files import SafetensorError, save_file
from ._global_scales import GlobalScale, level_of
from ._layouts import Kind, layout_of

Weights = Mapping[str, "Scaled | Sequence[Scaled]"]
Tensors = dict[str, torch.Tensor]
_STORED = {"U8": torch.uint8, "I8": torch.int8, "F8_E4M3": torch.float8_e4m3fn,
           "F8_E8M0": torch.float8_e8m0fnu}


def write(path: str | os.PathLike[str], weights: Weights, layout: str, *,
          input_scales: Mapping[str, GlobalScale] | None = None,
          tensors: Mapping[str, torch.Tensor] | None = None, nearest: bool = False) -> None:
    """Writes one safetensors file, completely or not at all.

    Args:
        path: of the file, whose folder exists.
        weights: by name; tiled block scales are stored linear. The gpt-oss layouts also take a
            sequence of experts of one shape, which are stacked.
        layout: one of fp4.checkpoints.LAYOUTS.
        input_scales: the scales for the inputs of layers, by the names of the weights.
        tensors: everything else that belongs into the file.
        nearest: where a scale of another convention has no equal in that of the layout, take the
            nearest. A scale that is computed from an amax may differ by one rounding of float32 in
            any case.

    Raises:
        UsageError: a weight that the layout cannot hold as it is; the message names the tensor.
            There is no file then, or the one that was there.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"'path' must be a path, but got {type(path).__name__}")
    for value, what in ((weights, "weights"), (input_scales or {}, "input_scales"),
                        (tensors or {}, "tensors")):
        if not isinstance(value, Mapping):
            raise TypeError(f"'{what}' must map names, but got {type(value).__name__}")
    known, found = layout_of(layout), Tensors()
    for name, weight in weights.items():
        with named(name):
            parts = [weight] if isinstance(weight, Scaled) else _experts(weight)
            kind = known.kind(parts[0].format)
            matrices = [matrix_of(part, kind, nearest) for part in parts]
            if isinstance(weight, Scaled):
                tensors_of = matrices[0]
            elif kind.is_blocked:
                tensors_of = {ending: torch.stack([each[ending] for each in matrices])
                              for ending in matrices[0]}
            else:
                raise UsageError(f"layout '{layout}' has no stacks of experts",
                                 "give each expert a name of its own")
        found.update({name + ending: value for ending, value in tensors_of.items()})
    _add_input_scales(found, weights, layout, input_scales or {}, nearest)
    for name, tensor in (tensors or {}).items():
        if name in found:
            raise UsageError(f"tensor '{name}' belongs to a weight, but is in 'tensors' too")
        found[name] = tensor
    save_tensors(found, pathlib.Path(path))


class named:
    """Puts the name of the weight before the messages of errors."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"names of weights must be str, but got {type(name).__name__}")
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, UsageError):
            raise UsageError(f"weight '{self._name}': {error.message}", error.note) from None


def _experts(value: Any) -> list[Scaled]:
    parts = list(value) if isinstance(value, Iterable) else [value]
    for part in parts or [None]:
        if not isinstance(part, Scaled):
            raise TypeError("weights must be fp4.torch.Scaled, or sequences of them, but got "
                            f"{type(part).__name__}\nnote: pass fp4.torch.quantize(weight)")
    first = parts[0]
    for part in parts:
        if (part.shape, part.format) != (first.shape, first.format):
            raise UsageError(f"experts must be of one shape and format, but got {first} and {part}")
    return parts


def matrix_of(weight: Scaled, kind: Kind, nearest: bool) -> Tensors:
    """The tensors of one weight, by their endings."""
    rows, columns = weight.shape
    block = BLOCKS[kind.format]
    if weight.device.type == "meta":
        raise UsageError("the weight must have data, but is on the device meta")
    if columns % block:
        raise UsageError(f"the columns must be a multiple of {block}, but got {columns}")
    weight = swizzle(weight, "linear")
    level = level_of(weight, kind, nearest=nearest)
    data, scales = weight.data.view(torch.uint8), weight.scales
    data, scales = data.view(_STORED[kind.types[0]]), scales.view(_STORED[kind.types_of_scales[0]])
    if kind.is_blocked:
        data = data.view(rows, columns // block, block // 2)
    found = {kind.data: data, kind.scales: scales}
    if level is not None:
        found[kind.level] = _stored(level, kind.convention)
    return found


def _stored(level: torch.Tensor, convention: str) -> torch.Tensor:
    """compressed-tensors stores its scales as [1], ModelOpt as scalars."""
    return level.reshape(1) if convention == "encode" else level.reshape(())


def _add_input_scales(found: Tensors, weights: Weights, layout: str,
                      scales: Mapping[str, GlobalScale], nearest: bool) -> None:
    for name, scale in scales.items():
        weight = weights.get(name)
        if not isinstance(weight, Scaled):
            raise UsageError(f"'input_scales' must be of weights, but has '{name}'")
        if not isinstance(scale, GlobalScale):
            raise TypeError(f"'input_scales' must be GlobalScales, but got {type(scale).__name__}")
        kind = layout_of(layout).kind(weight.format)
        if not kind.input:
            raise UsageError(f"layout '{layout}' has no scales for inputs of {kind.format}",
                             "its inputs are quantized without one")
        with named(name):
            value = scale.to(kind.convention, nearest=nearest).value
        found[name + kind.input] = _stored(value, kind.convention)


def save_tensors(tensors: Tensors, path: pathlib.Path) -> None:
    """Writes beside `path`, and renames: a reader sees the old file or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        save_file(tensors, temporary, metadata={"format": "pt"})
        os.replace(temporary, path)
    except (OSError, RuntimeError, ValueError, SafetensorError) as error:
        raise UsageError(f"cannot write '{path}': {error}", "tensors must be contiguous and share "
                         "no memory") from error
    finally:
        temporary.unlink(missing_ok=True)


def quantization_config(layout: str, format: str, *, ignore: Sequence[str] = (),
                        inputs: bool = False) -> dict[str, Any]:
    """The "quantization_config" of config.json for a model whose linear layers are all quantized.

    Args:
        ignore: names of modules that are not quantized, such as "lm_head".
        inputs: whether inputs are quantized too, with the input scales of the file (NVFP4).

    Returns:
        A dictionary for json.dumps. vLLM and transformers choose their loader by it.
    """
    kind = layout_of(layout).kind(format)
    if inputs and not kind.input:
        raise UsageError(f"layout '{layout}' has no scales for inputs of {format}")
    names = list(ignore)
    if layout == "compressed-tensors":
        return {"quant_method": "compressed-tensors", "format": kind.words[0],
                "quantization_status": "compressed", "ignore": names,
                "config_groups": {"group_0": _group(kind, inputs)}}
    if layout == "modelopt":
        algorithm = "W4A16_NVFP4" if format == "nvfp4" and not inputs else kind.words[0]
        return {"quant_method": "modelopt", "quant_algo": algorithm, "ignore": names,
                "config_groups": {"group_0": _group(kind, inputs)}}
    if layout == "gpt-oss":
        return {"quant_method": "mxfp4", "modules_to_not_convert": names}
    raise UsageError(f"layout '{layout}' has no config.json",
                     "its dtypes are known to the program that reads it")


def _group(kind: Kind, inputs: bool) -> dict[str, Any]:
    numbers = {"num_bits": 4, "type": "float", "group_size": BLOCKS[kind.format],
               "symmetric": True,
               "strategy": "tensor_group" if kind.format == "nvfp4" else "group"}
    group: dict[str, Any] = {"targets": ["Linear"], "weights": {**numbers, "dynamic": False}}
    if inputs:
        group["input_activations"] = {**numbers, "dynamic": "local"}
    return group
