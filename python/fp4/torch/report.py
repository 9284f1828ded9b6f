"""The report of a conversion: the fate of each layer of a model."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True)
class LayerReport:
    """A layer that multiplies by a weight.

    Attributes:
        name: in the model; a layer that has several names has a line for each.
        kind: the class that the layer had.
        format: of the weight that it got, such as "nvfp4"; "" if it stays as it is.
        bytes_before, bytes_after: of its parameters and buffers. A weight that other layers share
            counts as theirs.
        reason: for which it stays, or what else is to be known.
        is_expected: the caller or the documentation says that it stays.
    """

    name: str
    kind: str
    format: str
    bytes_before: int
    bytes_after: int
    reason: str = ""
    is_expected: bool = True


@dataclasses.dataclass(frozen=True)
class Report:
    """The layers of a model, in its order; print it for a table.

    Attributes:
        layers: a LayerReport of each.
    """

    layers: tuple[LayerReport, ...]

    @property
    def names(self) -> list[str]:
        """Names of the layers that were converted."""
        return [layer.name for layer in self.layers if layer.format]

    @property
    def kept(self) -> dict[str, str]:
        """The layers that stay as they are, and why."""
        return {layer.name: layer.reason for layer in self.layers if not layer.format}

    @property
    def bytes_before(self) -> int:
        """Bytes of the parameters and buffers of all layers before the conversion."""
        return sum(layer.bytes_before for layer in self.layers)

    @property
    def bytes_after(self) -> int:
        """Bytes after the conversion, likewise."""
        return sum(layer.bytes_after for layer in self.layers)

    def __iter__(self) -> Iterator[LayerReport]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, name: str) -> LayerReport:
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise KeyError(name)

    def __str__(self) -> str:
        lines = [f"{len(self.names)} of {len(self)} layers in 4 bits, {self.bytes_before:,} to "
                 f"{self.bytes_after:,} bytes"]
        width = max((len(layer.name) for layer in self), default=0)
        for layer in self:
            what = layer.format or "as it is"
            sizes = f"{layer.bytes_before:>13,} {layer.bytes_after:>13,}"
            reason = f"  {layer.reason}" if layer.reason else ""
            lines.append(f"  {layer.name:{width}}  {layer.kind:16} {what:10} {sizes}{reason}")
        return "\n".join(lines)

    def warn(self, function: str, level: int) -> None:
        """One warning that names what stays although nobody asked for it."""
        left = [layer for layer in self if not layer.format and not layer.is_expected]
        if not left:
            return
        first = "; ".join(f"'{layer.name}' {layer.reason}" for layer in left[:3])
        more = f"; and {len(left) - 3} more" if len(left) > 3 else ""
        layers = "layer" if len(left) == 1 else "layers"
        warnings.warn(f"{function} left {len(left)} {layers} as they are: {first}{more}. The "
                      "report that it returns has all of them", stacklevel=level + 1)
