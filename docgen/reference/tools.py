"""cli.md from the tools' own help, targets.md from the table of targets, and instructions.md."""
import re
import subprocess

import ptx_coverage
import tables

from . import markdown

TOOLS = {"fp4-opt": ["--help"], "fp4-runner": ["--help-all"], "fp4-run": ["--help-all"], "fp4-sim": ["--help-all"],
         "fp4-reduce": ["--help"]}
RUNNERS = ("fp4-runner", "fp4-run", "fp4-sim")
COLUMN = 30  # of the words beside an option in what CLI11 prints


def helped(build, tool, options):
    path = build / "bin" / tool
    if not path.is_file():
        return None
    done = subprocess.run([path, *options], capture_output=True, text=True)
    return "\n".join(line.rstrip() for line in (done.stdout or done.stderr).strip().splitlines())


def folded(text):
    """Help with lines of at most 100 columns: long words beside an option go on below them."""
    import textwrap
    out = []
    for line in text.splitlines():
        lead = len(line) - len(line.lstrip())
        two = re.match(r"(\s*\S.*?\s{2,})\S", line)
        below = len(two[1]) if two and len(two[1]) < 50 else max(lead, COLUMN if lead >= COLUMN else lead + 4)
        out.append(textwrap.fill(line, 100, subsequent_indent=" " * below, drop_whitespace=True,
                                 replace_whitespace=False, break_long_words=False, break_on_hyphens=False)
                   if len(line) > 100 else line)
    return "\n".join(out)


def entries(text):
    """The lines of a help text, those of an option together: its line and what is further to the right."""
    found, inside = [], None
    for line in text.splitlines():
        lead = len(line) - len(line.lstrip())
        if inside is not None and line and lead > inside:
            found[-1].append(line)
            continue
        inside = lead if line.lstrip().startswith("-") and not line.lstrip().startswith("-- ") else None
        found.append([line])
    return ["\n".join(lines) for lines in found]


def option(entry):
    """The words of an option; empty where the entry is none."""
    words = " ".join(entry.split())
    return words if words.startswith("--") and len(words) > 60 else ""


def shared(helps):
    """[(heading, tools, entries)] of the options that all tools that run kernels have, and that two of them have."""
    of = {tool: {option(entry): entry for entry in entries(helps[tool]) if option(entry)} for tool in RUNNERS}
    runner, run, sim = (of[tool] for tool in RUNNERS)
    return [("Options of every run", RUNNERS, [runner[key] for key in runner if key in run and key in sim]),
            ("Options of runs of a library", RUNNERS[:2], [runner[key] for key in runner if key in run and key not in sim])]


def without(text, known):
    """A help text without the options that have a part of their own."""
    return "\n".join(entry for entry in entries(text) if option(entry) not in known)


def cli(root, build):
    """The page of the command lines; None without a build that has the tools."""
    helps = {tool: helped(build, tool, options) for tool, options in TOOLS.items()}
    if None in helps.values():
        return None
    common = shared(helps)
    body = []
    for tool, text in helps.items():
        parts = [(heading, kept) for heading, tools, kept in common if tool in tools]
        text = without(text, {option(entry) for _, kept in parts for entry in kept})
        links = " and ".join(f"[{heading[0].lower()}{heading[1:]}](#{markdown.anchor(heading)})" for heading, _ in parts)
        more = markdown.wrap(f"`{tool}{' run' * (tool == 'fp4-sim')}` also has the {links}.") if links else ""
        body.append(f"## {tool}\n\n```\n{folded(text)}\n```\n\n{more}".rstrip())
    for heading, _, kept in common:
        text = re.sub(r"^ {4}", "", folded("\n".join(kept)), flags=re.M)
        body.append(f"## {heading}\n\n```\n{text}\n```")
    return markdown.page(
        "Command lines", "`--help-all` of the tools",
        "`fp4-runner` compiles a program, runs it and checks its result. `fp4-opt` runs passes and phases "
        "([passes](passes.md), [phases](../concepts/phases.md)). `fp4-run` runs an emitted library without a "
        "compiler. `fp4-sim` runs programs for CUDA without a GPU. `fp4-reduce` makes a small program of a "
        "large one that shows a bug. [The guide](../guides/tools.md) shows how they are used, and "
        "[Diagnostics](diagnostics.md) has their exit codes.", *body)


#===--- Targets -----------------------------------------------------------===#


def facts(root):
    """[(fact, meaning)] of TargetModel.h, in its order; a member that is a group stands for its members."""
    text = (root / "include/fp4/ISA/TargetModel.h").read_text()
    structs = dict(re.findall(r"^struct (\w+) \{\n(.*?)\n\};", text, re.S | re.M))
    return facts_of("TargetModel", structs)


def facts_of(name, structs):
    found, above = [], []
    for line in structs[name].splitlines():
        if line.strip().startswith("///"):
            above.append(line.strip().lstrip("/ "))
            continue
        if (group := re.match(r"\s*(\w+) \w+;", line)) and group[1] in structs:
            found += facts_of(group[1], structs)
        elif declared := re.match(r"\s*[\w:]+ \*?([\w, ]+);\s*(?:///< (.*))?$", re.sub(r"^\s*const ", "", line)):
            for name in declared[1].split(", "):
                found.append((name, declared[2] or " ".join(above)))
        above = []
    return found


def shown(value):
    if re.fullmatch(r"\d+", value):
        return f"{int(value):,}"
    words = {"true": "yes", "false": "", "nullptr": "", "&b200": "of B200", "&asOnB200": "assumed as on B200",
             "&rubin": "assumed"}
    if size := re.fullmatch(r"(\d+)(?:ull|u)? << 20", value):
        return f"{int(size[1])} MiB"
    return words.get(value, value)


def targets(root):
    known, models = facts(root), list(tables.targets_of(root).values())
    assert all({name for name, _ in known} == set(row) for row in models), "a row of Targets.cpp is not read"
    head = ["fact", *(f"`{row['name']}`" for row in models), "meaning"]
    lines = [(f"`{name}`", *(shown(row[name]) for row in models), meaning) for name, meaning in known if name != "name"]
    return markdown.page(
        "Targets", "lib/ISA/Targets.cpp",
        "A target is a row of facts, and no code compares versions of architectures. An empty cell is no. "
        "[Add a target](../guides/add-a-target.md) says how a row is made, and "
        "[Semantics](semantics.md#kernels-by-target) which operations have kernels where.", markdown.table(head, lines))


#===--- Instructions ------------------------------------------------------===#


def shortly(row):
    """A row of Unsupported.def as one word: alternatives have slashes between them."""
    modifiers = "".join(f".{text}" for text in row[1].replace("|", "/").split() if not text.startswith("!"))
    without = "".join(f" without `.{text[1:]}`" for text in row[1].split() if text.startswith("!"))
    return f"`{row[0].replace('|', '/')}{modifiers}`{without}"


def instructions(root):
    forms, rows = ptx_coverage.read(root / "test/Sim/ptx-isa.txt"), []
    for section in dict.fromkeys(form.section for form in forms if form.reason is None):
        rows.append((section, sum(form.section == section and form.reason is None for form in forms)))
    refused, lines = ptx_coverage.unsupported(root), []
    for name, reason in ptx_coverage.reasons(root).items():
        mine = [row for row in refused if row[4] == name]
        lines.append((reason, "; ".join(f"{version}: " + ", ".join(shortly(row) for row in mine if row[2] == version)
                                        for version in dict.fromkeys(row[2] for row in mine))))
    return markdown.page(
        "Instructions", "test/Sim/ptx-isa.txt and lib/Sim/Decode/Unsupported.def",
        "The simulator follows PTX ISA 9.5. The suite compares its tables with the instructions and the forms of "
        "each section; ptxas 13.0 and 13.5 assemble every accepted form.",
        markdown.table(["section", "accepted forms"], rows),
        markdown.wrap("A refused instruction is an error with its place and the reason before anything runs. The "
                      "numbers are the versions of PTX that brought the forms."),
        markdown.table(["reason", "refused"], lines))
