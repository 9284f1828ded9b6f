"""The pages of operations, attributes, types and passes, from what mlir-tblgen writes of the .td files."""
import html
import pathlib
import re
import subprocess
import tempfile

from . import constraints, markdown

TOOL, INCLUDE = "mlir-tblgen-22", "/usr/lib/llvm-22/include"
SOURCES = {"fp4": ["Fp4/IR/Fp4Ops.td"],
           "pipe": [f"Pipe/IR/{name}.td" for name in ("PipeOps", "PipeMmaOps", "PipeWarpOps", "PipeRowOps", "PipeMatrixOps")]}
LONGEST_EXAMPLE = 16  # lines of an example that passes.md repeats
# Constraints of types in the words of MLIR, and the spelling in IR.
BUILTIN = [(r"(\d+)-bit signless integer", r"i\1"), (r"(\d+)-bit float", r"f\1"), ("bfloat16 type", "bf16"),
           (r"\b(f\d+E\w+) type", r"\1"), (r"(i\d+) dense array", r"array of \1"),
           (r"fixed-length vector of (.*) values of ranks 1", r"vector of \1"), (r"variadic of (.*)", r"any number of \1"),
           (r"(?:statically shaped )?memref of any type values", "memref"), ("constant vector/tensor", "constant"), (r" whose value is non-negative", ", not negative"),
           (r"(\w*)Attr", lambda m: m[1].lower())]


def run(root, text, *options):
    """The output of mlir-tblgen for a file with this text."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "All.td"
        file.write_text(text)
        done = subprocess.run([TOOL, "-I", root / "include", "-I", INCLUDE, *options, file],
                              capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"error: {TOOL} {' '.join(options)}: {done.stderr.strip()}")
    return done.stdout


def dialect(root, name):
    """{part: text} of a dialect: its introduction, Operations, Attributes, Types and Enums."""
    includes = "".join(f'include "fp4/Dialect/{file}"\n' for file in SOURCES[name])
    text = run(root, includes, "-gen-dialect-doc", f"-dialect={name}").replace("[TOC]", "")
    parts = re.split(r"^## (\w+)$", text, flags=re.M)
    intro = parts[0].partition("\n# ")[2].partition("\n")[2]
    return {"intro": intro, **dict(zip(parts[1::2], parts[2::2]))}


def mnemonics(root, name):
    """{class of C++: its name in the text}, "FormatAttr": "format"."""
    includes = "".join(f'include "fp4/Dialect/{file}"\n' for file in SOURCES[name])
    found = {}
    for body in re.findall(r"^def \w+ \{(.*?)^\}", run(root, includes), re.S | re.M):
        cpp = re.search(r'string cppClassName = "(\w+)"', body)
        word = re.search(r'string mnemonic = "(\w+)"', body)
        if cpp and word:
            found[cpp[1]] = word[1]
    return found


def sections(text):
    """[(heading, body)] of the headings of level 3."""
    parts = re.split(r"^### (.*)$", text, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def spelled(kind, known):
    """A constraint of a type or an attribute as IR spells it: `i32`, `!pipe.shared`."""
    kind = kind.removesuffix(" attribute")
    for summary, word in known.items():
        kind = kind.replace(summary, word)
    for pattern, word in BUILTIN:
        kind = re.sub(pattern, word, kind)
    return kind


def listed(label, rows, known):
    """A line such as "Operands: `a`, `b` (`!pipe.global`), `row` (i32)." for the rows of a table."""
    names = {}
    for name, kind in rows:
        names.setdefault(spelled(kind, known), []).append(f"`{name}`")
    if list(names.values()) == [["`result`"]]:
        return f"Result: {next(iter(names))}.\n"
    parts = [", ".join(group) + (f" ({kind})" if kind != "unit" else "") for kind, group in names.items()]
    return f"{label}: {', '.join(parts)}.\n" if parts else ""


def attribute_rows(table):
    for name, kind, meaning in re.findall(r"<tr><td><code>(.*?)</code></td><td>(.*?)</td><td>(.*?)</td></tr>",
                                          table, re.S):
        meaning = meaning.partition("<details>")[0]
        yield name, html.unescape(meaning) or kind.split("::")[-1]


def lists(body, known):
    """The tables of mlir-tblgen as lines, of what the syntax and the example do not show.

    A description with a table of operands keeps that alone. Operands that the syntax names have the types
    of the example, and so has a single result.
    """
    described = re.search(r"^\| operand ", body, re.M)
    syntax = re.search(r"^```\n(`\w+\.\w+`.*?)^```", body, re.S | re.M)
    shown = set(re.findall(r"\$(\w+)", syntax[1])) if syntax else set()

    def line(label, rows):
        rows = [(name, kind) for name, kind in rows if name not in shown]
        return "" if label == "Results" and len(rows) == 1 and shown else listed(label, rows, known)

    def lines(match):
        rows = re.findall(r"^\| `(\w+)` \| (.*?) \|$", match[2], re.M)
        return "" if described else line(match[1], rows)

    body = re.sub(r"^#### (Operands|Results|Successors):\n\n((?:\|.*\n)+)\n?", lines, body, flags=re.M)
    return re.sub(r"^#### Attributes:\n+(<table>.*?</table>)\n+",
                  lambda match: line("Attributes", attribute_rows(match[1])), body, flags=re.S | re.M)


def parameters(body):
    """The table of parameters of an attribute or a type as a line. Their types in C++ say nothing to a reader."""
    def line(match):
        rows = re.findall(r"^\| (\w+) \| (.*?) \| (.*?) \|$", match[1], re.M)
        said = [f"`{name}`" + (f" ({kind})" if kind and not kind.startswith("an enum") else "")
                for name, _, kind in rows if name != "Parameter"]
        return f"Parameters: {', '.join(said)}.\n"

    body = re.sub(r"^#### Parameters:\n\n((?:\|.*\n)+)", line, body, flags=re.M)
    body = re.sub(r"^```\n[#!]\w+\.\w+<\n.*?^```\n", "", body, flags=re.S | re.M)
    return re.sub(r"^#### (?:Options|Statistics):\n+", "", body, flags=re.M)


def cleaned(body, known=None):
    """A description without the rules, which constraints.md has, and without what says nothing."""
    # The paragraph ends at an empty line, or where the description goes on with its example.
    body = re.sub(r"(^|(?<=[.:] ))Constraints: \(C\d+\).*?(?=\n\n|\nExample|\Z)", "", body, flags=re.S | re.M)
    body = re.sub(r"^(Traits|Effects|Interfaces): .*\n|^Example:\n(?=```)", "", body, flags=re.M)
    body = body.replace("Syntax:\n\n", "").replace("::mlir::", "").replace("::llvm::", "")
    body = parameters(lists(body, known or {}))
    return re.sub(r"^(_.*_)$", lambda m: m[1].strip("_") + ".", body, count=1, flags=re.M)


def grammar(body):
    """The syntax of an operation up to its types, which its example shows."""
    def shorter(match):
        text = match[1].removeprefix("operation ::= ")
        text = re.sub(r"\s+\(?`(?::|->)`\s+(?:qualified|custom|type|functional-type|ref|\().*", "", text, flags=re.S)
        text = re.sub(r"\n {14}", "\n    ", re.sub(r"\s*\battr-dict\b", "", text).rstrip())
        plain = re.sub(r"`[^`]*`", "", text)
        text += ")?" * (plain.count("(") - plain.count(")"))
        return f"```\n{text}\n```" if " " in text else ""

    return re.sub(r"```\n(operation ::= .*?)```", shorter, body, count=1, flags=re.S)


def without_syntax(body):
    """A former spelling without its syntax, operands and attributes: nobody writes it anymore."""
    body = re.sub(r"```\noperation ::= .*?```\n", "", body, flags=re.S)
    return re.sub(r"^#### \w+:\n.*?(?=^####|\Z)", "", body, flags=re.S | re.M)


def rules(labels, dialect_name, name):
    """The line that leads to the rules. Labels of fp4 count anew for each operation, and are not listed."""
    found = labels.get(name)
    if not found:
        return ""
    if dialect_name == "fp4":
        return f"[Rules](constraints.md#{markdown.anchor(constraints.heading('fp4', name))}).\n"
    return markdown.wrap(f"Rules: {', '.join(found)}.") + "\n"


def summaries(parts, names, dialect_name):
    """{summary of a type or an attribute: its spelling}, the longest first."""
    found = {}
    for part, sigil in (("Attributes", "#"), ("Types", "!")):
        for heading, text in sections(parts.get(part, "")):
            if match := re.match(r"\s*_(.*?)_\n", text):
                word = f"`{sigil}{dialect_name}.{names.get(heading, heading)}`"
                found[match[1]] = found[match[1][0].lower() + match[1][1:]] = word
    return {key: found[key] for key in sorted(found, key=len, reverse=True)}


def operations(root, name, title, more):
    """The page of the operations of a dialect."""
    parts, labels = dialect(root, name), constraints.labels(root, name)
    known, body = summaries(parts, mnemonics(root, name), name), []
    for heading, text in sections(parts["Operations"]):
        op = re.match(rf"`{name}\.([\w.]+)`", heading)[1]
        if re.match(r"\s*_Former spelling ", text):
            text = without_syntax(text)
        text = markdown.rewrap(cleaned(grammar(text), known))
        body.append(f"## `{name}.{op}`\n\n{text}\n{rules(labels, name, op)}".rstrip())
    return markdown.page(title, f"the .td files of include/fp4/Dialect/{name.capitalize()}/IR", more,
                         markdown.rewrap(cleaned(parts["intro"])), *body)


def words(text):
    """{enumeration: "`a`, `b`"} of the part Enums."""
    return {heading: ", ".join(f"`{word}`" for word in re.findall(r"^\| \w+ \| `\d+` \| (\w+) \|$", body, re.M))
            for heading, body in sections(text)}


def attributes(root, name, title, more):
    """The page of the attributes and types of a dialect. `plan` has a page of its own."""
    parts, labels, names = dialect(root, name), constraints.labels(root, name), mnemonics(root, name)
    enums, body = words(parts["Enums"]), []
    for part, sigil in (("Attributes", "#"), ("Types", "!")):
        for heading, text in sections(parts.get(part, "")):
            word = names.get(heading, heading)
            if word == "plan":
                continue
            enum = enums.get(heading.removesuffix("Attr"))
            if enum:  # the syntax and the one parameter say nothing that the words do not
                text = re.sub(r"Syntax:\n\n```.*?```\n", "", text, flags=re.S).partition("#### Parameters")[0]
                text = f"{text.rstrip()}\n\nWords: {enum}.\n"
            body.append(f"## `{sigil}{name}.{word}`\n\n{markdown.rewrap(cleaned(text))}\n"
                        f"{rules(labels, name, word)}".rstrip())
    return markdown.page(title, f"the .td files of include/fp4/Dialect/{name.capitalize()}/IR", more, *body)


def check_fields(root, text):
    """Refuses tables of a description that lack a field of the parser, or have another."""
    parsed = {}
    for name, families in re.findall(r'^    \{"(\w+)", member<[^>]*>\(\),\s*of\(([\w, ]+)\)',
                                     (root / "lib/Dialect/Fp4/IR/KernelPlan.cpp").read_text(), re.M):
        for family in families.split(", "):
            parsed.setdefault(re.sub(r"(?<!^)(?=[A-Z])", "_", family).lower(), []).append(name)
    tables = [dict(re.findall(rf"^\| (\w+) +\| {more}(.*?) +\|$", table, re.M))
              for table, more in zip(re.findall(r"((?:^\|.*\n)+)", text, re.M), (r"[^|]*\| ", ""))]
    described = {family: fields.split(", ") for family, fields in tables[0].items() if family != "family"}
    names = set(tables[1]) - {"field"}
    for family in parsed:
        if wrong := sorted(set(parsed[family]) ^ set(described.get(family, []))):
            raise SystemExit(f"error: Fp4Plan.td and KernelPlan.cpp must have the same fields of {family}, "
                             f"but differ in {', '.join(wrong)}")
    if wrong := sorted(names ^ {name for fields in parsed.values() for name in fields}):
        raise SystemExit(f"error: Fp4Plan.td must describe the fields of KernelPlan.cpp, but differs in {', '.join(wrong)}")


def plan_fields(root):
    """The page of `#fp4.plan`."""
    parts = dialect(root, "fp4")
    text = dict(sections(parts["Attributes"]))["PlanAttr"].partition("#### Parameters")[0]
    check_fields(root, text)
    return markdown.page(
        "Plan fields", "include/fp4/Dialect/Fp4/IR/Fp4Plan.td",
        "A plan says which kernel an operation becomes. [Plans](../concepts/plans.md) explains who decides, "
        "and how a program overrides a decision.", markdown.rewrap(cleaned(text)),
        rules(constraints.labels(root, "fp4"), "fp4", "plan"))


def without_long_examples(body, link):
    """A description whose long examples are in the .td file alone, with a link to the file."""
    def shorter(match):
        end = match[1].replace(":", ".")
        return match[0] if match[2].count("\n") <= LONGEST_EXAMPLE else f"{end}\n\nThe example is in {link}.\n"

    body = re.sub(r"(\S)\n\n```mlir\n(.*?)^```\n", shorter, body, flags=re.S | re.M)
    first, found, rest = body.partition(f"The example is in {link}.\n")
    return first + found + rest.replace(f"The example is in {link}.\n", "")


def passes(root):
    """The page of all passes, one part for each Passes.td."""
    body, files = [], sorted((root / "include/fp4").glob("**/Passes.td"))
    for file in files:
        text = run(root, file.read_text(), "-gen-pass-doc")
        folder = file.parent.relative_to(root / "include/fp4").as_posix()
        link = f"[{folder}/{file.name}](../../{file.relative_to(root).as_posix()})"
        body.append(f"## {folder}")
        for heading, part in sections(text):
            part = re.sub(r"#### Options\n\n```\n(.*?)```", options, part, flags=re.S)
            part = re.sub(r"#### Statistics\n\n```\n(.*?)```", "", part, flags=re.S)
            part = without_long_examples(cleaned(part), link)
            body.append(f"### `{heading.strip('`').lstrip('-')}`\n\n{markdown.rewrap(part)}".rstrip())
    return markdown.page(
        "Passes", "the Passes.td of include/fp4",
        "Each pass says why it exists, what it expects, and what holds afterwards, with an example that a "
        "test runs; one of more than 16 lines is in the .td file. [Phases](../concepts/phases.md) has the order in which the compiler runs them. "
        "`fp4-opt --PASS=\"OPTION=VALUE\"` runs one.", *body)


def options(match):
    rows, last = [], None
    for line in match[1].splitlines():
        if found := re.match(r"-(\S+)\s+: (.*)", line):
            last = [f"`{found[1]}`", found[2]]
            rows.append(last)
        elif last:
            last[1] += " " + line.strip()
    return markdown.table(["option", "means"], rows) + "\n"
