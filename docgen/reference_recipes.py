#!/usr/bin/env python3
"""Writes the tables of recipes and decisions in docs/reference/recipes.md.

  docgen/reference_recipes.py           writes them
  docgen/reference_recipes.py --check   exits with 1 if the page has other tables

Both come from include/fp4/Numerics/Recipes.def. --root reads and writes another checkout.
"""
import argparse
import pathlib
import re
import sys

from written_tables import head, row

TABLE, PAGE = "include/fp4/Numerics/Recipes.def", "docs/reference/recipes.md"
DECISION = re.compile(r"^((?:// [^\n]*\n)+)FP4_DECISION\(\w+, (\w+), (\w+), (\w+), (\w+),\n(.*?)\)$(?=\n\n|\n//)",
                      re.M | re.S)
VALUE = re.compile(r"FP4_VALUE\((\w+), (\w+)\)\s*(?:/\*(.*?)\*/)?", re.S)
NUMBER = re.compile(r"^((?:// [^\n]*\n)+)FP4_NUMBER\((\w+), (\w+), (\w+), ([\d.]+)f\)$", re.M)
RECIPE = re.compile(r'^FP4_RECIPE\((\w+), (\w+),\s*"([^"]*)"(.*?)\)$', re.M | re.S)
FAMILY = {"NVFP4": "nvfp4", "MX": "mx", "F32": "f32", "All": "all"}
# The decisions that have a column of their own, by family; all others that are set are in the last column.
COLUMNS = {"NVFP4": ("amax_nan", "tensor_scale", "scale", "encode", "guard", "dequantize", "alpha"),
           "MX": ("amax_nan", "exponent", "non_finite"),
           "F32": ("amax_nan", "amax_floor", "power_of_two")}


class Decision:
    """A decision of the table: its values by enumerator, or a number."""

    def __init__(self, comment, member, name, family, default, values):
        self.comment, self.member, self.name, self.family = " ".join(comment.split()), member, name, family
        self.names = {enumerator: spelling for enumerator, spelling, _ in values}
        self.meanings = {spelling: " ".join(text.split()) for _, spelling, text in values}
        self.default = self.names.get(default, default)

    def cell(self):
        if not self.names:
            return f"{self.comment} A number, {self.default} by default"
        listed = (f"`{name}`" + (f" {meaning}" if meaning else "") for name, meaning in self.meanings.items())
        return f"{self.comment} " + "; ".join(listed)


def decisions(text):
    """{member: Decision}, in the order of the table."""
    found = []
    for match in DECISION.finditer(text):
        comment, member, name, family, default, values = match.groups()
        found.append((match.start(), Decision(comment.replace("// ", ""), member, name, family, default,
                                              VALUE.findall(values))))
    for match in NUMBER.finditer(text):
        comment, member, name, family, default = match.groups()
        number = f"{float(default):g}"
        found.append((match.start(), Decision(comment.replace("// ", ""), member, name, family, number, [])))
    expected = len(re.findall(r"^FP4_(?:DECISION|NUMBER)\(", text, re.M))
    if len(found) != expected:
        sys.exit(f"error: {TABLE}: {expected} decisions begin, but {len(found)} can be read")
    return {decision.member: decision for _, decision in sorted(found, key=lambda entry: entry[0])}


def spelled(text, known):
    """A text with the names of decisions and values in place of their identifiers in C++."""
    names = {key: spelling for decision in known.values() for key, spelling in decision.names.items()}
    names |= {decision.member: decision.name for decision in known.values()}
    # An identifier of one word, such as Even, may be a word of the text, and NaN is one.
    found = re.sub(r"\b(?!NaN\b)\w+[a-z0-9][A-Z]\w*\b", lambda word: names.get(word[0], word[0]), text)
    return found.replace("|", "\\|")


def value_of(decision, text):
    if decision.names:
        return decision.names[text.rsplit("::", 1)[1]]
    return f"{float.fromhex(text.rstrip('f')) if 'x' in text else float(text.rstrip('f')):.9g}"


def family_of(format):
    return {"NVFP4": "NVFP4", "FP8Block128": "F32"}.get(format, "MX")


def recipe_rows(text, formats, known):
    """The tables of recipes: (family, rows)."""
    rows = {family: [] for family in COLUMNS}
    for name, format, summary, given in RECIPE.findall(text):
        chosen = {known[member].name: value_of(known[member], value)
                  for member, value in re.findall(r"\.(\w+) = ([\w:.+-]+)", given)}
        family = family_of(format)
        own = COLUMNS[family]
        defaults = {decision.name: decision.default for decision in known.values()}
        others = (f"{key} = {value}" for key, value in chosen.items() if key not in own)
        cells = (chosen.get(column, defaults[column]) for column in own)
        rows[family].append(row(name, formats[format], summary, *cells, ", ".join(others) or "-"))
    return rows.items()


def tables(text, formats):
    """{marker: lines} of the page."""
    known = decisions(text)
    recipes = []
    for family, rows in recipe_rows(text, formats, known):
        recipes += [*head("recipe", "format", "models", *COLUMNS[family], "other decisions"), *rows, ""]
    listed = [row(decision.name, FAMILY[decision.family], spelled(decision.cell(), known)) for decision in known.values()]
    return {"recipes": recipes[:-1], "decisions": [*head("decision", "format", "values"), *listed]}


def with_tables(page, made):
    for marker, lines in made.items():
        before, rest = page.split(f"<!-- {marker} -->\n")
        behind = rest.split("<!-- end -->\n", 1)[1]
        page = f"{before}<!-- {marker} -->\n" + "".join(f"{line}\n" for line in lines) + "<!-- end -->\n" + behind
    return page


def format_names(text):
    return dict(re.findall(r"^FP4_FORMAT\((\w+), (\w+),", text, re.M))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    table, path = options.root / TABLE, options.root / PAGE
    formats = format_names((table.parent / "Formats.def").read_text())
    page = path.read_text()
    made = with_tables(page, tables(table.read_text(), formats))
    if options.check and made != page:
        print(f"{PAGE} has other tables than {TABLE}\nnote: run docgen/reference_recipes.py")
        return 1
    if not options.check:
        path.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
