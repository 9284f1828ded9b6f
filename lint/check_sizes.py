#!/usr/bin/env python3
"""Finds functions over 40 lines in the folders of FOLDERS, and files over 600 there and in FILES.

A function counts from the first line of its head to its closing brace, with comments and blank
lines. A lambda counts as a part of the function around it. Every excused function or file stands in
EXCUSED with the reason; an excuse that nothing needs any more is an error too. C++ is read by a
small lexer, which knows comments, literals and braces, Python by its own parser, and JavaScript by
the lines that begin with a function or a brace.

Prints a line per finding and exits with 1. --list prints every function instead, longest first.
"""
import ast
import re
import sys

from report import finish, parser_of

FOLDERS = ["lib", "include", "tools", "utils", "validation", "lint", "docgen", "oracles", "packages", "scripts"]
FILES = ["test", "unittests", "python", "examples", "benchmarks", "integration_test"]
MOST_FUNCTION, MOST_FILE = 40, 600

# Functions and files that may be longer, as `file` or `file:function`, and why.
EXCUSED = {
    "lib/Numerics/RecipeEvaluator.cpp:RecipeEvaluator::evaluate":
        "one case of two lines for each operation of a recipe: nothing to name in between",
    "lib/SimCuda/Host/DriverNames.def": "the names of libcuda, one on each line",
}

LITERAL = re.compile(r'//[^\n]*|/\*.*?\*/|(?:u8|[uUL])?R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"'
                     r"|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.S)
# Lines of the preprocessor, with those that continue them.
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
SCOPE = re.compile(r"\b(namespace|class|struct|enum|union|extern)\b[^()]*$")


def without_literals(text):
    """`text` in which comments, literals and directives are blanks; newlines stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    return DIRECTIVE.sub(blank, LITERAL.sub(blank, text))


def function_name(head):
    """The name of the function that `head` begins, or None where it begins something else."""
    named_lambda = re.search(r"(\w+)\s*=\s*\[[^\]]*\][^=]*$", head)
    if named_lambda:
        return named_lambda[1]
    ends = r"\)\s*((const|noexcept|override|final|mutable|try|&|->[^()]*)\s*)*$"
    if SCOPE.search(head):
        return None
    # The brace of a member initializer follows a name, that of a body a parenthesis or a brace.
    if re.search(r"\)\s*:(?!:)", head) and re.search(r"[\w>]$", head) and not re.search(ends, head):
        return None
    match = re.search(r"(operator\s*(?:\(\)|[^\s(]+)|~?[\w:]+)\s*\(", head)
    if not match or re.search(r"(=|\breturn|,)$", head):
        return None
    return match[1]


def cpp_functions(text):
    """Yields (name, first line, lines) of every function that has a body."""
    code = without_literals(text)
    # `open`: for every open brace the function that it begins, SCOPE, or None for others.
    start, parentheses, function, braces = 0, 0, None, []
    for match in re.finditer(r"[(){};]", code):
        mark, here = match[0], match.start()
        if mark == "{":
            kind = None
            if function is None and not parentheses and all(braces):
                head = code[start:here].lstrip()
                bare = re.sub(r"\[\[.*?\]\]|\balignas\([^)]*\)", "", head, flags=re.S).strip()
                name = function_name(bare)
                if name:
                    function = kind = (name, code.count("\n", 0, here - len(head)) + 1)
                elif SCOPE.search(bare):
                    kind = SCOPE
            braces.append(kind)
            if kind:
                start = here + 1
        elif mark == "}":
            if not braces:
                raise ValueError("a brace closes nothing")
            kind = braces.pop()
            if kind:
                start = here + 1
            if kind and kind is function:
                yield *function, code.count("\n", 0, here) + 2 - function[1]
                function = None
        elif function is None:
            if mark == ";" and not parentheses and all(braces):
                start = here + 1
            parentheses += (mark == "(") - (mark == ")")
    if braces:
        raise ValueError("a brace is not closed")


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def script_functions(text):
    """Functions of a script's outermost level: one ends at the next line that begins with }."""
    lines = text.split("\n")
    for first, line in enumerate(lines):
        match = re.match(r"(?:async )?function (\w+)\(", line)
        if match:
            last = first if line.endswith("}") else next(i for i in range(first, len(lines)) if lines[i].startswith("}"))
            yield match[1], first + 1, last - first + 1


READERS = {".cpp": cpp_functions, ".h": cpp_functions, ".c": cpp_functions, ".py": python_functions, ".js": script_functions}
OTHERS = {".td", ".def", ".sh", ".txt", ".html", ".css", ".cu", ".mlir", ".pyi", ".test"}


def measure(root):
    """Yields (path, None, 1, lines) for every file, and (path, function, line, lines)."""
    for folder in FOLDERS + FILES:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in READERS and path.suffix not in OTHERS:
                continue
            text, name = path.read_text(), str(path.relative_to(root))
            yield name, None, 1, len(text.splitlines())
            if folder in FILES:
                continue
            try:
                for function, line, lines in READERS.get(path.suffix, lambda _: ())(text):
                    yield name, function, line, lines
            except ValueError as error:
                raise SystemExit(f"error: {name}: {error}")


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--list", action="store_true", help="print every function, longest first")
    arguments = parser.parse_args()
    found = list(measure(arguments.root))
    if arguments.list:
        for path, function, line, lines in sorted(found, key=lambda row: -row[3]):
            if function:
                print(f"{lines:4} {path}:{line}: {function}")
        return 0
    errors, needed = [], set()
    for path, function, line, lines in found:
        most = MOST_FUNCTION if function else MOST_FILE
        if lines <= most:
            continue
        key = f"{path}:{function}" if function else path
        needed.add(key)
        if key not in EXCUSED:
            errors.append(f"{path}:{line}: {function or 'the file'} has {lines} lines, and must "
                          f"have at most {most}")
    errors += [f"{key} is excused, and need not be" for key in EXCUSED if key not in needed]
    functions = sum(1 for row in found if row[1])
    return finish([f"error: {error}" for error in errors],
                  f"{len(found) - functions} files and {functions} functions have the right size")


if __name__ == "__main__":
    sys.exit(main())
