"""Reads quantized weights of checkpoints."""

from __future__ import annotations

import difflib
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import torch

from ..errors import UsageError
from ..torch import QuantizedLinear, Scaled, WeightOnlyLinear, damage, decode_scale_of
from ..torch.recipes import BLOCKS
from ..torch.scaled import SCALE_DTYPES
from ..torch.shards import Part
from ._detect import Entry, detect
from ._files import Files, Header, configs
from ._global_scales import CONVENTIONS, GlobalScale
from ._merge import merge

# No weight of a model is larger: the largest f16. A scale of the wrong convention makes them so.
_LARGEST_WEIGHT = 65504.0
_DAMAGED = ("the file is damaged: fetch it again; open(path, check_scales=False) reads the bytes "
            "as they are")


class Checkpoint(Mapping[str, Entry]):
    """The quantized weights of a model by their names; `open` makes it.

    Attributes:
        layout: the fp4.checkpoints.Layout.
        configs: what config.json and hf_quant_config.json say.
        others: the names of all other tensors, such as biases and norms; `tensor` reads them.
    """

    def __init__(self, path: pathlib.Path, layout: str | None, global_scale: str | None,
                 device: str, check_scales: bool = True) -> None:
        if global_scale is not None and global_scale not in CONVENTIONS:
            raise UsageError(f"'global_scale' must be encode or decode, but got {global_scale!r}",
                             "encode is 2688 / amax and decode amax / 2688")
        self._stated, self._checks_scales = global_scale, check_scales
        self._files = Files(path, device)
        try:
            self.configs = configs(path) if layout is None else []
            self.layout, self._entries = detect(self._files.headers, self.configs, layout)
        except BaseException:
            self._files.close()
            raise
        used = {name for entry in self._entries.values() for name in entry.tensors}
        self.others = tuple(name for name in self._files.headers if name not in used)

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def read(self, name: str, *, expert: int | None = None, partial: bool = False) -> Scaled:
        """A quantized weight.

        Args:
            name: one of the names of this mapping.
            expert: which matrix of a stack.
            partial: read the weight although the layer computes more than its matmul.

        Returns:
            The stored bytes, with linear block scales, the scale of the tensor in the
            convention of the layout, and the recipe that decodes it as the layout's package does.

        Raises:
            UsageError: no such weight; a block scale that is NaN or negative, with its index; a
                scale of the tensor that decodes nothing, or that makes the weight larger than any
                f16, as a scale of the other convention does.
        """
        return self._read(name, expert, partial, None)

    def _read(self, name: str, expert: int | None, partial: bool, part: Part | None) -> Scaled:
        """As `read`, or a rank's part of the weight, of which no more is read."""
        entry = self._entry(name)
        if entry.changes and not partial:
            raise UsageError(f"weight '{name}' is not all of its layer: tensor "
                             f"'{entry.changes[0]}' changes what it computes",
                             "read that with tensor(name) and apply it, and pass partial=True here")
        index = _index(entry, expert)
        kind, (rows, columns) = entry.kind, _shape_of(entry, part)
        of_file = None if entry.is_transposed else part
        data = self._files.load(name + kind.data, index, of_file).view(torch.uint8)
        scales = self._files.load(name + kind.scales, index, of_file).view(torch.uint8)
        if entry.is_transposed:
            data, scales = data.t().contiguous(), scales.t().contiguous()
            if part is not None:
                data, scales = part.of(data), part.of(scales)
        if self._checks_scales:
            of = f"tensor '{name + kind.scales}'" + ("" if index is None else f" of expert {index}")
            damage.check_scales(scales, kind.format, of, _DAMAGED)
        data = data.reshape(rows, columns // 2).view(torch.float4_e2m1fn_x2)
        scales = scales.view(SCALE_DTYPES[kind.format])
        facts: dict[str, Any] = {"shape": (rows, columns), "format": kind.format,
                                 "layout": "linear"}
        if not kind.level:
            return Scaled(data, scales, None, recipe=kind.recipe, **facts)
        return self._leveled(name + kind.level, entry, index, data, scales, facts)

    def _leveled(self, level: str, entry: Entry, index: int | None, data: torch.Tensor,
                 scales: torch.Tensor, facts: dict[str, Any]) -> Scaled:
        convention = self._stated or entry.kind.convention
        value = _check_level(_number(self._files.load(level), index), level, convention)
        if convention == entry.kind.convention:
            result = Scaled(data, scales, value.reshape(()), recipe=entry.kind.recipe, **facts)
        elif convention == "encode":
            result = Scaled.from_encode_scale(data, scales, value, **facts)
        else:
            result = Scaled.from_decode_scale(data, scales, value, **facts)
        if self._stated is None:
            _check_plausible(result, level, convention)
        return result

    def linear(self, name: str, *,
               weight_only: bool | None = None) -> QuantizedLinear | WeightOnlyLinear:
        """The layer of a quantized weight, with the tensor NAME.bias if there is one.

        If the checkpoint says that inputs have 4 bits, the layer is a QuantizedLinear, whose input
        is quantized with the recipe of the weight and the scale that the checkpoint has for it:
        NVFP4 with such a scale, and MXFP4 whose config.json says so. Otherwise the layer is a
        WeightOnlyLinear.

        Args:
            name: of the weight, one of those over which the checkpoint iterates.
            weight_only: which of the two, where the caller knows better.

        Raises:
            UsageError: the checkpoint has no scale for the input, and `weight_only` is False; or
                sizes without a kernel.
        """
        return self.merged((name,), weight_only=weight_only)

    def merged(self, names: Sequence[str], *,
               weight_only: bool | None = None) -> QuantizedLinear | WeightOnlyLinear:
        """The layer of several weights one below the other (merge), such as q_proj, k_proj and
        v_proj. The input needs one scale, so the one with the largest range is taken. `names` are
        those of the weights, in this order; `weight_only` and errors are those of `linear`."""
        return self._merged(names, weight_only, None)

    def _merged(self, names: Sequence[str], weight_only: bool | None,
                part: Part | None) -> QuantizedLinear | WeightOnlyLinear:
        """As `merged`, or a rank's part of one weight. Rank 0 alone has the bias of columns."""
        parts = [self._read(name, None, False, part) for name in names]
        scales = self._scales_of(names)
        weight = parts[0] if len(parts) == 1 else merge(parts)
        bias = self._bias(names, parts)
        if bias is not None and part is not None:
            values = bias if part.dim else part.of(bias)
            bias = torch.nn.Parameter(values * (not part.dim or not part.rank), False)
        if weight_only is None:
            weight_only = self._is_weight_only(weight.format, scales)
        if weight_only:
            return WeightOnlyLinear(weight, bias)
        if weight.amax is not None and not scales:
            raise UsageError(f"weight '{names[0]}' has no scale for the input of its layer, so the "
                             "input is not quantized",
                             "pass weight_only=True, or quantize inputs with a recipe of your "
                             "choice: read(name) gives the weight")
        return QuantizedLinear(weight, bias, _widest(scales))

    def _is_weight_only(self, format: str, scales: list[GlobalScale]) -> bool:
        said = {config.has_4_bit_inputs for config in self.configs} - {None}
        if format == "nvfp4":
            return not scales or said == {False}
        return True not in said

    def _scales_of(self, names: Sequence[str]) -> list[GlobalScale]:
        found = [self.input_scale(name) for name in names]
        return [scale for scale in found if scale is not None]

    def _bias(self, names: Sequence[str], parts: Sequence[Scaled]) -> torch.nn.Parameter | None:
        held = set(self.others)
        biases = [self.tensor(f"{name}.bias") if f"{name}.bias" in held else None
                  for name in names]
        first = next((bias for bias in biases if bias is not None), None)
        if first is None:
            return None
        rows = [first.new_zeros(part.shape[0]) if bias is None else bias
                for bias, part in zip(biases, parts)]
        return torch.nn.Parameter(torch.cat(rows), False)

    def input_scale(self, name: str, *, expert: int | None = None) -> GlobalScale | None:
        """The scale for the input of the layer, or None where the checkpoint has none. A stack may
        have one for all experts, or one for each."""
        entry = self._entry(name)
        if not entry.input:
            return None
        convention = self._stated or entry.kind.convention
        value = _number(self._files.load(entry.input), expert)
        if value.dtype != torch.float32 or value.numel() != 1:
            raise UsageError(f"tensor '{entry.input}' must be one float32, but is "
                             f"{str(value.dtype)[6:]} of shape {list(value.shape)}")
        return GlobalScale(_check_level(value, entry.input, convention), convention)

    def tensor(self, name: str) -> torch.Tensor:
        """Any tensor of the files, as it is."""
        if name not in self._files.headers:
            raise UsageError(f"the checkpoint has no tensor {name!r}",
                             _nearest(name, self._files.headers))
        return self._files.load(name)

    def _header(self, name: str) -> Header:
        return self._files.headers[name]

    def _entry(self, name: str) -> Entry:
        if name in self._entries:
            return self._entries[name]
        note = (f"it is not quantized: tensor({name!r}) reads it"
                if name in self.others else _nearest(name, self._entries))
        raise UsageError(f"the checkpoint has no quantized weight {name!r}", note)

    def close(self) -> None:
        """Closes the files. Tensors that were read stay."""
        self._files.close()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        formats = ", ".join(sorted({entry.format for entry in self._entries.values()}))
        return (f"<fp4.checkpoints.Checkpoint of {len(self)} weights in {formats}, layout "
                f"{self.layout.name}, and {len(self.others)} other tensors>")


def open(path: str | os.PathLike[str], *, layout: str | None = None,
         global_scale: str | None = None, device: str | torch.device = "cpu",
         check_scales: bool = True) -> Checkpoint:
    """Opens a checkpoint. Names, types and shapes are checked; nothing is loaded yet.

    Args:
        path: a safetensors file, a folder, or the index of several files. config.json and
            hf_quant_config.json beside them must agree with the tensors.
        layout: one of fp4.checkpoints.LAYOUTS, where the caller knows better than the names of the
            tensors and those files.
        global_scale: "encode" or "decode", where the file has the convention that its layout does
            not have.
        device: where the tensors are loaded to.
        check_scales: refuse block scales that are NaN or negative when a weight is read.

    Raises:
        UsageError: the file is none, or is damaged; its tensors have no known layout, or two; they
            do not belong together. The message names the tensor.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"'path' must be a path, but got {type(path).__name__}")
    return Checkpoint(pathlib.Path(path), layout, global_scale, str(device), check_scales)


def _shape_of(entry: Entry, part: Part | None) -> tuple[int, int]:
    """The rows and columns of a weight, or of a rank's part; a UsageError where parts would cut a
    block."""
    if part is None:
        return entry.shape
    sizes = list(entry.shape)
    unit = part.ranks * (BLOCKS[entry.format] if part.dim else 1)
    if sizes[part.dim] % unit:
        raise UsageError(f"weight '{entry.name}' must have a multiple of {unit} "
                         f"{'columns' if part.dim else 'rows'} for {part.ranks} ranks, but has "
                         f"{sizes[part.dim]}", "make a group of fewer ranks")
    sizes[part.dim] //= part.ranks
    return sizes[0], sizes[1]


def _index(entry: Entry, expert: int | None) -> int | None:
    if entry.experts is None:
        if expert is not None:
            raise UsageError(f"weight '{entry.name}' is one matrix, but got expert = {expert}")
        return None
    if expert is None or not 0 <= expert < entry.experts:
        raise UsageError(f"weight '{entry.name}' has {entry.experts} experts, but got expert = "
                         f"{expert}", "pass expert=0 and so on")
    return expert


def _widest(scales: Sequence[GlobalScale]) -> torch.Tensor | None:
    """The scale with the largest range of inputs: a decode scale grows with it."""
    if not scales:
        return None
    values = torch.stack([scale.value for scale in scales])
    return values.max() if scales[0].convention == "decode" else values.min()


def _number(values: torch.Tensor, expert: int | None) -> torch.Tensor:
    """The number of an expert, where each of a stack has one."""
    if expert is None or not 0 <= expert < values.numel():
        return values
    return values.reshape(-1)[expert] if values.numel() > 1 else values


def _check_level(value: torch.Tensor, name: str, convention: str) -> torch.Tensor:
    number = value.item()
    least = 0.0 if convention == "decode" else torch.finfo(torch.float32).tiny
    if not least <= number < float("inf"):  # NaN too
        raise UsageError(f"tensor '{name}' must be a positive {convention} scale, but is "
                         f"{number:.9g}", "the file is damaged, or the weight was never calibrated")
    return value


def _check_plausible(weight: Scaled, name: str, convention: str) -> None:
    assert weight.amax is not None
    scales = weight.scales.float()
    most = float(scales[scales.isfinite()].max()) if scales.isfinite().any() else 0.0
    reaches = 6 * most * float(decode_scale_of(weight.amax, weight.recipe))
    if reaches > _LARGEST_WEIGHT:
        other = "encode" if convention == "decode" else "decode"
        raise UsageError(f"tensor '{name}' is {weight.amax.item():.9g}, with which the largest "
                         f"weight would be {reaches:.3g} if it is the {convention} scale",
                         f"no model has such weights; if it is the {other} scale, say so: "
                         f"open(path, global_scale='{other}')")


def _nearest(name: Any, names: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    return f"there is {near[0]!r}" if near else ""


