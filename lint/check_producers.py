#!/usr/bin/env python3
"""Finds operations of the pipe dialect that only one piece of the compiler makes, and that do not
say why they are operations of their own.

An operation that is made at two places or more serves several kernels. The description of any
other says "One producer," or "One producer:", and who or why. Prints what is missing and exits with
1, or prints a summary and exits with 0. The argument, if there is one, is another source tree.
"""
import collections
import pathlib
import re
import sys

from report import finish

ROOT = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).parent.parent).resolve()
DEFINITION = re.compile(r'^def Pipe_(\w+Op)\b[^"]*"(\w+)"(.*?)(?=^def |\Z)', re.M | re.S)
CREATION = re.compile(r"\b(?:(\w+)::)?(\w+Op)::create\(")
#: Dialects whose operations have the names of operations of pipe.
OTHERS = {"LLVM", "NVVM", "scf", "vector", "memref", "linalg", "gpu", "fp4"}


def operations():
    """(class, name, definition) of each operation."""
    for path in sorted((ROOT / "include/fp4/Dialect/Pipe/IR").glob("*.td")):
        yield from DEFINITION.findall(path.read_text())


def count_creations():
    """The number of places of the compiler that create each class."""
    return collections.Counter(
        cls for suffix in ("cpp", "h") for path in (ROOT / "lib").rglob(f"*.{suffix}")
        for dialect, cls in CREATION.findall(path.read_text()) if dialect not in OTHERS)


def main():
    created = count_creations()
    findings, few, count = [], 0, 0
    for cls, name, definition in operations():
        places = created[cls]
        says = re.search(r"\bOne\s+producer[,:]", definition)
        count, few = count + 1, few + (places < 2)
        if places < 2 and not says:
            findings.append(f"pipe.{name} is made at {places} place: say 'One producer, ...' in its description")
        elif places > 1 and says:
            findings.append(f"pipe.{name} is made at {places} places: it has more than one producer")
    return finish(findings, f"{count} operations of pipe, of which {few} have one producer and its reason")


if __name__ == "__main__":
    sys.exit(main())
