#!/usr/bin/env python3
"""Mutates the synchronization of every kind of kernel that the compiler emits
(utils/kernel_kinds.py, utils/mutate.py).

  utils/mutate_all.py                 all kinds; a table at the end
  utils/mutate_all.py --only=hadamard those whose name contains the text
  utils/mutate_all.py --limit=8       a fixed sample of each
  utils/mutate_all.py --list          the names, and how many mutants each has

Prints a row of the table as soon as a kind has been run. Exit code 1 when a mutant survives that is
not equivalent, or a kind does not compile.
"""
import pathlib
import subprocess
import sys
import tempfile

import kernel_kinds
import mutate


def compiled(kind, scratch, options):
    source = scratch / "program.mlir"
    source.write_text(kind.text)
    shape = [f"--shape={kind.shape}"] if kind.shape and not kind.rows else []
    return mutate.compile_program(options.build / "bin", scratch, source,
                                  [*shape, *kind.options, f"--target={kind.target}"])


def runs_of(kind):
    """Arguments of fp4-run: once for each number of rows."""
    if kind.rows:
        return [[f"--shape={rows}"] for rows in kind.rows]
    return [[f"--shape={str(kind.shape).split(',')[0]}"] if kind.shape else []]


def judge(kind, options):
    with tempfile.TemporaryDirectory(prefix="fp4-mutate-") as folder:
        scratch = pathlib.Path(folder)
        library = compiled(kind, scratch, options)
        if options.list:
            return len(list(mutate.mutants(library.read_bytes())))
        options.runs = runs_of(kind)
        return mutate.tally(library, scratch, options)


def main():
    arguments = mutate.parser(__doc__)
    arguments.add_argument("--only", default="", help="kinds whose name contains this text")
    arguments.add_argument("--list", action="store_true", help="print the kinds")
    options = arguments.parse_args()
    failed = 0
    chosen = [kind for kind in kernel_kinds.kinds()
              if options.only in f"{kind.name}, {kind.target}"]
    print("| kind of kernel | target | mutants | killed | equivalent | survived |")
    print("|---|---|---|---|---|---|")
    for kind in chosen:
        try:
            result = judge(kind, options)
        except (RuntimeError, subprocess.CalledProcessError) as failure:
            failed += 1
            print(f"{kind.name}, {kind.target}: {failure}", flush=True)
            continue
        if options.list:
            print(f"{kind.name}, {kind.target}: {result}", flush=True)
            continue
        result.print(options)
        failed += bool(result.survivors)
        row = (kind.name, kind.target, len(result.chosen), result.killed(), len(result.equivalent),
               len(result.survivors))
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
