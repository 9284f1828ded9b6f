#!/usr/bin/env python3
"""Checks that the examples in the descriptions of fp4 and pipe operations and of fp4-fuse are tested.

Every ```mlir block of Fp4Ops.td must occur in test/Dialect/Fp4/ops.mlir, every one of Pipe*.td in
test/Dialect/Pipe/examples.mlir and every one of the passes on fp4 operations in test/Dialect/Fp4/fuse.mlir,
white space folded. Every program of examples/ must be named by a test and in README.md. Prints what
does not occur and exits with 1.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = {
    "include/fp4/Dialect/Fp4/IR/Fp4Ops.td": "test/Dialect/Fp4/ops.mlir",
    "include/fp4/Dialect/Fp4/Transforms/Passes.td": "test/Dialect/Fp4/fuse.mlir",
    "include/fp4/Dialect/Pipe/IR/Pipe*.td": "test/Dialect/Pipe/examples.mlir",
}


def fold(text):
    return " ".join(text.split())


def main():
    count, missing = 0, 0
    for source, test in SOURCES.items():
        tested = fold(re.sub(r"//.*", "", (ROOT / test).read_text()))
        text = "".join(path.read_text() for path in sorted(ROOT.glob(source)))
        for block in re.findall(r"```mlir\n(.*?)```", text, re.S):
            count += 1
            if fold(block) not in tested:
                missing += 1
                print(f"error: {test} does not contain: {fold(block)}")
    tests = "".join(path.read_text(errors="replace") for folder in ("test", "utils", "unittests")
                    for path in (ROOT / folder).rglob("*") if path.is_file())
    for example in sorted((ROOT / "examples").rglob("*.mlir")):
        name = str(example.relative_to(ROOT))
        count += 1
        for where, text in (("test", tests), ("README.md", (ROOT / "README.md").read_text())):
            if name not in text:
                missing += 1
                print(f"error: {where} does not name {name}")
    if not missing:
        print(f"{count} examples are tested")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
