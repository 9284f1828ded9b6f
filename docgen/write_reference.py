#!/usr/bin/env python3
"""Writes the generated pages of docs/reference.

  docgen/write_reference.py --build build           writes the pages
  docgen/write_reference.py --build build --check   exits with 1 where a page is not what would be written

The pages come from the .td files (mlir-tblgen), the docstrings, the headers of C, the help of the tools and
the tables of targets, routes and instructions. A build without the compiler writes and checks all pages but cli.md,
and says so.
"""
import argparse
import pathlib
import sys

from reference import constraints, languages, routes, tablegen, tools

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPERATIONS = ("Each operation with its syntax and an example, which a test parses and which shows the types. Attributes "
              "that the syntax does not name are in the dictionary of attributes. ")

PAGES = {
    "fp4-ops.md": lambda root, build: tablegen.operations(
        root, "fp4", "Operations of fp4", OPERATIONS + "A former "
        "spelling has an example alone. [Semantics](semantics.md) has what holds for all of them."),
    "fp4-attributes.md": lambda root, build: tablegen.attributes(
        root, "fp4", "Attributes and types of fp4", "Attributes of operations, functions, modules and tensor types, and bundles."),
    "pipe-ops.md": lambda root, build: tablegen.operations(
        root, "pipe", "Operations of pipe", OPERATIONS + "[The pipe dialect](../concepts/pipe.md) explains how they "
        "form a kernel."),
    "pipe-types.md": lambda root, build: tablegen.attributes(
        root, "pipe", "Attributes and types of pipe", "Schedules, roles, tiles, fragments and channels."),
    "passes.md": lambda root, build: tablegen.passes(root),
    "plan-fields.md": lambda root, build: tablegen.plan_fields(root),
    "routes.md": lambda root, build: routes.generate(root),
    "constraints.md": lambda root, build: constraints.generate(root),
    "python.md": lambda root, build: languages.python(root),
    "c.md": lambda root, build: languages.c(root),
    "targets.md": lambda root, build: tools.targets(root),
    "instructions.md": lambda root, build: tools.instructions(root),
    "cli.md": lambda root, build: tools.cli(root, build),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="tree with the tools, for cli.md")
    parser.add_argument("--pages", type=pathlib.Path, default=ROOT / "docs/reference", help="folder of the pages")
    parser.add_argument("--check", action="store_true", help="write nothing, and exit with 1 where a page is stale")
    options, stale = parser.parse_args(), []
    for name, make in PAGES.items():
        text, path = make(ROOT, options.build), options.pages / name
        if text is None:
            print(f"{name} is left out: {options.build} has no compiler")
        elif options.check and (not path.exists() or path.read_text() != text):
            stale.append(name)
        elif not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for name in stale:
        print(f"error: {name} is stale\n  note: run docgen/write_reference.py --build {options.build}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
