#!/usr/bin/env python3
"""Records what the compiler's kernels cost, and compares two records.

  validation/kernel_table.py record before.json            builds in build/, every program below
  validation/kernel_table.py record after.json --tools=DIR --step=20 --match=examples
  validation/kernel_table.py compare before.json after.json

The programs are examples/*.mlir, benchmarks/*.mlir and every STEPth program of validation/sweep.py
and of validation/sweep_quantize.py, for sm_90a and sm_100a. For each kernel the record has the
number of PTX instructions and, where there is a ptxas ($FP4_PTXAS or PATH), of machine instructions
(trailing NOPs left out), its registers and the bytes that it spills. Programs for which the target
has no kernel are not in the record.

`compare` prints each kernel that changed, and the totals. The command fails if a kernel needs more
of anything, or is gone.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import sweep
import sweep_quantize
import sweeping

ROOT = sweeping.ROOT
TARGETS = ["sm_90a", "sm_100a"]
NUMBERS = ["ptx", "sass", "registers", "spill_bytes"]
NOP = 0x918  # the low 12 bits of the machine instruction
NO_KERNEL = [*sweep_quantize.NO_KERNEL, "expects a target with", "has no tcgen05"]


def programs(step):
    """(target, name, text or path)."""
    files = [*sorted((ROOT / "examples").glob("*.mlir")), *sorted((ROOT / "benchmarks").glob("*.mlir"))]
    for target in TARGETS:
        for file in files:
            yield target, f"{file.parent.name}/{file.stem}", file
    products = dict.fromkeys((fmt, result, operands, plan, "?" if rows == "dynamic" else m, n, k)
                             for fmt, result, operands, rows, plan, n, k, m
                             in sweeping.covering(sweep.all_cases()))
    for key in list(products)[::step]:
        yield "sm_100a", "sweep/" + "_".join(map(str, key)), sweep.program(*key)
    cases = sweeping.sampled_covering(sweep_quantize.PARAMETERS,
                                      lambda case: sweep_quantize.Case(case).valid(), sweep_quantize.wanted)
    for values in list(dict.fromkeys(cases))[::step]:
        case = sweep_quantize.Case(values)
        yield case.target, "sweep_quantize/" + "_".join(map(str, values)), case.program()
    for target, what, functions in sweep_quantize.others():
        yield target, f"sweep_quantize/{what}", "".join(functions[::step])


def count_ptx(text):
    """Statements that are no directives, labels or comments."""
    return len(re.findall(r"^\s*(?:@!?%p\d+\s+)?[a-z][\w.:]*\b[^;{}]*(?:\{[^;]*)?;", text, re.MULTILINE))


def count_sass(cubin):
    """Instructions of 16 bytes in the .text sections, without the NOPs at their ends."""
    offset, = struct.unpack_from("<Q", cubin, 0x28)
    size, number, names = struct.unpack_from("<HHH", cubin, 0x3A)
    header = lambda i: struct.unpack_from("<IIQQQQ", cubin, offset + i * size)
    strings = header(names)[4]
    total = 0
    for i in range(number):
        name, _, _, _, start, length = header(i)
        if not cubin[strings + name:].startswith(b".text."):
            continue
        words = [struct.unpack_from("<Q", cubin, start + at)[0] & 0xFFF for at in range(0, length, 16)]
        while words and words[-1] == NOP:
            words.pop()
        total += len(words)
    return total


def assemble(ptxas, target, file):
    cubin = file.with_suffix(".cubin")
    run = subprocess.run([ptxas, "-v", f"-arch={target}", file, "-o", cubin], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr)
    spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", run.stderr))
    registers = max(int(n) for n in re.findall(r"Used (\d+) registers", run.stderr))
    return {"sass": count_sass(cubin.read_bytes()), "registers": registers, "spill_bytes": spills}


class Recorder:
    def __init__(self, tools, scratch):
        self.tools, self.scratch = tools, scratch
        self.ptxas = os.environ.get("FP4_PTXAS") or shutil.which("ptxas")
        self.known = {}

    def kernels(self, index, target, name, source):
        """{target/program/kernel: numbers} of one program."""
        folder = self.scratch / str(index)
        folder.mkdir()
        if isinstance(source, str):
            (folder / "program.mlir").write_text(source)
            source = folder / "program.mlir"
        run = subprocess.run([self.tools / "fp4-runner", source, f"--target={target}", "--emit=ptx", "-o", folder],
                             capture_output=True, text=True)
        if run.returncode and any(words in run.stderr for words in NO_KERNEL):
            return {}
        if run.returncode:
            raise RuntimeError(f"{name} for {target}: {run.stderr}")
        return {f"{target}/{name}/{file.stem}": self.numbers(target, file)
                for file in sorted(folder.glob("*.ptx"))}

    def numbers(self, target, file):
        text = file.read_text()
        key = target + hashlib.sha256(text.encode()).hexdigest()
        if key not in self.known:
            more = assemble(self.ptxas, target, file) if self.ptxas else {}
            self.known[key] = {"ptx": count_ptx(text), **more}
        return self.known[key]


def record(options):
    chosen = [program for program in programs(options.step) if options.match in f"{program[0]}/{program[1]}"]
    table = {}
    with tempfile.TemporaryDirectory() as scratch:
        recorder = Recorder(options.tools, pathlib.Path(scratch))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for kernels in pool.map(recorder.kernels, range(len(chosen)), *zip(*chosen)):
                table.update(kernels)
    options.out.write_text(json.dumps(table, indent=1) + "\n")
    print(f"{len(table)} kernels of {len(chosen)} programs in {options.out}")
    return 0


def compare(options):
    before, after = (json.loads(path.read_text()) for path in (options.before, options.after))
    worse = []
    for kernel, old in before.items():
        new = after.get(kernel)
        changed = [] if new is None else [n for n in NUMBERS if old.get(n) != new.get(n)]
        if new is None or any(new.get(n, 0) > old.get(n, 0) for n in changed):
            worse.append(kernel)
        if new is None or changed:
            print(f"{kernel}: " + (", ".join(f"{n} {old.get(n)} -> {new.get(n)}" for n in changed) or "is gone"))
    common = before.keys() & after.keys()
    for target in TARGETS:
        mine = [kernel for kernel in common if kernel.startswith(target + "/")]
        totals = [f"{n} {sum(t[k].get(n, 0) for k in mine)}" for t in (before, after) for n in NUMBERS]
        print(f"{target}: {len(mine)} kernels; before: {', '.join(totals[:len(NUMBERS)])}; "
              f"after: {', '.join(totals[len(NUMBERS):])}")
    if new_kernels := after.keys() - before.keys():
        print(f"{len(new_kernels)} kernels are new")
    if worse:
        print(f"error: {len(worse)} kernels must need no more than before, but do: {', '.join(worse[:5])}",
              file=sys.stderr)
    return 1 if worse else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    recording = verbs.add_parser("record")
    recording.add_argument("out", type=pathlib.Path)
    recording.add_argument("--tools", type=pathlib.Path, default=ROOT / "build" / "bin", metavar="DIR")
    recording.add_argument("--step", type=int, default=5, help="take every STEPth program of the sweeps (default: 5)")
    recording.add_argument("--match", default="", help="only programs whose target/name contains this")
    recording.add_argument("--jobs", type=int, default=2)
    recording.set_defaults(run=record)
    comparing = verbs.add_parser("compare")
    comparing.add_argument("before", type=pathlib.Path)
    comparing.add_argument("after", type=pathlib.Path)
    comparing.set_defaults(run=compare)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
