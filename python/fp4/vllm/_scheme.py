"""The layout of a checkpoint of another package, as the quantization section of its config.json
tells it."""

from __future__ import annotations

import dataclasses
import fnmatch
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import UsageError

_REMEDY = "leave out '--quantization fp4', and vLLM loads its other formats"


@dataclasses.dataclass(frozen=True)
class Names:
    """The endings of the names of tensors, behind "", "w13_" or "w2_".

    Attributes:
        scale: of a tensor; "" without one.
        input: of the scale of activations, which is loaded and not used; "" without one.
        is_encode: the scale of a tensor divides.
    """

    weight: str
    scale: str = ""
    input: str = ""
    is_encode: bool = False


@dataclasses.dataclass(frozen=True)
class Scheme:
    """The layout of a checkpoint.

    Attributes:
        ignored: names or patterns of layers that stay as they are.
        experts_alone: linear layers stay, and experts have biases, as those of gpt-oss.
    """

    format: str
    names: Names
    ignored: tuple[str, ...] = ()
    experts_alone: bool = False

    def keeps(self, layer: str) -> bool:
        """Returns True for a layer that stays as it is."""
        return any(_matches(layer, pattern) for pattern in self.ignored)


def scheme_of(section: Mapping[str, Any]) -> Scheme:
    """The scheme of a section.

    Raises:
        UsageError: a format without layers of fp4.
    """
    method = str(section.get("quant_method", ""))
    if method == "mxfp4":
        return Scheme("mxfp4", Names("weight"), tuple(section.get("modules_to_not_convert") or ()),
                      experts_alone=True)
    if method == "compressed-tensors":
        return _of_compressed_tensors(section)
    if method.startswith("modelopt"):
        return _of_modelopt(section)
    raise UsageError("'quantization_config' must be of compressed-tensors, modelopt or mxfp4, but "
                     f"is of {method or 'no method'}", _REMEDY)


def _of_compressed_tensors(section: Mapping[str, Any]) -> Scheme:
    groups = [group for group in (section.get("config_groups") or {}).values() if group]
    weights = [group.get("weights") or {} for group in groups]
    sizes = {(one.get("type"), one.get("num_bits"), one.get("group_size")) for one in weights}
    formats: dict[Any, str] = {("float", 4, 16): "nvfp4", ("float", 4, 32): "mxfp4"}
    if len(sizes) != 1 or next(iter(sizes)) not in formats:
        raise UsageError("'quantization_config' must have weights of 4 bits in groups of 16 or 32, "
                         f"but has {sorted(map(str, sizes))}", _REMEDY)
    format = formats[next(iter(sizes))]
    has_inputs = any(group.get("input_activations") for group in groups)
    names = Names("weight_packed")
    if format == "nvfp4":
        names = Names("weight_packed", "weight_global_scale",
                      "input_global_scale" if has_inputs else "", is_encode=True)
    return Scheme(format, names, tuple(section.get("ignore") or ()))


def _of_modelopt(section: Mapping[str, Any]) -> Scheme:
    inner = section.get("quantization") or section
    algorithm = inner.get("quant_algo")
    if algorithm not in ("NVFP4", "W4A16_NVFP4"):
        raise UsageError("'quant_algo' must be NVFP4 or W4A16_NVFP4, but is "
                         f"{algorithm}", _REMEDY)
    ignored: Sequence[str] = inner.get("exclude_modules") or inner.get("ignore") or ()
    return Scheme("nvfp4", Names("weight", "weight_scale_2",
                                 "input_scale" if algorithm == "NVFP4" else ""), tuple(ignored))


def _matches(layer: str, pattern: str) -> bool:
    if pattern.startswith("re:"):
        return re.match(pattern[3:], layer) is not None
    return (layer == pattern or layer.endswith(f".{pattern}") or layer.startswith(f"{pattern}.")
            or fnmatch.fnmatchcase(layer, pattern))
