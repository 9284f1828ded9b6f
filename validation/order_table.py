#!/usr/bin/env python3
"""Runs every kind of kernel (validation/kernel_kinds.py) in every order that makes a difference
(--policy exhaustive, docs/reference/simulator.md), and prints a table.

  validation/order_table.py                 all programs
  validation/order_table.py --only=GEMM  those whose name contains the text
  validation/order_table.py --list          the names
  validation/order_table.py --run=FILE      an fp4-run other than build/bin/fp4-run
  validation/order_table.py --document=notebook/orders.md   writes the table into the page
  validation/order_table.py --only=GEMM --add --document=notebook/orders.md   adds rows that it
      does not have

A row of a matmul has the kernel with the most steps, and a row of quantizers all kernels that
differ; the seconds are those of all, and of all distributions of operands that matter. Exit code 1
when an order fails. A kernel whose orders did not all run says so; a program that did not end
within --seconds says that.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

from kernel_kinds import BOTH, NEAR, Kind, kinds, quantizer
from mutate_all import revision

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "docgen"))
from written_tables import head, lines_of, row, write

ROOT = pathlib.Path(__file__).resolve().parent.parent


def meetings():
    """Quantizers whose first CTA waits for the others, or all CTAs for each other."""
    for name, case in {
            "quantize rows": ("rowwise", "row", "none", NEAR, "tiled", "one", 256, 128),  # 4 CTAs
            "quantize columns": ("columnwise", "row", "none", NEAR, "linear", "one", 144, 272),  # 5 CTAs take the amax
            "quantize both": ("both", "row", "none", NEAR, "mixed", "one", 144, 272),
            "quantize blocks of 16 x 16": ("both", "square", "none", NEAR, "mixed", "one", 144, 272),
            "quantize groups of rows": ("both", "row", "none", NEAR, "mixed", "blocks", 0, 144),
            "Hadamard in registers, 16": ("both", "row", "16,16", "element", "mixed", "one", 64, 384),  # 3 CTAs
            "Hadamard across lanes, 128 and 32": ("both", "row", "128,32", NEAR, "mixed", "one", 64, 384)}.items():
        for target in BOTH:
            yield Kind(name, quantizer("sm_100a", *case), target, case[-2] or None)


def cases():
    """All kinds, of these quantizers those of fewer CTAs; a launch has one number of rows."""
    smaller = {case.name: case for case in meetings()}
    yield from meetings()
    for kind in kinds():
        if kind.name not in smaller:
            yield kind._replace(shape=kind.rows[0] if kind.rows else kind.shape, rows=None)


def explore(tools, case, options):
    """The launches; a text when there are none."""
    with tempfile.TemporaryDirectory(prefix="fp4-orders-") as folder:
        source, library = pathlib.Path(folder, "program.mlir"), pathlib.Path(folder, "program.so")
        source.write_text(case.text)
        shape = [f"--shape={case.shape}"] if case.shape else []
        compiled = subprocess.run([tools / "fp4-runner", source, *shape, *case.options, f"--target={case.target}",
                                   "--emit=so", "-o", library, "--ptxas=none"], capture_output=True, text=True)
        if compiled.returncode:
            return compiled.stderr
        command = [options.run or tools / "fp4-run", library, *shape, "--device=sim", "--check=strict",
                   "--policy=exhaustive", f"--max-orders={options.most}", "--no-verify", "--json"]
        launches = []
        for dist in [[f"--dist={dist}"] for dist in case.dists] or [[]]:
            try:
                run = subprocess.run([*command, *dist], capture_output=True, text=True, timeout=options.seconds)
            except subprocess.TimeoutExpired:
                return f"did not end within {options.seconds} s"
            if run.returncode not in (0, 7):
                return run.stderr
            launches += json.loads(run.stdout)["orders"]
        return launches


def row_of(case, launches):
    kernels = list(dict.fromkeys((launch["orders"], launch["longest"], launch["commuting_pairs"]) for launch in launches))
    if "fp4.matmul " in case.text:
        kernels = [max(kernels, key=lambda kernel: kernel[1])]
    columns = (", ".join(map(str, column)) for column in zip(*kernels))
    complete = "complete" if all(launch["complete"] for launch in launches) else "not complete"
    return row(case.name, case.target, *columns, f"{sum(launch['seconds'] for launch in launches):.1f}", complete)


def with_added(page, lines, when):
    """The table of the document with those of `lines` whose program and target it does not have."""
    before = lines_of(page, "order_table.py")
    written, notes = before[:before.index("")], before[before.index("") + 1:]
    names = {tuple(line.split(" | ")[:2]) for line in written}
    added = [line for line in lines if tuple(line.split(" | ")[:2]) not in names]
    note = f"Rows were added: {when}"
    return [*written, *added, "", *notes, *([note] if added and note not in notes else [])]


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    arguments.add_argument("--run", help="the fp4-run to use")
    arguments.add_argument("--only", default="", help="programs whose name contains this text")
    arguments.add_argument("--most", type=int, default=200, help="orders of each launch (200)")
    arguments.add_argument("--seconds", type=float, default=600, help="time of each program (600)")
    arguments.add_argument("--list", action="store_true", help="print the programs")
    arguments.add_argument("--document", type=pathlib.Path, help="text that gets the table")
    arguments.add_argument("--add", action="store_true", help="keep the rows that the document has")
    options = arguments.parse_args()
    chosen = [case for case in cases() if options.only in case.name]
    if options.list:
        print("\n".join(f"{case.name}, {case.target}" for case in chosen))
        return 0
    lines = head("program", "target", "orders", "steps", "pairs that commute", "s", "")
    print(*lines, sep="\n")
    failed = 0
    for case in chosen:
        launches = explore(options.build / "bin", case, options)
        if isinstance(launches, str):
            failed += 1
            print(f"{case.name}, {case.target}: {launches.strip()}", file=sys.stderr, flush=True)
            continue
        lines.append(row_of(case, launches))
        print(lines[-1], flush=True)
    if options.document:
        today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
        when = f"({today}, revision {revision()}.)"
        made = with_added(options.document, lines, when) if options.add else [*lines, "", when]
        write(options.document, "order_table.py", made)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
