"""Facts about a compiled program: functions, operands, types (docs/guides/libraries.md)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from .errors import UsageError

# The values of fp4_element_type and fp4_layout.
ELEMENTS = ("bf16", "f16", "f32", "f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E4M3FN", "f8E5M2",
            "f8E8M0FNU", "i64", "i8", "i32")
SCALE_LAYOUTS = ("linear", "tiled_128x4")
LAYOUTS = (*SCALE_LAYOUTS, "wgmma_rows")
_BYTES = {"i64": 8, "f32": 4, "i32": 4, "bf16": 2, "f16": 2}


@dataclasses.dataclass(frozen=True)
class Type:
    """A logical tensor.

    Attributes:
        shape: sizes in elements; -1 is dynamic. Columns of 4-bit elements count elements.
        element: the MLIR spelling, "bf16", "f4E2M1FN", "f8E4M3FN", ...
        layout: "linear", "tiled_128x4" for block scales as tensor cores read them, or "wgmma_rows"
            for prepacked weights whose rows have one power of two.
    """

    shape: tuple[int, ...]
    element: str
    layout: str = "linear"

    @property
    def item_bytes(self) -> int:
        """Bytes of an element of the buffer; two 4-bit elements are one byte."""
        return _BYTES.get(self.element, 1)

    @property
    def is_tiled(self) -> bool:
        """Returns True for block scales in tiles."""
        return self.layout == "tiled_128x4"

    @property
    def buffer_shape(self) -> tuple[int, ...]:
        """The shape of the array that has the bytes: [R, K/2] for 4-bit elements,
        [ceil(R/128), ceil(B/4), 512] for scales in the layout tiled_128x4."""
        if self.is_tiled and len(self.shape) == 2:
            rows, columns = self.shape
            return (rows if rows < 0 else -(-rows // 128),
                    columns if columns < 0 else -(-columns // 4), 512)
        if self.element != "f4E2M1FN" or not self.shape:
            return self.shape
        last = self.shape[-1]
        return (*self.shape[:-1], last if last < 0 else -(-last // 2))

    def __str__(self) -> str:
        sizes = "".join("?x" if size < 0 else f"{size}x" for size in self.shape)
        layout = "" if self.layout == "linear" else f", {self.layout}"
        return f"{sizes}{self.element}{layout}"


@dataclasses.dataclass(frozen=True)
class Operand:
    """An argument or a result. `dims` are the names that fp4.dims gives the dimensions of an
    argument; it is empty where there are none. The rows of one that is `strided` may have gaps
    between them."""

    name: str
    type: Type
    dims: tuple[str, ...] = ()
    strided: bool = False


@dataclasses.dataclass(frozen=True)
class Function:
    """A function that can be called: its name and its operands in order."""

    name: str
    arguments: tuple[Operand, ...]
    results: tuple[Operand, ...]

    def __str__(self) -> str:
        def join(operands: Sequence[Operand]) -> str:
            return ", ".join(f"{operand.name}: {operand.type}" for operand in operands)

        return f"{self.name}({join(self.arguments)}) -> ({join(self.results)})"


class Manifest:
    """The manifest of a program.

    Attributes:
        text: the JSON, schema 1.
        data: the same as dictionaries and lists.
        target: what the code is for, "sm_100a".
        functions: by name, in the order of the program.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.data: dict[str, Any] = json.loads(text)
        self.target: str = self.data["target"]
        self.functions = {item["name"]: _function(item) for item in self.data["functions"]}

    def find(self, name: str | None) -> Function:
        """The function `name`, or the only one."""
        names = ", ".join(self.functions)
        if name is None:
            if len(self.functions) == 1:
                return next(iter(self.functions.values()))
            raise UsageError(f"the program has {len(self.functions)} functions, and the call must "
                             "name one", f"pass function=..., one of {names}")
        if not isinstance(name, str):
            raise TypeError(f"the name of a function must be a str, but got {type(name).__name__}")
        if name not in self.functions:
            raise UsageError(f"the program has no function '{name}'", f"it has {names}")
        return self.functions[name]


def _operand(item: dict[str, Any]) -> Operand:
    kind = Type(tuple(item["shape"]), item["type"], item.get("layout", "linear"))
    return Operand(item["name"], kind, tuple(item.get("dims", ())), bool(item.get("strided")))


def _function(item: dict[str, Any]) -> Function:
    return Function(item["name"], tuple(map(_operand, item["arguments"])),
                    tuple(map(_operand, item["results"])))
