#!/usr/bin/env python3
"""Finds structs and classes of more than 20 data members: parts of them should have names.

Static members do not count, and neither do those of bases or of nested structs. C++ is read by the
lexer of check_sizes.py, and Python, where a dataclass or named tuple has the fields of its body, by
its own parser. Every excused struct stands in EXCUSED with the reason; an excuse that nothing needs
any more is an error too.

Prints a line per finding and exits with 1. --list prints every struct instead, largest first.
"""
import ast
import re
import sys

from check_sizes import FOLDERS, without_literals
from report import finish, parser_of

MOST = 20

# Structs that may have more, as `file:struct`, and why.
PRIVATE = "private state of one algorithm, which no other file reads member by member"
EXCUSED = {
    "lib/SimCuda/Host/DeviceProp.h:DeviceProp": "cudaDeviceProp, whose layout is that of CUDA",
    "lib/Conversion/Fp4ToGPU/Attention/WarpAttention.h:WarpAttention": PRIVATE,
    "lib/Conversion/Fp4ToGPU/Routing/ExpertOrder.cpp:ExpertOrder": PRIVATE,
    "lib/Conversion/Fp4ToGPU/TileQuantize/TileQuantize.cpp:TileQuantizeKernel": PRIVATE,
    "lib/Sim/Orders/OrderRecorder.h:OrderRecorder": PRIVATE,
    "lib/Sim/Time/Memory.h:MemorySystem": PRIVATE,
    "lib/Sim/Time/TimedLaunch.h:TimedLaunch": PRIVATE,
    "lib/SimCuda/Host/Context.h:Context": PRIVATE,
    "lib/Sim/Check/HazardState.h:ClusterState":
        "one list for each kind of object that orders memory, and for each kind of report",
}

TYPE = re.compile(r"\b(?:class|struct|union)\b\s*(?:\[\[.*?\]\]\s*)?(?:[A-Z0-9_]+_API\s+)?([\w:]*)[^()]*$", re.S)
OTHER = re.compile(r"(?:using|typedef|friend|static|static_assert|template|inline\s+static|constexpr\s+static)\b")
FORWARD = re.compile(r"(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+[\w:]+(?:\s*:\s*[\w:]+)?$")


def without_groups(text, opening, closing):
    """`text` without what lies between such brackets, and without them."""
    group = re.compile(rf"\{opening}[^{opening}{closing}]*\{closing}")
    while group.search(text):
        text = group.sub(" ", text)
    return text


def members_of(statement, follows_type):
    """Counts the members that a statement of a struct declares; its braces are empty."""
    text = re.sub(r"\b(public|private|protected)\s*:(?!:)|\[\[.*?\]\]|\balignas\([^()]*\)", " ", statement).strip()
    text = re.sub(r"^(?:enum\b[^{}]*\{\})", "", text).strip() if text.startswith("enum") else text
    if not text or OTHER.match(text) or FORWARD.match(text):
        return 0
    text = without_groups(re.sub(r"->|<=|>=|<<", " ", text), "<", ">")
    head = re.split(r"[={]", text)[0]
    if "(" in head and not re.search(r"\(\s*(?:\w+::)*[*&]", head) or re.search(r"\boperator\b", head):
        return 0
    for brackets in ("()", "[]", "{}"):
        text = without_groups(text, *brackets)
    declares = follows_type or re.search(r"[\w>*&\]]\s", head + " ")
    return text.count(",") + 1 if declares else 0


def cpp_structs(text):
    """Yields (name, line, members) of every struct, class and union that has a body."""
    code = without_literals(text)
    # Scopes that are open: [name, line, members], or None where it is a namespace.
    scopes, statement, parentheses, skipped, after_type = [], "", 0, 0, False
    for match in re.finditer(r"[(){};]|[^(){};]+", code):
        mark = match[0]
        if skipped:
            skipped += (mark == "{") - (mark == "}")
            if not skipped:
                statement += "{}"
                following = code[match.end():].lstrip()[:1]
                if not parentheses and following not in (";", ",", "{", ":"):
                    statement = ""
        elif mark == "{" and not parentheses and TYPE.search(statement) and "enum" not in statement:
            scopes.append([TYPE.search(statement)[1], code.count("\n", 0, match.start()) + 1, 0])
            statement = ""
        elif mark == "{" and not parentheses and re.search(r"\b(?:namespace\b[^()]*|extern\s*)$", statement):
            scopes.append(None)
            statement = ""
        elif mark == "{":
            skipped = 1
        elif mark == "}":
            if not scopes:
                raise ValueError("a brace closes nothing")
            scope, statement = scopes.pop(), ""
            if scope:
                yield tuple(scope)
            after_type = bool(scope)
        elif mark == ";" and not parentheses:
            if scopes and scopes[-1]:
                scopes[-1][2] += members_of(statement, after_type)
            statement, after_type = "", False
        else:
            parentheses += (mark == "(") - (mark == ")")
            statement += mark


def python_structs(text):
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ClassDef):
            continue
        kinds = " ".join(map(ast.unparse, node.decorator_list + node.bases))
        if "dataclass" in kinds or "NamedTuple" in kinds:
            fields = [field for field in node.body
                      if isinstance(field, ast.AnnAssign) and "ClassVar" not in ast.unparse(field.annotation)]
            yield node.name, node.lineno, len(fields)


READERS = {".cpp": cpp_structs, ".h": cpp_structs, ".py": python_structs}


def measure(root):
    """Yields (path, struct, line, members)."""
    for folder in [*FOLDERS, "python", "benchmarks"]:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in READERS:
                for found in READERS[path.suffix](path.read_text()):
                    yield str(path.relative_to(root)), *found


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--list", action="store_true", help="print every struct, largest first")
    arguments = parser.parse_args()
    found = list(measure(arguments.root))
    if arguments.list:
        for path, name, line, members in sorted(found, key=lambda row: -row[3]):
            print(f"{members:4} {path}:{line}: {name or 'a struct without a name'}")
        return 0
    large = {f"{path}:{name}": (line, members) for path, name, line, members in found if members > MOST}
    errors = [f"{key.split(':')[0]}:{line}: {key.split(':', 1)[1]} has {members} members, and must have "
              f"at most {MOST}" for key, (line, members) in large.items() if key not in EXCUSED]
    errors += [f"{key} is excused, and need not be" for key in EXCUSED
               if key not in large and (arguments.root / key.split(":")[0]).exists()]
    return finish([f"error: {error}" for error in errors], f"{len(found)} structs have few members")


if __name__ == "__main__":
    sys.exit(main())
