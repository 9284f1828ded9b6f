"""Finds the linear layers of a model by the names and shapes of its tensors alone."""

from __future__ import annotations

import dataclasses
import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..errors import UsageError
from ..torch.recipes import BLOCKS
from ._files import Header
from ._layouts import Kind
from ._loading import MERGED

#: Layers that inference engines multiply by at once, so that they need one scale and one format:
#: the last parts of their names.
FUSED: Sequence[Sequence[str]] = (*MERGED.values(), ("w1", "w3"), ("query", "key", "value"),
                                  ("q_a_proj", "kv_a_proj_with_mqa"))

_DTYPES = ("BF16", "F16", "F32")

_HEADS = ("lm_head", "embed_out", "output_layer", "score", "classifier", "qa_outputs")
_ROUTERS = ("gate", "router", "shared_expert_gate")
_TABLES = ("wte", "wpe", "shared", "relative_attention_bias")
_EXPERT = re.compile(r"(.*\.experts)\.\d+\.")
#: Models whose linear layers store transposed weights.
_TRANSPOSED = ("gpt2", "openai-gpt", "imagegpt", "decision_transformer")


@dataclasses.dataclass(frozen=True)
class Linear:
    """A linear layer of a checkpoint.

    Attributes:
        name: of the module; the tensor is called NAME.weight.
        shape: (out_features, in_features).
        dtype: of the file, such as "BF16".
        reason: for which it stays as it is, or "".
    """

    name: str
    shape: tuple[int, int]
    dtype: str
    reason: str = ""

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def bits(self) -> int:
        """Bits of a number: 8 of F8_E4M3, and of BOOL."""
        digits = re.search(r"\d+", self.dtype)
        return int(digits[0]) if digits else 8

    @property
    def is_head(self) -> bool:
        return self.name.rpartition(".")[2] in _HEADS


def linears(headers: Mapping[str, Header], format: str, exclude: Sequence[str],
            head: bool) -> list[Linear]:
    """The linear layers, in the order of the file.

    Args:
        exclude: shell patterns of names of layers that stay as they are.
        head: whether heads are quantized too.

    Raises:
        UsageError: a layer whose numbers or columns cannot be quantized, a pattern that matches no
            layer, a head that has no tensor, or no layer at all.
    """
    found, names = [], []
    for key, header in headers.items():
        name = key.removesuffix(".weight")
        if _is_stack(key, header):
            _check_stack(key, name, header, exclude)
            names.append(name)
        if name == key or len(header.shape) != 2 or _is_table(name):
            continue
        rows, columns = header.shape
        reason = _reason(name, exclude, head)
        found.append(Linear(name, (rows, columns), header.dtype, reason))
    names += [layer.name for layer in found]
    for pattern in exclude:
        if not fnmatch.filter(names, pattern):
            raise UsageError(f"'exclude' must match a linear layer, but {pattern!r} matches none",
                             "names are those of the tensors without .weight; * matches any part")
    chosen = [layer for layer in found if not layer.reason]
    for layer in chosen:
        _check(layer, format)
    if not chosen:
        raise UsageError("the checkpoint must have a linear layer to quantize, but has none",
                         "layers are tensors of two dimensions that are called NAME.weight")
    if head and not any(layer.is_head for layer in found):
        raise UsageError("the checkpoint must have a tensor of the head, but has none",
                         "the embedding is the head too; leave it as it is")
    _check_units(found)
    return found


def stacks(headers: Mapping[str, Header]) -> set[str]:
    """Names of the modules whose experts are one tensor, such as model.layers.0.mlp.experts."""
    return {re.sub(r"^((?:.*?\.)?experts)\..*", r"\1", key) for key, header in headers.items()
            if _is_stack(key, header)}


def check_names(headers: Mapping[str, Header], layers: Iterable[str], kind: Kind) -> None:
    """Refuses tensors under the names that those of quantized layers get."""
    for layer in layers:
        for ending in (kind.data, kind.scales, kind.level):
            if ending and f"{layer}{ending}" in headers:
                raise UsageError(f"layer '{layer}' must have no tensor '{layer}{ending}', but has "
                                 "one", f"if it is quantized already, exclude '{layer}'")


def check_config(config: Mapping[str, object], path: object) -> None:
    """Refuses a model that is quantized, or whose weights are transposed."""
    text = config.get("text_config")
    for section in (config, text if isinstance(text, dict) else {}):
        for key in ("quantization_config", "compression_config"):
            if section.get(key):
                raise UsageError(f"'{path}' must be of a model in 16 bits, but has a {key}",
                                 "quantize the model that it was made of")
    if config.get("model_type") in _TRANSPOSED:
        raise UsageError(f"'{path}' must be of a model with weights [out_features, in_features], "
                         f"but those of {config['model_type']} are transposed",
                         "fp4.torch.quantize_ takes the model of transformers")


def fused(names: Iterable[str]) -> list[tuple[str, ...]]:
    """The names in groups of layers that need one scale of the tensor, in their order."""
    return _groups(names, _fused)


def units(names: Iterable[str]) -> list[tuple[str, ...]]:
    """The names in groups of layers that need one format, in their order: those of `fused`, and all
    experts of a layer."""
    return _groups(names, lambda name: (found[1],) if (found := _EXPERT.match(name)) else
                   _fused(name))


def _groups(names: Iterable[str],
            key: Callable[[str], tuple[str, ...]]) -> list[tuple[str, ...]]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        groups.setdefault(key(name), []).append(name)
    return [tuple(group) for group in groups.values()]


def _fused(name: str) -> tuple[str, ...]:
    parent, _, last = name.rpartition(".")
    kind = next((parts for parts in FUSED if last in parts), None)
    return (name,) if kind is None else (parent, *kind)


def _is_table(name: str) -> bool:
    last = name.rpartition(".")[2]
    return ("embed" in last and last not in _HEADS) or last in _TABLES


def _reason(name: str, exclude: Sequence[str], head: bool) -> str:
    last = name.rpartition(".")[2]
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in exclude):
        return "is excluded"
    if last in _HEADS and not head:
        return "is the head"
    return "is a router" if last in _ROUTERS else ""


def _is_stack(key: str, header: Header) -> bool:
    return len(header.shape) == 3 and "experts" in key.split(".")


def _check_stack(key: str, name: str, header: Header, exclude: Sequence[str]) -> None:
    if not any(fnmatch.fnmatchcase(name, pattern) for pattern in exclude):
        raise UsageError(f"tensor '{key}' must be one matrix for each expert, but is {header}",
                         f"exclude '{name}', and it stays as it is; fp4.torch.quantize_ takes the "
                         "model of transformers")


def _check(layer: Linear, format: str) -> None:
    remedy = f"exclude '{layer.name}', and it stays as it is"
    if layer.dtype not in _DTYPES:
        raise UsageError(f"tensor '{layer.name}.weight' must be BF16, F16 or F32, but is "
                         f"{layer.dtype}", remedy)
    if not layer.size:
        raise UsageError(f"layer '{layer.name}' must have rows and columns, but is "
                         f"{layer.shape[0]} x {layer.shape[1]}", remedy)
    block = BLOCKS[format]
    if layer.shape[1] % block:
        raise UsageError(f"layer '{layer.name}' must have columns that are a multiple of {block}, "
                         f"the block of {format}, but has {layer.shape[1]}", remedy)


def _check_units(found: Sequence[Linear]) -> None:
    reasons = {layer.name: layer.reason for layer in found}
    for group in units(reasons):
        kept = [name for name in group if reasons[name]]
        if kept and len(kept) != len(group):
            other = next(name for name in group if not reasons[name])
            raise UsageError(f"layers '{kept[0]}' and '{other}' must have one format, because "
                             f"engines multiply by both at once, but '{kept[0]}' "
                             f"{reasons[kept[0]]}", "exclude all of them")
