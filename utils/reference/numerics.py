"""recipes.md: formats, decisions and recipes of the tables of include/fp4/Numerics."""
import re

from . import markdown

PREAMBLE = """a_b is the amax of a block, a_t that of the tensor, f the value of the scale byte, g the encode
scale of the tensor (about 2688 / a_t) and d its decode scale. D is 6 * e4m3_max. For MX formats u has the bits of
a_b, E is its exponent field and M its mantissa; L is the largest element, l its exponent and m the bits of its
mantissa. All operations are IEEE fp32, to nearest even, with subnormals and without contraction."""
DECISION = re.compile(r"FP4_DECISION\((\w+), (\w+), (\w+), (\w+), (\w+),\n(.*?)\)\n\n", re.S)
NUMBER = re.compile(r"FP4_NUMBER\((\w+), (\w+), (\w+), ([^)]*)\)")
VALUE = re.compile(r"FP4_VALUE\((\w+), (\w+)\)(?:\s*/\*(.*?)\*/)?", re.S)
RECIPE = re.compile(r'^FP4_RECIPE\((\w+), (\w+),\s*"([^"]*)"(.*?)\)$', re.M | re.S)
FORMAT = re.compile(r"^FP4_FORMAT\((\w+), (\w+), (\w+), (\d+), (\w+)\)$", re.M)
ELEMENT = re.compile(r"^FP4_ELEMENT\((\w+), (\d+), (\d+), (\d+), ([\d.]+)f, (\d+)\)$", re.M)


def words(text):
    return " ".join((text or "").split())


def number(text):
    """0x1p-6f as 2^-6, 448.f as 448."""
    text = text.strip().removesuffix("f")
    power = re.fullmatch(r"0x1p(-?\d+)", text)
    return f"2^{power[1]}" if power else text.rstrip(".")


def sections(text):
    """(comment above, rest) of each decision and number, in the order of the table."""
    table = text[text.index("//===--- Decisions"):text.index("//===--- Recipes")]
    for above, rest in re.findall(r"((?:^//(?!=)[^\n]*\n)+)(FP4_(?:DECISION|NUMBER)\(.*?)(?=\n\n|\Z)", table, re.S | re.M):
        yield words(re.sub(r"^// ?", "", above, flags=re.M)), rest + "\n\n"


def decisions(text):
    """({member: its name}, {"Type::Enumerator": its name}, the text of the decisions)."""
    members, values, parts = {}, {}, []
    for meaning, rest in sections(text):
        if found := DECISION.match(rest):
            kind, member, name, family, initial, listed = found.groups()
            listed = VALUE.findall(listed + ")")
            values |= {f"{kind}::{enumerator}": word for enumerator, word, _ in listed}
            rows = [(f"`{word}`" + " (default)" * (enumerator == initial), words(what))
                    for enumerator, word, what in listed]
            body = markdown.table(["value", "means"], rows)
        else:
            member, name, family, initial = NUMBER.match(rest).groups()
            body = f"A number; the default is {number(initial)}."
        members[member] = name
        formats = {"NVFP4": "nvfp4", "MX": "MX formats", "F32": "fp8_block128", "All": "all"}[family]
        parts.append(f"### `{name}`\n\n{markdown.wrap(f'{meaning} Formats: {formats}.')}\n\n{body}")
    return members, values, parts


def recipes(text, members, values):
    rows = []
    for name, kind, summary, differ in RECIPE.findall(text):
        said = [f"`{members[member]} = {values[value.strip()] if '::' in value else number(value)}`"
                for member, value in re.findall(r"\.(\w+) = ([^,]+)", differ)]
        rows.append((f"`{name}`", kind, words(summary), ", ".join(said)))
    return rows


def generate(root):
    folder = root / "include/fp4/Numerics"
    formats, text = (folder / "Formats.def").read_text(), (folder / "Recipes.def").read_text()
    elements = {name: row for name, *row in ELEMENT.findall(formats)}
    known = {enumerator: name for enumerator, name, *_ in FORMAT.findall(formats)}
    members, values, parts = decisions(text)
    rows = [(name, f"`{known[kind]}`", *rest) for name, kind, *rest in recipes(text, members, values)]
    assert len(rows) == text.count("\nFP4_RECIPE(") and len(parts) == len(members), "a row of Recipes.def is not read"
    return markdown.page(
        "Formats and recipes", "Formats.def and Recipes.def of include/fp4/Numerics",
        "A recipe is the order and the guards of the fp32 operations of a quantizer. "
        "[Add a format](../guides/add-a-format.md) says how a row of the first table is made, and "
        "`#fp4.recipe<NAME, DECISION = VALUE>` names a recipe in a program.",
        "## Formats", markdown.table(
            ["format", "element", "bits", "largest", "elements of a block", "scale"],
            [(f"`{name}`", f"f{element}", elements[element][0], number(elements[element][3]), block, f"f{scale}")
             for _, name, element, block, scale in FORMAT.findall(formats)]),
        "## Recipes", "The first recipe of a format is its default. The last column has what differs from the "
        "defaults.", markdown.table(["recipe", "format", "reproduces", "decisions"], rows),
        "## Decisions", markdown.wrap(PREAMBLE), *parts)
