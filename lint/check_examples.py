#!/usr/bin/env python3
"""Checks that the examples in the descriptions of operations and passes are tested.

Operations: every ```mlir block of Fp4Ops.td must occur in test/Dialect/Fp4/ops.mlir and every one
of Pipe*.td in test/Dialect/Pipe/examples.mlir, white space folded.

Passes: the description of every pass in a Passes.td has an example, which is executed here. An
example is a ```mlir block of one of two forms:

    // fp4-opt --the-pass=options            // fp4-opt --the-pass
    a program                                a program with comments expected-error @+1 {{words}}
    // becomes
    lines of what fp4-opt prints

In the first form FileCheck compares the lines with what fp4-opt prints. Values may have other
names. `...` alone on a line stands for any lines, and within a line for any text; other lines
follow each other. A line that is indented four or more columns beyond the line before continues
it. Aliases of types and attributes (`!a = ...`) are replaced on both sides. In the second form
fp4-opt checks the errors (--verify-diagnostics).

Programs: every one of examples/ must be named by a test and in docs/README.md.

Prints what is not so and exits with 1.
"""
import concurrent.futures
import re
import shlex
import subprocess
import sys
import tempfile

from report import finish, parser_of

OPERATIONS = {
    "include/fp4/Dialect/Fp4/IR/Fp4Ops.td": "test/Dialect/Fp4/ops.mlir",
    "include/fp4/Dialect/Fp4/IR/Fp4PrepackOps.td": "test/Dialect/Fp4/ops.mlir",
    "include/fp4/Dialect/Fp4/IR/Fp4AttentionOps.td": "test/Dialect/Fp4/ops.mlir",
    "include/fp4/Dialect/Fp4/IR/Fp4RoutingOps.td": "test/Dialect/Fp4/ops.mlir",
    "include/fp4/Dialect/Fp4/IR/Fp4MatmulOps.td": "test/Dialect/Fp4/ops.mlir",
    "include/fp4/Dialect/Pipe/IR/Pipe*.td": "test/Dialect/Pipe/examples.mlir",
}
BLOCK = re.compile(r"```mlir\n(.*?)```", re.S)
RUN = re.compile(r"\s*// fp4-opt (.*)\n")
NAME = r"%[A-Za-z0-9_$.-]+"
# `%a, %b:2 =`, `iter_args(%a = ...)`, and `%a: type` of an argument name a value anew.
DEFINITION = re.compile(rf"{NAME}(?=(?::\d+)?(?:, {NAME}(?::\d+)?)* =)|{NAME}(?=: )")


def fold(text):
    return " ".join(text.split())


def check_operations(root):
    """Yields an error or None for every example of an operation."""
    for source, test in OPERATIONS.items():
        tested = fold(re.sub(r"//.*", "", (root / test).read_text()))
        text = "".join(path.read_text() for path in sorted(root.glob(source)))
        for block in BLOCK.findall(text):
            yield None if fold(block) in tested else f"{test} does not contain: {fold(block)}"


def check_programs(root):
    """Yields an error or None for every program of examples/ and every place that must name it."""
    tests = "".join(path.read_text(errors="replace") for folder in ("test", "validation", "unittests", "packages")
                    for path in (root / folder).rglob("*") if path.is_file())
    page = (root / "docs/README.md").read_text()
    for example in sorted((root / "examples").rglob("*.mlir")):
        name = str(example.relative_to(root))
        yield None if name in tests else f"no test names {name}"
        yield None if name in page else f"docs/README.md does not name {name}"


def logical_lines(text):
    """The lines of an example, each joined with those that continue it."""
    lines, indent = [], 0
    for line in text.splitlines():
        if not line.strip():
            continue
        here = len(line) - len(line.lstrip())
        if lines and here >= indent + 4:
            lines[-1] += ("" if lines[-1][-1] in "([<" else " ") + line.strip()
            continue
        lines.append(line.strip())
        indent = here
    return lines


def without_aliases(lines):
    """The lines with every alias that some of them define replaced by what it stands for."""
    aliases, result = {}, []
    for line in lines:
        for name, value in aliases.items():
            line = re.sub(re.escape(name) + r"(?![\w.$-])", lambda _: value, line)
        definition = re.fullmatch(r"([!#][\w$-]+) = (.*)", line)
        if definition:
            aliases[definition[1]] = definition[2]
        else:
            result.append(line)
    return result


def literally(text):
    """`text` as FileCheck reads it literally, but for `...`."""
    text = re.sub(r"\[\[|\{\{", lambda match: "{{\\" + "\\".join(match[0]) + "}}", text)
    return text.replace("...", "{{.*}}")


def file_check(lines):
    """Directives that hold the lines to be equal, but for the names of values."""
    known, directives, follows = set(), "", False
    for line in lines:
        if line == "...":
            follows = False
            continue
        if re.match(r"\w+\.func ", line):
            known.clear()
        defined = {match.start() for match in DEFINITION.finditer(line)}
        directives += "CHECK-NEXT: " if follows else "CHECK: "
        end = 0
        for match in re.finditer(NAME, line):
            name = "V_" + re.sub(r"\W", "_", match[0][1:])
            fresh = match.start() in defined or name not in known
            known.add(name)
            directives += literally(line[end:match.start()])
            directives += f"%[[{name}:[A-Za-z0-9_$.-]+]]" if fresh else f"%[[{name}]]"
            end = match.end()
        directives += literally(line[end:]) + "\n"
        follows = True
    return directives


def run_example(name, block, opt, file_check_tool):
    """Executes one example of pass `name`; returns an error or None."""
    run = RUN.match(block)
    if not run:
        return f"an example of {name} does not begin with `// fp4-opt --{name}`"
    if not re.search(rf"\b{name}\b", run[1]):
        return f"an example of {name} runs `fp4-opt {run[1]}`, which does not name the pass"
    before, becomes, after = block[run.end():].partition("// becomes\n")
    expects = "expected-" in before
    if expects == bool(becomes):
        return f"an example of {name} must either become something or expect errors"
    command = opt + shlex.split(run[1]) + (["--verify-diagnostics"] if expects else [])
    result = subprocess.run(command, input=before, capture_output=True, text=True)
    if result.returncode:
        return f"the example of {name} fails: {shlex.join(command)}\n{result.stderr}"
    if expects:
        return None
    aliases = [line for line in logical_lines(before) if re.match(r"[!#][\w$-]+ = ", line)]
    printed = "\n".join(without_aliases(result.stdout.splitlines()))
    with tempfile.NamedTemporaryFile("w", suffix=".check") as directives:
        directives.write(file_check(without_aliases(aliases + logical_lines(after))))
        directives.flush()
        found = subprocess.run([file_check_tool, directives.name, "--match-full-lines"],
                               input=printed, capture_output=True, text=True)
    if found.returncode:
        return f"the example of {name} becomes something else:\n{found.stderr}"
    return None


def pass_examples(root):
    """(pass, block) for every example of a pass, and (pass, None) for a pass that has none."""
    for path in sorted(root.glob("include/**/Passes.td")):
        parts = re.split(r'^def \w+ : Pass<"([\w-]+)"', path.read_text(), flags=re.M)
        for name, text in zip(parts[1::2], parts[2::2]):
            yield from ((name, block) for block in BLOCK.findall(text) or [None])


def check_passes(root, opt, file_check_tool):
    """Yields an error or None for every example, and an error for every pass without one."""
    def check(example):
        name, block = example
        if block is None:
            return f"the description of {name} has no example"
        return run_example(name, block, opt, file_check_tool)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        yield from pool.map(check, pass_examples(root))


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--opt", default="fp4-opt", help="the command fp4-opt, with options")
    parser.add_argument("--file-check", default="FileCheck-22", help="the command FileCheck")
    parser.add_argument("--passes-only", action="store_true",
                        help="check only the examples of passes")
    arguments = parser.parse_args()
    found = list(check_passes(arguments.root, shlex.split(arguments.opt), arguments.file_check))
    if not arguments.passes_only:
        found += [*check_operations(arguments.root), *check_programs(arguments.root)]
    return finish([f"error: {error}" for error in found if error], f"{len(found)} examples are tested")


if __name__ == "__main__":
    sys.exit(main())
