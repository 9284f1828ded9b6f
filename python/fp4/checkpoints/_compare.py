"""Compares two checkpoints bit by bit: 'fp4 compare-checkpoints'."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
from typing import Any

import torch

from ..errors import UsageError
from ..torch import Scaled, quantize
from ..torch.recipes import has_tensor_scale, range_of
from ._files import Files
from ._read import Checkpoint, open
from ._write import named

#: Recipes of packages that write checkpoints, by the format.
_RECIPES = {
    "nvfp4": ("compressed_tensors", "compressed_tensors_f32", "modelopt", "transformer_engine",
              "vllm", "flashinfer", "torchao", "torchao_1level", "four_over_six", "fouroversix"),
    "mxfp4": ("mxfp4_compressed_tensors", "mxfp4_modelopt", "mxfp4_vllm", "ocp_floor", "ocp_ceil",
              "ocp_even", "ocp_rceil"),
}
_ADAPTIVE = ("four_over_six", "fouroversix")
#: Rows of a weight that are quantized to find its recipe.
_ROWS = 128


@dataclasses.dataclass(frozen=True)
class Difference:
    """The first tensor of two checkpoints that differs.

    Attributes:
        name: of the weight or tensor.
        part: "codes", "scales", "tensor scale", "tensor" or "names".
        count: how many elements of the part differ, and of how many.
        index: of the first.
        found: its value in both, as text.
        recipes: those that the codes and block scales of each checkpoint follow, where the original
            is known and the weight is quantized.
    """

    name: str
    part: str
    count: tuple[int, int]
    index: tuple[int, ...]
    found: tuple[str, str]
    recipes: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    def __str__(self) -> str:
        where = f" at {list(self.index)}" if self.index else ""
        lines = [f"'{self.name}' differs in its {self.part}: {self.count[0]:,} of "
                 f"{self.count[1]:,}, first{where}: {self.found[0]} and {self.found[1]}"]
        for which, names in zip(("first", "second"), self.recipes or ()):
            lines.append(f"the {which} follows {', '.join(names) or 'no recipe of the table'}")
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The result of compare_checkpoints.

    Attributes:
        first: the first difference, or None.
        different: names of all weights and tensors that differ.
        compared: how many there are.
    """

    first: Difference | None
    different: tuple[str, ...]
    compared: int

    def to_dict(self) -> dict[str, Any]:
        """The result for json.dumps."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        if self.first is None:
            return f"no difference in {self.compared} weights and tensors"
        return f"{self.first}\n{len(self.different)} of {self.compared} differ"


def compare_checkpoints(one: str | os.PathLike[str], two: str | os.PathLike[str],
                        original: str | os.PathLike[str] | None = None) -> Comparison:
    """Compares all tensors of two checkpoints in NVFP4 or MXFP4, whose layouts may differ. Scales
    of tensors are compared as the factors that weights are decoded with.

    Args:
        original: the checkpoint in 16 bits, with which the recipes can be told.

    Raises:
        UsageError: one of them is no such checkpoint.
    """
    with contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(open(path)) for path in (one, two))
        plain = None if original is None else stack.enter_context(
            contextlib.closing(Files(pathlib.Path(original), "cpu")))
        names = list(dict.fromkeys([*first, *first.others, *second, *second.others]))
        different, found = [], None
        for name in names:
            difference = _difference(first, second, name)
            if difference is not None:
                different.append(name)
                found = found or _with_recipes(difference, first, second, plain)
    return Comparison(found, tuple(different), len(names))


def _difference(one: Checkpoint, two: Checkpoint, name: str) -> Difference | None:
    kinds = _kind(one, name), _kind(two, name)
    if kinds[0] != kinds[1]:
        return Difference(name, "names", (1, 1), (), kinds)
    if name not in one:
        return _first(name, "tensor", one.tensor(name), two.tensor(name))
    for expert in range(one[name].experts or 1):
        index = None if one[name].experts is None else expert
        difference = _of_weights(name, one.read(name, expert=index, partial=True),
                                 two.read(name, expert=index, partial=True))
        if difference is not None:
            return difference
    return None


def _kind(checkpoint: Checkpoint, name: str) -> str:
    if name in checkpoint:
        entry = checkpoint[name]
        stack = "" if entry.experts is None else f"{entry.experts} experts in "
        return f"{stack}{entry.format} of {list(entry.shape)}"
    if name not in checkpoint.others:
        return "nothing"
    return str(checkpoint._header(name))


def _of_weights(name: str, one: Scaled, two: Scaled) -> Difference | None:
    codes = _first(name, "codes", _nibbles(one), _nibbles(two))
    scales = _first(name, "scales", one.scales, two.scales)
    levels = [scaled.decode_scale for scaled in (one, two)]
    if levels[0] is not None and levels[1] is not None:
        level = _first(name, "tensor scale", levels[0].reshape(1), levels[1].reshape(1))
    else:
        level = None
    # A different scale of the tensor makes other scales and codes, and these other codes.
    return level or scales or codes


def _nibbles(scaled: Scaled) -> torch.Tensor:
    data = scaled.data.view(torch.uint8)
    return torch.stack((data & 15, data >> 4), -1).reshape(data.shape[0], -1)


def _first(name: str, part: str, one: torch.Tensor, two: torch.Tensor) -> Difference | None:
    """Bits are compared, so that a NaN equals itself."""
    raw = [tensor.contiguous().reshape(-1).view(torch.uint8).view(-1, one.element_size())
           for tensor in (one, two)]
    differs = (raw[0] != raw[1]).any(1)
    count = int(differs.sum())
    if not count:
        return None
    flat = int(differs.nonzero()[0])
    index = tuple(int(place) for place in torch.unravel_index(torch.tensor(flat), one.shape))
    values = tuple(_text(tensor.reshape(-1)[flat]) for tensor in (one, two))
    return Difference(name, part, (count, one.numel()), index, (values[0], values[1]))


def _text(value: torch.Tensor) -> str:
    if not value.is_floating_point():
        return str(value.item())
    bits = value.reshape(1).view(torch.uint8).flip(0).tolist()
    return f"{float(value.float()):.9g} (0x{bytes(bits).hex()})"


def _with_recipes(difference: Difference, one: Checkpoint, two: Checkpoint,
                  plain: Files | None) -> Difference:
    name = difference.name
    key = f"{name}.weight"
    if plain is None or difference.part not in ("codes", "scales", "tensor scale") or (
            one[name].experts is not None):
        return difference
    if key not in plain.headers:
        raise UsageError(f"the original must have the tensor '{key}', but has not",
                         "pass the checkpoint that both were made of")
    weight = plain.load(key)
    if tuple(weight.shape) != one[name].shape:
        raise UsageError(f"tensor '{key}' of the original must be {list(one[name].shape)}, but is "
                         f"{list(weight.shape)}", "pass the checkpoint that both were made of")
    with named(key):
        found = tuple(_recipes_of(each.read(name, partial=True), weight) for each in (one, two))
    return dataclasses.replace(difference, recipes=(found[0], found[1]))


def _recipes_of(stored: Scaled, weight: torch.Tensor) -> tuple[str, ...]:
    """Recipes that give the stored codes and scales of the first rows of a weight, with the stored
    scale of the tensor."""
    rows = min(_ROWS, stored.shape[0])
    codes = stored.data.view(torch.uint8)[:rows]
    scales = stored.scales.view(torch.uint8)[:rows]
    found = []
    for name in _RECIPES[stored.format]:
        if has_tensor_scale(stored.format, name) != (stored.amax is not None):
            continue
        recipe, level = _at_level(name, stored)
        made = quantize(weight[:rows], format=stored.format, recipe=recipe, layout="linear",
                        amax=level)
        if torch.equal(made.data.view(torch.uint8), codes) and torch.equal(
                made.scales.view(torch.uint8), scales):
            found.append(name)
    return tuple(found)


def _at_level(name: str, stored: Scaled) -> tuple[str, torch.Tensor | None]:
    """A recipe with the stored scale of the tensor in the place of that which it computes. Recipes
    that try two scales for a block need an amax."""
    if stored.amax is None:
        return name, None
    if name in _ADAPTIVE:
        scale = stored.decode_scale
        assert scale is not None
        return name, scale * range_of(name)
    rule = stored.recipe.rpartition("tensor_scale = ")[2]
    return f"{name}, tensor_scale = {rule}", stored.amax
