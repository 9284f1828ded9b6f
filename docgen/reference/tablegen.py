"""The pages of operations, attributes, types and passes, from what mlir-tblgen writes of the .td files."""
import html
import pathlib
import re
import subprocess
import tempfile

from . import constraints, markdown

TOOL, INCLUDE = "mlir-tblgen-22", "/usr/lib/llvm-22/include"
SOURCES = {"fp4": ["Fp4/IR/Fp4Ops.td"],
           "pipe": [f"Pipe/IR/{name}.td" for name in ("PipeOps", "PipeWarpOps", "PipeLaneOps", "PipeMatrixOps")]}
# Interfaces that every operation has, or that say nothing to a reader.
SILENT = ("ConditionallySpeculatable", "NoMemoryEffect", "MemoryEffect", "InferType", "Pipe_NamedResults",
          "OpAsmOpInterface", "SymbolUserOpInterface",
          "ReifyRankedShapedType")


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


def attributes_table(match):
    rows = []
    for name, kind, meaning in re.findall(r"<tr><td><code>(.*?)</code></td><td>(.*?)</td><td>(.*?)</td></tr>",
                                          match.group(0), re.S):
        meaning = meaning if "<details>" not in meaning else meaning.partition("<details>")[0]
        rows.append((f"`{name}`", html.unescape(meaning) or kind.split("::")[-1]))
    return markdown.table(["attribute", "is"], rows)


def tables(body):
    """The tables of mlir-tblgen in the form that ours have; a description with its own keeps that alone."""
    if re.search(r"^\| operand ", body, re.M):
        body = re.sub(r"^#### (?:Operands|Results):\n\n\|.*\n(?:\|.*\n)*", "", body, flags=re.M)
    body = re.sub(r"<table>.*?</table>", attributes_table, body, flags=re.S)
    body = re.sub(r"^\| (Operand|Result|Successor|Parameter) \| (?:C\+\+ type \| )?Description \|\n\|.*$",
                  lambda m: f"| {m[1].lower()} | " + ("type | " if m[1] == "Parameter" else "") + "is |\n|---|---|"
                  + "---|" * (m[1] == "Parameter"), body, flags=re.M)
    return re.sub(r"^#### (?:Attributes|Operands|Results|Successors|Parameters|Options|Statistics):\n+", "",
                  body, flags=re.M)


def cleaned(body):
    """A description without the rules, which constraints.md has, and without what says nothing."""
    # The paragraph ends at an empty line, or where the description goes on with its example.
    body = re.sub(r"(^|(?<=[.:] ))Constraints: \(C\d+\).*?(?=\n\n|\nExample|\Z)", "", body, flags=re.S | re.M)
    body = re.sub(r"^(Traits|Effects): .*\n", "", body, flags=re.M)

    def interfaces(match):
        kept = [name for name in match[1].split(", ") if not name.strip("`").startswith(SILENT)]
        return f"Interfaces: {', '.join(kept)}\n" if kept else ""

    body = re.sub(r"^Interfaces: (.*)\n", interfaces, body, flags=re.M)
    body = body.replace("Syntax:\n\n", "").replace("::mlir::", "").replace("::llvm::", "")
    return re.sub(r"^(_.*_)$", lambda m: m[1].strip("_") + ".", tables(body), count=1, flags=re.M)


def rules(labels, dialect_name, name):
    found = labels.get(name)
    if not found:
        return ""
    place = f"constraints.md#{markdown.anchor(constraints.heading('fp4', name))}" if dialect_name == "fp4" \
        else "constraints.md#kernels-of-pipe"
    return markdown.wrap(f"Rules: {', '.join(found)} ([constraints]({place})).") + "\n"


def operations(root, name, title, more):
    """The page of the operations of a dialect."""
    parts, labels = dialect(root, name), constraints.labels(root, name)
    body = []
    for heading, text in sections(parts["Operations"]):
        op = re.match(rf"`{name}\.([\w.]+)`", heading)[1]
        body.append(f"## `{name}.{op}`\n\n{markdown.rewrap(cleaned(text))}\n{rules(labels, name, op)}".rstrip())
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


def plan_fields(root):
    """The page of `#fp4.plan`."""
    parts = dialect(root, "fp4")
    text = dict(sections(parts["Attributes"]))["PlanAttr"].partition("#### Parameters")[0]
    return markdown.page(
        "Plan fields", "include/fp4/Dialect/Fp4/IR/Fp4Plan.td",
        "A plan says which kernel an operation becomes. [Plans](../concepts/plans.md) explains who decides, "
        "and how a program overrides a decision.", markdown.rewrap(cleaned(text)),
        rules(constraints.labels(root, "fp4"), "fp4", "plan"))


def passes(root):
    """The page of all passes, one part for each Passes.td."""
    body, files = [], sorted((root / "include/fp4").glob("**/Passes.td"))
    for file in files:
        text = run(root, file.read_text(), "-gen-pass-doc")
        folder = file.parent.relative_to(root / "include/fp4").as_posix()
        body.append(f"## {folder}")
        for heading, part in sections(text):
            part = re.sub(r"#### Options\n\n```\n(.*?)```", options, part, flags=re.S)
            part = re.sub(r"#### Statistics\n\n```\n(.*?)```", "", part, flags=re.S)
            body.append(f"### `{heading.strip('`').lstrip('-')}`\n\n{markdown.rewrap(cleaned(part))}".rstrip())
    return markdown.page(
        "Passes", "the Passes.td of include/fp4",
        "Each pass says why it exists, what it expects, and what holds afterwards, with an example that a "
        "test runs. [Phases](../concepts/phases.md) has the order in which the compiler runs them. "
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
