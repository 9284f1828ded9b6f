"""Detects the layout of a checkpoint, and the tensors that make up each quantized weight."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from ..errors import UsageError
from ..torch.recipes import BLOCKS
from ._files import Config, Header
from ._layouts import LAYOUTS, Kind, Layout, layout_of

Headers = Mapping[str, Header]

_MIXED = {"mixed-precision", "MIXED_PRECISION"}


@dataclasses.dataclass(frozen=True, repr=False)
class Entry:
    """A quantized weight of a checkpoint.

    Attributes:
        name: the tensors are called this and the endings of `kind`.
        shape: (R, K) in elements; with `experts` of each of them.
        experts: how many matrices the tensors hold, or None for one without an index.
        is_transposed: whether the tensors of each are [K/2, R] and [K/16, R].
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
    is_transposed: bool = False

    @property
    def format(self) -> str:
        """ "nvfp4" or "mxfp4" """
        return self.kind.format

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of everything that belongs to it."""
        names = [self.name + ending for ending in (self.kind.data, self.kind.scales)]
        names += [self.name + self.kind.level] if self.kind.level else []
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
    for name, kind in found[layout.name].items():
        entry = _entry(headers, layout, name, kind)
        entries[entry.name] = entry
    if not stated:
        _check_configs(layout, entries, configs)
    return layout, entries


def _names(headers: Headers, layout: Layout) -> dict[str, Kind]:
    """The tensors with the packed elements of quantized weights, and the first kind of such a
    name."""
    found: dict[str, Kind] = {}
    for kind in layout.kinds:
        for name, header in headers.items():
            if name not in found and _is_named(headers, name, header, kind):
                found[name] = kind
    return found


def _is_named(headers: Headers, name: str, header: Header, kind: Kind) -> bool:
    if not name.endswith(kind.data):
        return False
    if kind.data not in ("", ".weight"):
        return True
    if header.dtype not in kind.types:  # unquantized weights have such names too
        return False
    return bool(kind.data) or any(name + ending in headers for ending in (kind.scales, kind.level))


def _entry(headers: Headers, layout: Layout, data: str, named: Kind) -> Entry:
    name = data.removesuffix(named.data)
    kind = _kind(headers, layout, name, named)
    found = headers[data]
    if found.dtype not in kind.types:
        raise UsageError(f"tensor '{data}' must be {' or '.join(kind.types)}, two elements in a "
                         f"byte, but is {found}",
                         "it is quantized in another way; state another layout")
    scales = headers[name + kind.scales]
    is_transposed = _is_transposed(found, scales, kind)
    shape, experts = _shape(data, found, kind, is_transposed)
    _check_scales(name, kind, scales, shape, experts, is_transposed)
    if kind.level:
        _check_level(headers, name + kind.level, experts)
    given = name + kind.input
    changes = tuple(name + ending for ending in layout.changes if name + ending in headers)
    return Entry(name, shape, experts, kind, given if kind.input and given in headers else "",
                 changes, is_transposed)


def _kind(headers: Headers, layout: Layout, name: str, named: Kind) -> Kind:
    """The format of a weight, which the type of its block scales tells."""
    ending = named.scales
    kinds = [kind for kind in layout.kinds if kind.same_names(named)]
    scales = headers.get(name + ending)
    if scales is None:
        raise UsageError(f"tensor '{name + named.data}' must have block scales "
                         f"'{name + ending}', but the checkpoint has none",
                         f"the layout may not be {layout.name}; state another one")
    for kind in kinds:
        if scales.dtype in kind.types_of_scales:
            break
    else:
        types = " or ".join("/".join(kind.types_of_scales) for kind in kinds)
        raise UsageError(f"tensor '{name + ending}' must be {types}, but is {scales}",
                         "no conversion is made: it could round")
    levels = {other.level for other in kinds if other.level}
    for level in levels:
        if (name + level in headers) != (level == kind.level):
            verb = "must be there" if level == kind.level else "must not be there"
            raise UsageError(f"tensor '{name + level}' {verb} beside '{name + ending}' of "
                             f"{scales.dtype}, which are scales of {kind.format}",
                             "the scale of a tensor belongs to nvfp4 alone, and is never made up")
    return kind


def _is_transposed(data: Header, scales: Header, kind: Kind) -> bool:
    """Returns True if the tensors of a stack are [E, K/2, R] and [E, K/block, R], which ModelOpt
    writes for models whose experts multiply from the right. The sizes that differ decide."""
    if not kind.stacks or len(data.shape) != 3 or len(scales.shape) != 3 or data.dtype == "F4":
        return False
    rows = data.shape[2] == scales.shape[2]
    return rows and 2 * data.shape[1] == BLOCKS[kind.format] * scales.shape[1]


def _shape(data: str, found: Header, kind: Kind,
           is_transposed: bool) -> tuple[tuple[int, int], int | None]:
    """Rows and columns, and the experts. F4 tensors count elements, others bytes."""
    sizes = list(found.shape)
    if is_transposed:
        sizes = [sizes[0], sizes[2], sizes[1]]
    if found.dtype != "F4" and sizes:
        sizes[-1] *= 2
    rank = len(sizes)
    ranks = (3, 4) if kind.is_blocked else (2, 3) if kind.stacks else (2,)
    if rank not in ranks or not _count(found.shape):
        wanted = "[R, K/32, 16] or [E, R, K/32, 16]" if kind.is_blocked else (
            "[R, K/2] or [E, R, K/2]" if kind.stacks else "[R, K/2]")
        raise UsageError(f"tensor '{data}' must have the shape {wanted}, but is {found}",
                         "stacks of matrices are read in the layouts modelopt and gpt-oss")
    if not kind.is_blocked:
        return (sizes[-2], sizes[-1]), sizes[0] if rank == 3 else None
    if sizes[-1] != BLOCKS[kind.format]:
        raise UsageError(f"tensor '{data}' must have blocks of {BLOCKS[kind.format] // 2} bytes, "
                         f"but is {found}")
    return (sizes[-3], sizes[-2] * sizes[-1]), sizes[0] if rank == 4 else None


def _check_scales(name: str, kind: Kind, found: Header, shape: tuple[int, int],
                  experts: int | None, is_transposed: bool) -> None:
    rows, columns = shape
    block = BLOCKS[kind.format]
    leading = () if experts is None else (experts,)
    matrix = (columns // block, rows) if is_transposed else (rows, columns // block)
    expected = (*leading, *matrix)
    if columns % block or found.shape != expected:
        padded = (*leading, -(-rows // 128) * 128, -(-columns // block // 4) * 4)
        raise UsageError(
            f"tensor '{name + kind.scales}' must have the shape {list(expected)} for a weight of "
            f"{rows} x {columns}, but is {found}",
            "these may be tiled scales that were padded for a kernel: save the weights before they "
            "are loaded into kernels" if found.shape == padded else "")


def _check_level(headers: Headers, name: str, experts: int | None) -> None:
    level = headers[name]
    counts = {1} if experts is None else {1, experts}
    if level.dtype != "F32" or _count(level.shape) not in counts:
        wanted = "one F32" if experts is None else f"one F32, or {experts}, one for each expert"
        raise UsageError(f"tensor '{name}' must be {wanted}, but is {level}",
                         "a conversion could round it, and one scale belongs to one weight")


def _check_configs(layout: Layout, entries: Mapping[str, Entry], configs: Sequence[Config]) -> None:
    note = f"if the tensors are right, state it: open(path, layout='{layout.name}')"
    first = next(iter(entries.values()))
    for config in configs:
        if config.method not in layout.methods:
            raise UsageError(f"tensor '{first.tensors[0]}' has the layout {layout.name}, but "
                             f"'{config.path}' says quant_method '{config.method}'", note)
        for entry in entries.values():
            known = config.words - _MIXED
            expected = _lower(entry.kind.words)
            if known and expected and not _lower(known) & expected:
                raise UsageError(f"tensor '{entry.tensors[0]}' has the format {entry.format}, but "
                                 f"'{config.path}' says {', '.join(sorted(known))}", note)
    for entry in entries.values() if not configs else ():
        if entry.format in layout.needs_config:
            raise UsageError(f"tensor '{entry.tensors[0]}' is {entry.format} of {layout.name} or "
                             "of another package with the same names, and no config.json decides",
                             note)


def _lower(words: Iterable[str]) -> set[str]:
    """ModelOpt writes NVFP4, but mxfp4."""
    return {word.lower() for word in words}


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
