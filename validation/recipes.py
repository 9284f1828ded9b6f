"""The formats and recipes of include/fp4/Numerics, for what needs them without a build."""
import pathlib
import re

SOURCES = pathlib.Path(__file__).resolve().parent.parent / "include/fp4/Numerics"
FORMAT = re.compile(r"^FP4_FORMAT\((\w+), (\w+), (\w+), (\d+), (\w+)\)$", re.M)
ROW = re.compile(r'^FP4_RECIPE\((\w+), (\w+),\s*"[^"]*"(.*?)\)$', re.M | re.S)


class Format:
    def __init__(self, name, element, block, scale):
        self.name, self.element, self.scale, self.block = name, "f" + element, "f" + scale, int(block)

    @property
    def is_mx(self):
        return self.scale == "f8E8M0FNU"

    @property
    def has_f32_scales(self):
        return self.scale == "f32"

    @property
    def is_packed(self):
        return self.element == "f4E2M1FN"


# The formats, by their enumerators and by their names.
ENUMERATORS = {enumerator: Format(*row)
               for enumerator, *row in FORMAT.findall((SOURCES / "Formats.def").read_text())}
FORMATS = {format.name: format for format in ENUMERATORS.values()}


class Recipe:
    def __init__(self, name, format, decisions):
        self.name, self.format, self.decisions = name, ENUMERATORS[format].name, decisions

    @property
    def has_tensor_scale(self):
        return FORMATS[self.format].scale == "f8E4M3FN" and "GlobalRule::One" not in self.decisions

    @property
    def rounds_to_nearest_only(self):
        """True if numerics::roundsToNearestOnly is."""
        return not FORMATS[self.format].is_packed or bool(
            re.search("Adaptive::|Ties::TowardZero|NegativeZero::Never", self.decisions))


def swept(number=0):
    """{format: a recipe} for sweeps of GEMMs: of each format the first, or the one with that
    number. The first of mxfp4 is the one that uses the whole range."""
    named = {name: [] for name in FORMATS}
    for recipe in recipes().values():
        named[recipe.format].append(recipe.name)
    named["mxfp4"].sort(key=lambda name: name != "ocp_rceil")
    return {name: names[number % len(names)] for name, names in named.items()
            if names}


def recipes():
    """{name: Recipe}, in the order of the table."""
    return {name: Recipe(name, format, decisions)
            for name, format, decisions in ROW.findall((SOURCES / "Recipes.def").read_text())}
