#!/usr/bin/env python3
"""Finds operations of the pipe dialect that only one piece of the compiler makes, and that do not
say why they are operations of their own.

An operation that is made at two places or more serves several kernels. The description of any
other says "One producer," or "One producer:", and who or why. Prints what is missing and exits with
1, or prints a summary and exits with 0. The argument, if there is one, is another source tree.
"""
import pathlib
import re
import sys

from report import finish

ROOT = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).parent.parent).resolve()
DEFINITION = re.compile(r'^def Pipe_(\w+Op)\b[^"]*"(\w+)"(.*?)(?=^def |\Z)', re.M | re.S)
#: Operations of other dialects that are called alike.
OTHERS = r"(?<!\bLLVM::)(?<!\bNVVM::)(?<!\bscf::)(?<!\bvector::)(?<!\bmemref::)(?<!\blinalg::)(?<!\bgpu::)(?<!\bfp4::)"


def operations():
    """(class, name, definition) of each operation."""
    for path in sorted((ROOT / "include/fp4/Dialect/Pipe/IR").glob("*.td")):
        yield from DEFINITION.findall(path.read_text())


def main():
    code = "\n".join(path.read_text() for suffix in ("cpp", "h") for path in sorted((ROOT / "lib").rglob(f"*.{suffix}")))
    findings, few, count = [], 0, 0
    for cls, name, definition in operations():
        places = len(re.findall(rf"{OTHERS}\b{cls}::create\(", code))
        says = re.search(r"\bOne\s+producer[,:]", definition)
        count, few = count + 1, few + (places < 2)
        if places < 2 and not says:
            findings.append(f"pipe.{name} is made at {places} place: say 'One producer, ...' in its description")
        elif places > 1 and says:
            findings.append(f"pipe.{name} is made at {places} places: it has more than one producer")
    return finish(findings, f"{count} operations of pipe, of which {few} have one producer and its reason")


if __name__ == "__main__":
    sys.exit(main())
