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

#: Linear layers of an expert.
_EXPERT = ("gate_proj", "up_proj", "down_proj", "w1", "w2", "w3")

#: The class of all experts.
_EXPERTS = "FusedMoE"


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
        targets: names or patterns of the layers that are in 4 bits, where FusedMoE names all
            experts; none: all are.
        cache: of keys and values, whose scales the checkpoint has: "fp8", or what ModelOpt calls
            it; "" without scales.
    """

    format: str
    names: Names
    ignored: tuple[str, ...] = ()
    experts_alone: bool = False
    targets: tuple[str, ...] = ()
    cache: str = ""

    def stays(self, layer: str, parts: Sequence[str]) -> bool:
        """Returns True for a layer that stays as it is: all `parts` of it that the checkpoint has
        stay, or none does."""
        if self._is_ignored(layer):
            return True
        kept = [part for part in parts if self._is_ignored(part)
                or not (self._is_target(part) or self._is_target(layer))]
        if kept and len(kept) != len(parts):
            raise UsageError(f"layers {', '.join(parts)} must all be in 4 bits or none, because "
                             f"vLLM makes them one, but {', '.join(kept)} stays",
                             "quantize the checkpoint with all of them, or without")
        return bool(kept)

    def stays_experts(self, name: str) -> bool:
        """Returns True for experts that stay as they are: `name` is that of their module."""
        names = [name, *(f"{name}.0.{part}" for part in _EXPERT)]
        return self._is_ignored(name) or not (_EXPERTS in self.targets
                                              or any(map(self._is_target, names)))

    def _is_ignored(self, layer: str) -> bool:
        return any(_matches(layer, pattern) for pattern in self.ignored)

    def _is_target(self, layer: str) -> bool:
        return not self.targets or any(_matches(layer, pattern) for pattern in self.targets)


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
    return Scheme(format, names, tuple(section.get("ignore") or ()), targets=_targets_of(groups),
                  cache=_cache_of(section))


def _cache_of(section: Mapping[str, Any]) -> str:
    """The cache that `kv_cache_scheme` of compressed-tensors has scales for."""
    scheme = section.get("kv_cache_scheme")
    if not scheme:
        return ""
    found = scheme.get("type"), scheme.get("num_bits"), scheme.get("strategy")
    if found != ("float", 8, "tensor") or not scheme.get("symmetric", True):
        raise UsageError("'kv_cache_scheme' must have floats of 8 bits with one symmetric scale of "
                         f"the tensor, but is {dict(scheme)}", _REMEDY)
    return "fp8"


def _targets_of(groups: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The layers that groups name; none where one names all by the class of linear layers."""
    targets = [str(target) for group in groups for target in group.get("targets") or ()]
    classes = {target for target in targets if target.isidentifier() and target[0].isupper()}
    if others := classes - {"Linear", "LinearBase", _EXPERTS}:
        raise UsageError("'targets' of 'quantization_config' must be Linear, FusedMoE, or names of "
                         f"layers, but have {min(others)}", _REMEDY)
    return () if "Linear" in classes or "LinearBase" in classes else tuple(targets)


def _of_modelopt(section: Mapping[str, Any]) -> Scheme:
    inner = section.get("quantization") or section
    algorithm = inner.get("quant_algo")
    if algorithm not in ("NVFP4", "W4A16_NVFP4"):
        raise UsageError("'quant_algo' must be NVFP4 or W4A16_NVFP4, but is "
                         f"{algorithm}", _REMEDY)
    ignored: Sequence[str] = inner.get("exclude_modules") or inner.get("ignore") or ()
    cache = inner.get("kv_cache_scheme") or inner.get("kv_cache_quant_algo") or ""
    if not isinstance(cache, str):
        cache = f"{cache.get('type')}{cache.get('num_bits')}".replace("float8", "fp8")
    return Scheme("nvfp4", Names("weight", "weight_scale_2",
                                 "input_scale" if algorithm == "NVFP4" else ""), tuple(ignored),
                  cache=cache.lower())


def _matches(layer: str, pattern: str) -> bool:
    if pattern.startswith("re:"):
        return re.match(pattern[3:], layer) is not None
    return (layer == pattern or layer.endswith(f".{pattern}") or layer.startswith(f"{pattern}.")
            or fnmatch.fnmatchcase(layer, pattern))
