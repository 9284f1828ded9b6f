"""Pieces of MLIR text for fp4.builder: types, attributes and names, from checked Python values."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from .errors import UsageError
from .manifest import Type

T = TypeVar("T")

_WORD = re.compile(r"[A-Za-z_]\w*", re.A)
_RECIPE = re.compile(r"[\w\s=.,+-]+", re.A)
_PLAIN = frozenset(range(0x20, 0x7f)) - set(b'"\\')


def check(value: object, what: str, kind: type[T]) -> T:
    """`value`, or a TypeError where it is not a `kind`."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "aeio" else "a"
        raise TypeError(f"{what} must be {article} {kind.__name__}, but got "
                        f"{type(value).__name__}")
    return value


def integer(value: object, what: str) -> int:
    """An int of 64 bits."""
    number = operator.index(check(value, what, int))
    if not -2**63 <= number < 2**64:
        raise UsageError(f"{what} must have 64 bits, but got {number}")
    return number


def word(value: object, what: str) -> str:
    """An enumerator."""
    if not _WORD.fullmatch(check(value, what, str)):
        raise UsageError(f"{what} must be a word, but got {value!r}")
    return str(value)


def words(values: Iterable[object], what: str) -> str:
    """Enumerators, separated by commas."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{what} must be a list of str, but got {type(values).__name__}")
    return ", ".join(word(value, f"a step of {what}") for value in values)


def one_of(value: object, what: str, known: Sequence[str]) -> str:
    """Checks that a word is one of `known`; a UsageError lists them."""
    if check(value, what, str) not in known:
        raise UsageError(f"unknown {what} {value!r}", f"there are {', '.join(known)}")
    return str(value)


def identifier(name: str) -> bool:
    """Returns True if MLIR accepts `name` after % and @ as it is."""
    return bool(_WORD.fullmatch(name))


def quote(value: object, what: str) -> str:
    """A string of MLIR, which may have any characters of Unicode."""
    try:
        data = check(value, what, str).encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{what} must be Unicode, but got {value!r}: {error.reason}") from error
    return '"' + "".join(chr(b) if b in _PLAIN else f"\\{b:02X}" for b in data) + '"'


def tensor(kind: Type) -> str:
    """The type of a tensor."""
    sizes = "".join("?x" if size < 0 else f"{size}x" for size in kind.shape)
    layout = "" if kind.layout == "linear" else f", #fp4.scale_layout<{kind.layout}>"
    return f"tensor<{sizes}{kind.element}{layout}>"


def function_type(operands: Iterable[Type], results: Iterable[Type]) -> str:
    """"(A, B) -> (C, D)", the parentheses of one result left out."""
    made = [tensor(kind) for kind in results]
    outputs = made[0] if len(made) == 1 else f"({', '.join(made)})"
    return f"({', '.join(map(tensor, operands))}) -> {outputs}"


def recipe(name: str, text: str | None) -> dict[str, str]:
    """The attribute `name` for a recipe; none where there is no text."""
    if text is None:
        return {}
    if not _RECIPE.fullmatch(check(text, "'recipe'", str)):
        raise UsageError(f"'recipe' must be a name and decisions, but got {text!r}",
                         "docs/reference/recipes.md lists the recipes")
    return {name: f"#fp4.recipe<{text}>"}


def flags(**given: bool) -> dict[str, str]:
    """Unit attributes for the names that are true."""
    return {name: "" for name, value in given.items() if check(value, f"'{name}'", bool)}


def dictionary(attributes: Mapping[str, str]) -> str:
    """" {a = 1, b}"; empty without attributes."""
    parts = [f"{name} = {value}" if value else name for name, value in attributes.items()]
    return f" {{{', '.join(parts)}}}" if parts else ""
