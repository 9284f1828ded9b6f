"""Which layout a checkpoint has, and which of its tensors make up a quantized weight."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ..errors import UsageError
from ..torch.recipes import BLOCKS
from ._files import Config, Header
from ._layouts import LAYOUTS, Kind, Layout, layout_of

Headers = Mapping[str, Header]

_DATA = ("U8", "F4")
_SCALES = {"nvfp4": ("F8_E4M3",), "mxfp4": ("U8", "F8_E8M0")}
_MIXED = {"mixed-precision", "MIXED_PRECISION"}


@dataclasses.dataclass(frozen=True, repr=False)
class Entry:
    """A quantized weight of a checkpoint.

    Attributes:
        name: the tensors are called this and the endings of `kind`.
        shape: (R, K) in elements; with `experts` of each of them.
        experts: how many matrices the tensors hold, or None for one without an index.
        kind: its format, and what its tensors mean.
        input: the name of the scale of the layer's input, or "".
        changes: tensors that change what the layer computes besides the weight.
    """

    name: str
    shape: tuple[int, int]
    experts: int | None
    kind: Kind
    input: str = ""
    changes: tuple[str, ...] = ()

    @property
    def format(self) -> str:
        """ "nvfp4" or "mxfp4" """
        return self.kind.format

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of everything that belongs to it."""
        endings = [ending for ending in (self.kind.data, self.kind.scales, self.kind.level)
                   if ending]
        names = [self.name + ending for ending in endings]
        return (*names, *((self.input,) if self.input else ()), *self.changes)

    def __repr__(self) -> str:
        experts = "" if self.experts is None else f"{self.experts} experts of "
        return f"Entry('{self.name}', {experts}{self.shape[0]}x{self.shape[1]} {self.format})"


def detect(headers: Headers, configs: Sequence[Config],
           stated: str | None) -> tuple[Layout, dict[str, Entry]]:
    """The layout of a checkpoint and its quantized weights.

    Args:
        stated: the layout that the caller states. Other layouts are not looked for, and config.json
            is not asked.
    """
    candidates = [layout_of(stated)] if stated else list(LAYOUTS.values())
    found = {layout.name: names for layout in candidates if (names := _names(headers, layout))}
    if not found:
        raise UsageError("the checkpoint must have weights in NVFP4 or MXFP4, but no tensor is "
                         "named like one", f"the layouts are {', '.join(LAYOUTS)}")
    if len(found) > 1:
        (one, ones), (other, others) = list(found.items())[:2]
        raise UsageError(f"tensor '{min(ones)}' has the layout {one}, but tensor '{min(others)}' "
                         f"has {other}", "state the one to read: open(path, layout=...)")
    layout = LAYOUTS[next(iter(found))]
    entries = {}
    for name in found[layout.name]:
        entry = _entry(headers, layout, name)
        entries[entry.name] = entry
    if not stated:
        _check_configs(layout, entries, configs)
    return layout, entries


def _names(headers: Headers, layout: Layout) -> list[str]:
    """The tensors with the packed elements of quantized weights."""
    ending = layout.kinds[0].data  # which all kinds of a layout share
    names = [name for name in headers if name.endswith(ending)]
    if ending == ".weight":  # which unquantized weights are called too
        return [name for name in names if headers[name].dtype in _DATA]
    return names


def _entry(headers: Headers, layout: Layout, data: str) -> Entry:
    name = data.removesuffix(layout.kinds[0].data)
    kind = _kind(headers, layout, name)
    found = headers[data]
    if found.dtype not in _DATA:
        raise UsageError(f"tensor '{data}' must be U8 or F4, two elements in a byte, but is "
                         f"{found}", "it is quantized in another way; state another layout")
    shape, experts = _shape(data, found, kind)
    _check_scales(headers, name, kind, shape, experts)
    if kind.level:
        level = headers[name + kind.level]
        if level.dtype != "F32" or _count(level.shape) != 1:
            raise UsageError(f"tensor '{name + kind.level}' must be one F32, but is {level}",
                             "a conversion could round it, and one scale belongs to one weight")
    given = name + kind.input
    changes = tuple(name + ending for ending in layout.changes if name + ending in headers)
    return Entry(name, shape, experts, kind, given if kind.input and given in headers else "",
                 changes)


def _kind(headers: Headers, layout: Layout, name: str) -> Kind:
    """The format of a weight, which the type of its block scales tells."""
    ending = layout.kinds[0].scales
    scales = headers.get(name + ending)
    if scales is None:
        raise UsageError(f"tensor '{name + layout.kinds[0].data}' must have block scales "
                         f"'{name + ending}', but the checkpoint has none",
                         f"the layout may not be {layout.name}; state another one")
    for kind in layout.kinds:
        if scales.dtype in _SCALES[kind.format]:
            break
    else:
        kinds = " or ".join("/".join(_SCALES[kind.format]) for kind in layout.kinds)
        raise UsageError(f"tensor '{name + ending}' must be {kinds}, but is {scales}",
                         "no conversion is made: it could round")
    levels = {other.level for other in layout.kinds if other.level}
    for level in levels:
        if (name + level in headers) != (level == kind.level):
            verb = "must be there" if level == kind.level else "must not be there"
            raise UsageError(f"tensor '{name + level}' {verb} beside '{name + ending}' of "
                             f"{scales.dtype}, which are scales of {kind.format}",
                             "the scale of a tensor belongs to nvfp4 alone, and is never made up")
    return kind


def _shape(data: str, found: Header, kind: Kind) -> tuple[tuple[int, int], int | None]:
    """Rows and columns, and the experts. F4 tensors count elements, others bytes."""
    sizes = list(found.shape)
    if found.dtype != "F4" and sizes:
        sizes[-1] *= 2
    rank = len(sizes)
    if rank not in ((3, 4) if kind.is_blocked else (2,)) or not _count(found.shape):
        wanted = "[R, K/32, 16] or [E, R, K/32, 16]" if kind.is_blocked else "[R, K/2]"
        raise UsageError(f"tensor '{data}' must have the shape {wanted}, but is {found}",
                         "stacks of matrices are read in the gpt-oss layouts alone")
    if not kind.is_blocked:
        return (sizes[0], sizes[1]), None
    if sizes[-1] != BLOCKS[kind.format]:
        raise UsageError(f"tensor '{data}' must have blocks of {BLOCKS[kind.format] // 2} bytes, "
                         f"but is {found}")
    return (sizes[-3], sizes[-2] * sizes[-1]), sizes[0] if rank == 4 else None


def _check_scales(headers: Headers, name: str, kind: Kind, shape: tuple[int, int],
                  experts: int | None) -> None:
    rows, columns = shape
    block = BLOCKS[kind.format]
    found = headers[name + kind.scales]
    leading = () if experts is None else (experts,)
    expected = (*leading, rows, columns // block)
    if columns % block or found.shape != expected:
        padded = (*leading, -(-rows // 128) * 128, -(-columns // block // 4) * 4)
        raise UsageError(
            f"tensor '{name + kind.scales}' must have the shape {list(expected)} for a weight of "
            f"{rows} x {columns}, but is {found}",
            "these may be tiled scales that were padded for a kernel: save the weights before they "
            "are loaded into kernels" if found.shape == padded else "")


def _check_configs(layout: Layout, entries: Mapping[str, Entry], configs: Sequence[Config]) -> None:
    note = f"if the tensors are right, state it: open(path, layout='{layout.name}')"
    first = next(iter(entries.values()))
    for config in configs:
        if config.method not in layout.methods:
            raise UsageError(f"tensor '{first.tensors[0]}' has the layout {layout.name}, but "
                             f"'{config.path}' says quant_method '{config.method}'", note)
        for entry in entries.values():
            known = config.words - _MIXED
            if known and entry.kind.words and not known & set(entry.kind.words):
                raise UsageError(f"tensor '{entry.tensors[0]}' has the format {entry.format}, but "
                                 f"'{config.path}' says {', '.join(sorted(known))}", note)
    for entry in entries.values() if not configs else ():
        if entry.format in layout.needs_config:
            raise UsageError(f"tensor '{entry.tensors[0]}' is {entry.format} of {layout.name} or "
                             "of another package with the same names, and no config.json decides",
                             note)


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
