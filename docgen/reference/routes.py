"""routes.md from the table of routes, and what the table says of a pair on a target."""
import collections
import re
import sys

import tables

from . import markdown

TABLE, AXES = "include/fp4/Routes/Routes.def", "include/fp4/Routes/Axes.def"
Core = collections.namedtuple("Core", "name word ptx needs")
Word = collections.namedtuple("Word", "name word meaning")
Pair = collections.namedtuple("Pair", "name words lhs rhs arithmetic formats limits other remedy")
Lack = collections.namedtuple("Lack", "pairs core limits reason")
Route = collections.namedtuple("Route", "pairs core a b accumulate orientation planner limits fields tile unit")


def entries(root, macro):
    """[[argument]] of each use of a macro in the tables; strings without their quotes."""
    text = re.sub(r"^#.*?(?<!\\)$|//.*", "", (root / AXES).read_text() + (root / TABLE).read_text(), flags=re.M)
    found = []
    for match in re.finditer(rf"^{macro}\(((?:\"[^\"]*\"|[^\"()]|\([^()]*\))*)\)", text, re.M):
        arguments = re.findall(r"((?:\s*\"[^\"]*\")+|[^,\"]+)(?:,|$)", match[1])
        found.append(["".join(re.findall(r"\"([^\"]*)\"", part)) if '"' in part else " ".join(part.split())
                      for part in arguments])
    return found


def table(root):
    """Cores and pairs by their names, words of each axis, and the routes."""
    cores = {row[0]: Core(*row) for row in entries(root, "FP4_CORE")}
    words = {axis: {row[0]: Word(*row) for row in entries(root, f"FP4_{axis}")}
             for axis in ("OPERAND", "ACCUMULATE", "ORIENTATION")}
    pairs = {row[0]: Pair(*row) for row in entries(root, "FP4_PAIR")}
    routes = [Route(*row) for row in entries(root, "FP4_ROUTE")]
    assert cores and pairs and routes and all(words.values()), f"{TABLE} is not read"
    return cores, words, pairs, routes


def named(root, macro, names):
    """The words of a set such as `Fp4 | Mx8`, names of a macro in the order of the table."""
    wanted = names.split(" | ")
    return ", ".join(row[1] for row in entries(root, macro) if row[0] in wanted)


def has(model, cores, route, pair):
    """Returns true when a target, a row of Targets.cpp, has a route for a pair."""
    need = cores[route.core].needs.rpartition("::")[2]
    return (pair in route.pairs.split(" | ") and (need == "nullptr" or model[need] == "true")
            and (pair != "Fp4K96" or model["hasFp4K96"] == "true")
            and (not pair.endswith("DoubleK") or model["hasDoubleK"] == "true"))


def supported(root, pair, target):
    """Returns true when a target has some route for a pair."""
    cores, _, pairs, routes = table(root)
    assert pair in pairs, f"{TABLE} has no pair {pair}"
    model = tables.targets_of(root)[target]
    return any(has(model, cores, route, pair) for route in routes)


def lacks(root):
    return [Lack(*row) for row in entries(root, "FP4_LACK")]


def reason(root, pair, target):
    """Why a target has no route for a pair; empty if it has one."""
    cores = table(root)[0]
    if supported(root, pair, target):
        return ""
    model = tables.targets_of(root)[target]
    for lack in lacks(root):
        need = cores[lack.core].needs.rpartition("::")[2]
        if pair in lack.pairs.split(" | ") and lack.limits == "0" and model[need] == "true":
            return lack.reason
    sys.exit(f"error: {TABLE} does not say why {target} has no route for {pair}")


class Reasons:
    """Reasons of GEMMs that no route of a pair on a core has, by numbers."""

    def __init__(self, root):
        self.root, self.lacks, self.known = root, lacks(root), []

    def number(self, pair, core, limit):
        """The number of the reason. With a core, ends the program where there is none."""
        for lack in self.lacks:
            if pair in lack.pairs.split(" | ") and limit in lack.limits.split(" | ") and core in (lack.core, None):
                if lack.reason not in self.known:
                    self.known.append(lack.reason)
                return f"<sup>{self.known.index(lack.reason) + 1}</sup>"
        if core:
            sys.exit(f"error: {TABLE} does not say why no route of {pair} on {core} has {limit}")
        return ""

    def cell(self, pair, routes, core, limits):
        """The words of `limits` of one of `routes`, the numbers behind those that all of the core have."""
        words = []
        for limit, word, _ in entries(self.root, "FP4_LIMIT"):
            if limit in limits:
                is_lack = all(limit in {*pair.limits.split(" | "), *route.limits.split(" | ")}
                              for route in routes if route.core == core and pair.name in route.pairs.split(" | "))
                words.append(word + (self.number(pair.name, core, limit) if is_lack else ""))
        return ", ".join(words)

    def text(self):
        return "; ".join(f"<sup>{number}</sup> {reason}" for number, reason in enumerate(self.known, 1)) + "."


def pair_rows(root, pairs, reasons):
    """The formats of each pair."""
    return [(pair.words + reasons.number(pair.name, None, "0"), named(root, "FP4_FORMATS", pair.formats)) for pair in pairs.values()]


def targets_of(models, cores, routes, core):
    """The targets that have some route of a core."""
    return [model["name"] for model in models
            if any(has(model, cores, route, pair) for route in routes if route.core == core
                   for pair in route.pairs.split(" | "))]


def spelled(names, everywhere):
    """Names of targets as code, or "all"."""
    return "all" if names == everywhere else ", ".join(f"`{name}`" for name in names)


def rows_of_pair(root, pair, reasons):
    """The routes of a pair, without their operands."""
    cores, words, _, routes = table(root)
    models, rows = list(tables.targets_of(root).values()), []
    for route in routes:
        if any(has(model, cores, route, pair.name) for model in models):
            limits = {*route.limits.split(" | "), *pair.limits.split(" | ")}
            rows.append((cores[route.core].word, words["OPERAND"][route.a].word, words["OPERAND"][route.b].word,
                         words["ACCUMULATE"][route.accumulate].word, words["ORIENTATION"][route.orientation].word,
                         reasons.cell(pair, routes, route.core, limits),
                         " ".join(f"`{field}`" for field in named(root, "FP4_FIELD", route.fields).split(", ") if field)))
    return tuple(rows)


def route_rows(root, reasons):
    """The routes of pairs that have the same, with the operands in the first row of these."""
    of = collections.defaultdict(list)
    for pair in table(root)[2].values():
        of[rows_of_pair(root, pair, reasons)].append(pair.words)
    return [(subject, *row) for rows, words in of.items() for subject, row in zip(("; ".join(words), *[""] * len(rows)), rows)]


def core_rows(root):
    """The instruction and the targets of each core."""
    cores, _, _, routes = table(root)
    models = list(tables.targets_of(root).values())
    everywhere = [model["name"] for model in models]
    return [(f"`{core.word}`", f"`{core.ptx}`", spelled(targets_of(models, cores, routes, core.name), everywhere))
            for core in cores.values()]


def generate(root):
    _, words, pairs, _ = table(root)
    reasons = Reasons(root)
    rows = route_rows(root, reasons)
    pairs_and_formats = pair_rows(root, pairs, reasons)
    axes = [markdown.table(["value", "meaning"], [(f"`{word.word}`", word.meaning) for word in words[axis].values()])
            for axis in words]
    return markdown.page(
        "Routes", TABLE,
        "A route says how a GEMM reaches the core of a target. The plan of a GEMM has one, and a program or "
        "`--plan` asks for axes of it: `route = <core = wgmma, b = pre>`. "
        "[Plans](../concepts/plans.md#2-the-route) explains who chooses, and [Add a route](../guides/add-a-route.md) "
        "how a way to multiply is added. `fp4-runner routes --target=NAME` prints the part of a target.",
        "## The pairs\n\n" + markdown.wrap(
            "Operands that have the same routes are a pair. Both have one of its formats, or two of OCP MX.") + "\n\n" + markdown.table(
                ["operands", "formats"], pairs_and_formats),
        "## The routes\n\n" + markdown.wrap(
            "All routes read the fields `route`, `tile`, `schedule`, `roles`, `stages`, `ctas_per_sm`, `pdl` "
            "and `wave_cost` of a plan, and those of the column `reads`. A plan with another "
            "field is an error. A route without operands has those of the row above. A number says why no route of the "
            "operands on a core, or on some targets, has such GEMMs.") + "\n\n" + markdown.table(
                ["operands", "core", "a", "b", "accumulate", "orientation", "not for", "reads"], rows) + "\n\n" + markdown.wrap(
                    reasons.text()),
        "## The axes\n\n" + markdown.wrap("`core` is the unit that multiplies.") + "\n\n" + markdown.table(
            ["value", "instruction", "targets"], core_rows(root)),
        "`a` and `b` are the operands of an instruction.\n\n" + axes[0],
        "`accumulate` is the place of the sums.\n\n" + axes[1],
        "`orientation` says which operand of the op is A.\n\n" + axes[2])
