#!/usr/bin/env python3
"""Checks that the examples in the descriptions of fp4 operations parse.

Every ```mlir block of Fp4Ops.td must occur in test/Dialect/Fp4/ops.mlir, white space folded: that test
parses, verifies and prints it. Prints what does not occur and exits with 1.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "include/fp4/Dialect/Fp4/IR/Fp4Ops.td"
TEST = ROOT / "test/Dialect/Fp4/ops.mlir"


def fold(text):
    return " ".join(text.split())


def main():
    tested = fold(re.sub(r"//.*", "", TEST.read_text()))
    examples = [fold(e) for e in re.findall(r"```mlir\n(.*?)```", SOURCE.read_text(), re.S)]
    missing = [example for example in examples if example not in tested]
    for example in missing:
        print(f"error: {TEST.name} does not contain: {example}")
    if not missing:
        print(f"{len(examples)} examples are tested")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
