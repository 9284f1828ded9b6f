#!/usr/bin/env python3
"""Writes docs/reference/hazards.md, the page of the rules of the hazard checker.

  docgen/reference_hazards.py           writes the page
  docgen/reference_hazards.py --check   exits with 1 if the page is not what it would write

The rules are those of include/fp4/Sim/HazardRules.def, from which --explain prints too, in the order of
that table. --root reads and writes another checkout.
"""
import argparse
import pathlib
import re
import sys
import textwrap

TABLE, PAGE = "include/fp4/Sim/HazardRules.def", "docs/reference/hazards.md"
STRING = r'"(?:[^"\\]|\\.)*"'
RULE = re.compile(rf"^FP4_HAZARD\(\w+,((?:\s*{STRING}\s*,?)+)\)$", re.M)
FIELD = re.compile(rf"{STRING}(?:\s*{STRING})*")
STRICT_ONLY = "Strict mode only. "
HEAD = """\
<!-- docgen/reference_hazards.py writes this page -->

# Hazards

A hazard is a missing order between two accesses. The simulator finds hazards from the
happens-before relation of a run, whether or not the run computes a wrong result. The first line of
a report ends with the name of its rule in brackets, and the tools end with code 6.

`fp4-sim run --explain RULE` prints a rule, as do `fp4-run` and `fp4-runner`.
[The guide to debugging](../guides/debug-a-kernel.md) shows how to read a report.
[The memory model](simulator.md#default-and-strict) says what each mode accepts.
"""


def text_of(strings):
    """The value of adjacent string literals."""
    parts = re.findall(STRING, strings)
    return "".join(part[1:-1].replace("\\n", "\n").replace('\\"', '"') for part in parts)


def rules(table):
    """(name, summary, text, remedy) of each rule."""
    found = [tuple(text_of(field) for field in FIELD.findall(match)) for match in RULE.findall(table)]
    for rule in found:
        if len(rule) != 4:
            sys.exit(f"error: {TABLE}: rule '{rule[0]}' must have 4 texts, but has {len(rule)}")
    count = len(re.findall(r"^FP4_HAZARD\(", table, re.M))
    if len(found) != count:
        sys.exit(f"error: {TABLE}: {count} rules begin, but {len(found)} can be read")
    return found


def wrapped(text):
    return textwrap.fill(" ".join(text.split()), 100, break_on_hyphens=False, break_long_words=False)


def sentence(text):
    return text[0].upper() + text[1:] + "."


def section(name, summary, text, remedy):
    strict = text.startswith(STRICT_ONLY)
    mode = " Only `--check=strict` reports it." if strict else ""
    return "\n".join((f"\n## {name}\n", wrapped(f"**{sentence(summary)}**{mode}") + "\n",
                      wrapped(text.removeprefix(STRICT_ONLY)) + "\n", wrapped(f"Remedy: {remedy}."), ""))


def page(table):
    return HEAD + "".join(section(*rule) for rule in rules(table))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    made, path = page((options.root / TABLE).read_text()), options.root / PAGE
    if not options.check:
        path.write_text(made)
    elif not path.is_file() or path.read_text() != made:
        print(f"{PAGE} is not what {TABLE} says\nnote: run docgen/reference_hazards.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
