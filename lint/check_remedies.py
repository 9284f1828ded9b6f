#!/usr/bin/env python3
"""Finds errors of the dialects and the conversions that do not say what helps.

An error has a note with a remedy: withNote (include/fp4/Dialect/Fp4/IR/Remedy.h) takes both, and
where the error needs several statements, attachNote of its variable says it. A function or lambda
that returns an error without a note passes the duty on to its callers. Errors that ODS generates
("operand #0 must be ...") have no notes.

Prints a line per error without a remedy and exits with 1, or prints a summary and exits with 0. The
argument, if there is one, is another source tree.
"""
import pathlib
import re
import sys

from check_sizes import without_literals
from report import finish

ROOT = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).parent.parent).resolve()
FOLDERS = [f"{root}/{room}" for root in ["lib", "include/fp4"]
           for room in ["Dialect", "Plans", "KernelArithmetic", "Conversion", "Pipelines", "Target"]]
EMITTERS = {"emitError", "emitOpError", "emitOptionalError"}
NOTE = r"\bwithNote\(|\battachNote\("
RETURNS_ERROR = re.compile(r"\bInFlightDiagnostic\s+(?:\w+::)*(\w+)\s*\(")
LAMBDA = re.compile(r"(?:(\w+)\s*=\s*)?\[[^\[\]]*\]\s*(?:\([^()]*\)\s*)?(?:->\s*\w+\s*)?$")


def closing(code, opening):
    """The position of the bracket that closes the one at `opening`."""
    depth = 0
    for match in re.compile(r"[(){}]").finditer(code, opening):
        depth += 1 if match[0] in "({" else -1
        if depth == 0:
            return match.start()
    raise ValueError("a bracket is not closed")


def enclosing(code, position):
    """The positions of the open brackets around `position`, the innermost first."""
    depth = 0
    for here in range(position - 1, -1, -1):
        if code[here] in ")}":
            depth += 1
        elif code[here] in "({":
            depth -= 1
            if depth < 0:
                depth = 0
                yield here


def end_of_statement(code, position):
    depth = 0
    for match in re.compile(r"[(){};]").finditer(code, position):
        if match[0] in "({":
            depth += 1
        elif match[0] in ")}":
            depth -= 1
        if depth < 0 or depth == 0 and match[0] == ";":
            return match.start()
    return len(code)


def passes_on(code):
    """Names of the functions and lambdas in `code` that return an error without a note."""
    for match in RETURNS_ERROR.finditer(code):
        body = closing(code, match.end() - 1) + 1
        brace = re.compile(r"[\s\w]*\{").match(code, body)
        if brace and not re.search(NOTE, code[brace.end():closing(code, brace.end() - 1)]):
            yield match[1], brace.end() - 1
    for match in re.finditer(r"\{\s*return\b[^;]*\b(?:%s)\(" % "|".join(EMITTERS), code):
        head = LAMBDA.search(code, max(0, match.start() - 200), match.start())
        if head and not re.search(NOTE, code[match.start():closing(code, match.start())]):
            yield head[1], match.start()


def has_remedy(code, position, excused):
    for bracket in enclosing(code, position):
        if bracket in excused or code[:bracket].endswith("withNote"):
            return True
    start = max(code.rfind(mark, 0, position) for mark in ";{}")
    end = end_of_statement(code, position)
    if ".attachNote(" in code[position:end]:
        return True
    variable = re.search(r"\b(?:auto|InFlightDiagnostic)\s+(\w+)\s*=[^=]", code[start:position])
    if not variable:
        return False
    scope = code[end:closing(code, next(b for b in enclosing(code, position) if code[b] == "{"))]
    return bool(re.search(rf"\b{variable[1]}\.attachNote\(|\bwithNote\(std::move\({variable[1]}\)", scope))


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cpp", ".h"):
                yield path.relative_to(ROOT), without_literals(path.read_text())


def errors(files):
    """(path, line, whether it has a remedy) of every error."""
    shared = {name for path, code in files for name, _ in passes_on(code) if path.suffix == ".cpp"} - {None}
    for path, code in files:
        excused = {brace for _, brace in passes_on(code)}
        pattern = r"(?<!InFlightDiagnostic )(?<!::)\b(%s)\(" % "|".join(sorted(EMITTERS | shared))
        for match in re.finditer(pattern, code):
            declared = RETURNS_ERROR.search(code, code.rfind("\n", 0, match.start()) + 1, match.end())
            if not declared:
                yield path, code.count("\n", 0, match.start()) + 1, has_remedy(code, match.start(), excused)


def main():
    found = list(errors(list(sources())))
    return finish([f"{path}:{line}: error: has no remedy\n  note: write withNote(ERROR, REMEDY)"
                   for path, line, remedied in found if not remedied], f"{len(found)} errors say what helps")


if __name__ == "__main__":
    sys.exit(main())
