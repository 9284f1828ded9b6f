#!/usr/bin/env python3
"""Compares the simulator with test/Sim/ptx-isa.txt: what PTX has, and which of it must be accepted
or refused.

  validation/ptx_coverage.py                 checks the simulator (bin/fp4-sim under --build)
  validation/ptx_coverage.py --ptxas ptxas   also asks ptxas whether each form exists
"""
import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REGISTERS = "".join(f".reg .{t} %{n}<16>; " for t, n in (("pred", "p"), ("b8", "b"), ("b16", "h"), ("b32", "r"),
                                                        ("b64", "d"), ("b128", "q"), ("f32", "f"), ("f64", "e")))
VARIABLES = (".global .align 16 .b8 gl[64]; .const .align 16 .b8 co[64];\n"
             ".visible .func (.reg .b32 result) fn(.reg .b32 x) { mov.b32 result, x; ret; }\n")
LOCALS = ".shared .align 128 .b8 sm[1024]; .local .align 16 .b8 lo[64];"


class Form:
    """One instruction of the list."""

    def __init__(self, section, target, text, words, line):
        self.section, self.target, self.text, self.words, self.line = section, target, text, words, line

    @property
    def spelling(self):
        """The opcode: without operands, guard and labels."""
        return re.sub(r"^@!?%p\d+ ", "", self.text).split(" ")[0]


def read(path):
    section, forms = None, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("@ "):
            section = line[2:]
        elif found := re.match(r"(\d+)([|!]) (.*)$", line):
            target, kind, text = found.groups()
            text, _, words = text.rpartition(" | ") if kind == "!" else (text, "", None)
            parts = [text] if ": " in text or text.startswith("{") else text.split("; ")
            forms += [Form(section, target, part.strip().rstrip(";"), words, number) for part in parts]
    return forms


def kernel(form, name):
    end = "" if form.text.endswith("}") and form.text.startswith("{") else ";" # a block is a statement
    return f".visible .entry {name}(.param .align 64 .b8 a0[128]) {{\n{REGISTERS}{LOCALS}\n{form.text}{end}\nL:\nret;\n}}\n"


def header(target):
    return f".version 9.0\n.target sm_{target}a\n.address_size 64\n{VARIABLES}"


def simulator(tool, forms):
    """The error of each form, or None: every form is a kernel of one file."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(header("100") + "".join(kernel(form, f"k{i}") for i, form in enumerate(forms)))
        file.flush()
        run = subprocess.run([tool, "check", file.name], capture_output=True, text=True)
        output = run.stdout
        if "kernels" not in output:
            sys.exit(f"error: {tool} cannot read the list:\n{run.stdout}{run.stderr}")
    with_lines = [0] + [i for i, form in enumerate(forms) for _ in range(6)]
    first = header("100").count("\n")
    errors = {}
    for line, message in re.findall(r"^error: \S+\.ptx:(\d+):\d+: (.*)$", run.stderr, re.M):
        errors[with_lines[int(line) - first]] = message
    refused = {int(k) for k in re.findall(r"^  k(\d+): cannot run", output, re.M)}
    return [errors.get(i, "refused") if i in refused else None for i in range(len(forms))]


def check_ptxas(tool, form):
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(header(form.target) + kernel(form, "k"))
        file.flush()
        run = subprocess.run([tool, f"-arch=sm_{form.target}a", file.name, "-o", "/dev/null"], capture_output=True, text=True)
        return None if run.returncode == 0 else (run.stdout + run.stderr).strip().splitlines()[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--fp4-sim", type=Path)
    parser.add_argument("--ptxas")
    o = parser.parse_args()
    forms, problems = read(ROOT / "test/Sim/ptx-isa.txt"), []
    for form, error in zip(forms, simulator(o.fp4_sim or o.build / "bin/fp4-sim", forms)):
        if form.words is None and error:
            problems.append(f"ptx-isa.txt:{form.line}: refused: {form.text}: {error}")
        elif form.words is not None and (not error or form.words not in error):
            problems.append(f"ptx-isa.txt:{form.line}: {form.text}: '{form.words}' expected, but got {error}")
    if o.ptxas:
        problems += [f"ptx-isa.txt:{form.line}: ptxas: {form.text}: {error}" for form in forms
                     if form.words is None and (error := check_ptxas(o.ptxas, form))]
    print("\n".join(problems + [f"{len(forms)} forms, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
