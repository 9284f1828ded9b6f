#!/usr/bin/env python3
"""Compares the simulator with test/Sim/ptx-isa.txt: what PTX has, and which of it must be accepted
or refused, and why. Each instruction of test/Sim/ptx-index.txt must have a form there, and each row
of lib/Sim/Decode/Unsupported.def and of the tables of opcodes must be met by one.

  validation/ptx_coverage.py                 checks the simulator (bin/fp4-sim under --build)
  validation/ptx_coverage.py --ptxas ptxas   also asks ptxas about each form of its PTX
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


TABLE = "lib/Sim/Decode/Unsupported.def"


class Form:
    """One instruction of the list; `reason` is the name of that of a refusal, or None."""

    def __init__(self, section, target, text, reason, line):
        self.section, self.target, self.text, self.reason, self.line = section, target, text, reason, line

    @property
    def spelling(self):
        """The opcode: without operands, guard and labels."""
        return re.sub(r"^@!?%p\d+ ", "", self.text).split(" ")[0]

    @property
    def register(self):
        """The special register, of a form of one."""
        return found[0] if self.spelling.startswith("mov.") and (found := re.search(r"%(?![a-z]\d)\w+", self.text)) else None

    @property
    def version(self):
        """The version of PTX that brought the form: 9.0 stands for all before, too."""
        return self.section.rpartition(" ")[2] if self.section.startswith("PTX ISA ") else "9.0"


def read(path):
    section, forms = None, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("@ "):
            section = line[2:]
        elif found := re.match(r"(\d+)([|!]) (.*)$", line):
            target, kind, text = found.groups()
            text, _, reason = text.rpartition(" | ") if kind == "!" else (text, "", None)
            parts = [text] if ": " in text or text.startswith("{") else text.split("; ")
            forms += [Form(section, target, part.strip().rstrip(";"), reason, number) for part in parts]
    return forms


def reasons(root):
    """{name: text} of the reasons of Unsupported.def."""
    return dict(re.findall(r'^FP4_REASON\((\w+), "(.*)"\)$', (root / TABLE).read_text(), re.M))


def unsupported(root):
    """(instructions, modifiers, version, targets, reason) of each row of Unsupported.def."""
    return re.findall(r'^FP4_UNSUPPORTED\("(.*?)", "(.*?)", "(.*?)", "(.*?)", (\w+)\)$', (root / TABLE).read_text(), re.M)


def meets(row, form):
    """Says if a row of Unsupported.def is about a form, as lib/Sim/Decode/Unsupported.cpp does."""
    def fits(alternative, text):
        return text.startswith(alternative[:-1]) if alternative.endswith("*") else text == alternative
    instructions, modifiers = row[0].split("|"), row[1].split()
    if row[0].startswith("%"):
        return bool(form.register) and any(fits(name, form.register) for name in instructions)
    words = form.spelling.split(".")
    if not any(words[:len(name)] == name for name in (text.split(".") for text in instructions)):
        return False
    left = words[1:]
    for alternatives in modifiers:
        if alternatives.startswith("!"):
            if alternatives[1:] in left:
                return False
            continue
        at = [i for i, word in enumerate(left) if any(fits(a, word) for a in alternatives.split("|"))]
        if not at:
            return False
        left = left[at[0] + 1:]
    return True


def missing(root, forms):
    """Findings about entries of the lists and tables for which there is no form."""
    index = [(line.split()[0], name) for line in (root / "test/Sim/ptx-index.txt").read_text().splitlines()
             if line and not line.startswith("#") for name in line.split()[1:]]
    for section, name in index:
        # The words of a name may have others between them: mad.lo.cc, vote.sync.
        parts = name.split(".")
        if not any((form.register or "").startswith(name) if name.startswith("%") else
                   name in (form.spelling, form.text.split("; ")[-1].split()[0]) or re.split("[.:]", form.spelling)[0] == parts[0] and
                   all(re.search(rf"\.{re.escape(part)}(\b|$)", form.spelling) for part in parts[1:]) for form in forms):
            yield f"ptx-index.txt: {section}: {name} has no form in ptx-isa.txt"
    for row in unsupported(root):
        if not any(form.reason == row[4] and meets(row, form) for form in forms):
            yield f"{TABLE}: no refused form of ptx-isa.txt meets {row[0]}.{row[1]}"
    for name in set(reasons(root)) - {row[4] for row in unsupported(root)}:
        yield f"{TABLE}: no row has the reason {name}"
    accepted = {form.spelling for form in forms if form.reason is None}
    for table in ("Opcodes.def", "OpcodesAsync.def"):
        for base in dict.fromkeys(re.findall(r'^FP4_OP\(\w+, "(.*?)"', (root / "lib/Sim/Decode" / table).read_text(), re.M)):
            if not any((spelling + ".").startswith(base + ".") or spelling.startswith(base + "::") for spelling in accepted):
                yield f"{table}: {base} has no accepted form in ptx-isa.txt"


def kernel(form, name):
    end = "" if form.text.endswith("}") and form.text.startswith("{") else ";" # a block is a statement
    return f".visible .entry {name}(.param .align 64 .b8 a0[128]) {{\n{REGISTERS}{LOCALS}\n{form.text}{end}\nL:\nret;\n}}\n"


def header(target, version="9.0"):
    return f".version {version}\n.target sm_{target}a\n.address_size 64\n{VARIABLES}"


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


def newest(tool):
    """The newest version of PTX that a ptxas reads: 9.<its minor release>."""
    release = re.search(r"release 13\.(\d+)", subprocess.run([tool, "--version"], capture_output=True, text=True).stdout)
    return f"9.{release[1]}" if release else "9.0"


def check_ptxas(tool, form, version):
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(header(form.target, version) + kernel(form, "k"))
        file.flush()
        run = subprocess.run([tool, f"-arch=sm_{form.target}a", file.name, "-o", "/dev/null"], capture_output=True, text=True)
        lines = (run.stdout + run.stderr).strip().splitlines()
        return None if run.returncode == 0 else lines[0] if lines else f"exit code {run.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--fp4-sim", type=Path)
    parser.add_argument("--ptxas")
    parser.add_argument("--later", action="store_true", help="ask ptxas about PTX 9.1 and later only")
    parser.add_argument("--list", default=ROOT / "test/Sim/ptx-isa.txt", type=Path, help="the forms to compare with")
    o = parser.parse_args()
    forms, why = read(o.list), reasons(ROOT)
    problems = list(missing(ROOT, forms))
    for form, error in zip(forms, simulator(o.fp4_sim or o.build / "bin/fp4-sim", forms)):
        expected = form.reason and f"is not simulated: {why.get(form.reason, '?')}"
        if not expected and error:
            problems.append(f"ptx-isa.txt:{form.line}: refused: {form.text}: {error}")
        elif expected and (not error or expected not in error):
            problems.append(f"ptx-isa.txt:{form.line}: {form.text}: '{expected}' expected, but got {error}")
    if o.ptxas:
        version = newest(o.ptxas)
        asked = [form for form in forms if form.reason is None and form.version <= version]
        if o.later:
            asked = [form for form in asked if form.version > "9.0"]
        problems += [f"ptx-isa.txt:{form.line}: ptxas: {form.text}: {error}" for form in asked
                     if (error := check_ptxas(o.ptxas, form, version))]
    print("\n".join(problems + [f"{len(forms)} forms, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
