"""The words of the tables in include and lib, for programs that need them without a build.

A list that is made from them has a new row without another edit. recipes.py has the tables of the
numerics."""
import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS, PLAN = "lib/ISA/Targets.cpp", "include/fp4/Dialect/Fp4/IR/KernelPlan.h"
FIELDS, POLICIES = "lib/Dialect/Fp4/IR/KernelPlan.cpp", "lib/Sim/Async/Policies.cpp"
# Facts about the tensor core, by which kernels differ.
TENSOR_CORE = ("hasTcgen05", "hasWgmma", "hasMmaBlockScale", "hasFp4K96", "hasDoubleK")


def found(what, place, rows):
    """The rows of a table, of which there must be some."""
    if not rows:
        raise SystemExit(f"error: expects {what} in {place}, but found none\n"
                         "  note: the tree has changed: teach validation/tables.py the new form")
    return rows


@functools.cache
def words(enumeration):
    """The words of an enumeration of the dialects, such as "Raster", in its order."""
    head = re.compile(rf'Enum<"{enumeration}", "[^"]*",\s*\[(.*?)\]>', re.S)
    for path in sorted((ROOT / "include/fp4/Dialect").rglob("*.td")):
        if cases := head.search(path.read_text()):
            return re.findall(r'EnumAttrCase<"\w+", \d+, "(\w+)">', cases[1])
    return found(f"the enumeration {enumeration}", "include/fp4/Dialect", [])


def rasters():
    """{word: its text} of the orders of tiles; panels need a width."""
    return {word: f"{word}<2>" if word == "panels" else word for word in words("Raster")}


def targets_of(root):
    """{name: {fact: value}} of the targets of a tree; values are text, without quotes."""
    table = re.search(r"constexpr TargetModel rows\[\] = \{\n(.*?)\n\};", (root / TARGETS).read_text(), re.S)
    rows = re.findall(r"^    \{\n(.*?)^    \}", table[1] if table else "", re.S | re.M)
    facts = [{name: value.strip('"') for name, value in re.findall(r"\.(\w+) = (.*?),(?:\s*//.*)?\n", row)}
             for row in rows]
    return found("targets", TARGETS, {row["name"]: row for row in facts})


@functools.cache
def targets():
    return targets_of(ROOT)


def targets_by(*facts):
    """The first target of each set of values of the facts."""
    firsts = {}
    for name, row in targets().items():
        firsts.setdefault(tuple(row[fact] for fact in facts), name)
    return list(firsts.values())


def has(target, fact):
    return targets()[target][fact] == "true"


def policies():
    """Orders of completion of the simulator, without those that time a run or try every order."""
    named = r'if \(text == "(\w+)"\)\n\s*return CompletionPolicy::'
    every = found("policies", POLICIES, re.findall(named, (ROOT / POLICIES).read_text()))
    return [policy for policy in every if policy not in ("timed", "exhaustive")]


class Field:
    """A field of plans, with its type in C++; a complete plan may lack an optional one."""

    def __init__(self, name, kind, is_optional):
        self.name, self.kind, self.is_optional = name, kind, is_optional


@functools.cache
def plan_fields():
    """{family: [Field]} of the plans."""
    member = r"^  ([\w:]+(?:<[^>]*>)?) (\w+(?:, \w+)*)(?: = [^;]*)?;"
    members = re.findall(member, (ROOT / PLAN).read_text(), re.M)
    kinds = {name: re.sub(r"std::optional<(\w+)>|.*::", r"\1", kind) for kind, names in members
             for name in names.split(", ")}
    row = re.compile(r'\{"(\w+)", member<[^>]*::(\w+)>\(\),\s*of\(([\w, ]+)\)'
                     r'(,\s*/\*isOptional=\*/true)?\}')
    rows = found("fields of plans", FIELDS, row.findall((ROOT / FIELDS).read_text()))
    families = {}
    for word in words("KernelFamily"):
        enumerator = word.title().replace("_", "")
        families[word] = [Field(name, kinds[member], bool(optional))
                          for name, member, of, optional in rows if enumerator in of.split(", ")]
    return families
