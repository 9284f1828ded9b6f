"""The recipes and decisions of include/fp4/Numerics/Recipes.def, for what needs them without a build."""
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "include/fp4/Numerics/Recipes.def"
FORMATS = {"NVFP4": "nvfp4", "MXFP4": "mxfp4", "MXFP6E2M3": "mxfp6_e2m3",
           "MXFP6E3M2": "mxfp6_e3m2", "MXFP8E4M3": "mxfp8_e4m3", "MXFP8E5M2": "mxfp8_e5m2"}
ROW = re.compile(r'^FP4_RECIPE\((\w+), (\w+),\s*"[^"]*"(.*?)\)$', re.M | re.S)


class Recipe:
    def __init__(self, name, format, decisions):
        self.name, self.format, self.decisions = name, FORMATS[format], decisions

    @property
    def has_tensor_scale(self):
        return self.format == "nvfp4" and "GlobalRule::One" not in self.decisions

    @property
    def rounds_to_nearest_only(self):
        """As numerics::roundsToNearestOnly has it."""
        return self.format not in ("nvfp4", "mxfp4") or bool(
            re.search("Adaptive::|Ties::TowardZero|NegativeZero::Never", self.decisions))


def recipes():
    """{name: Recipe}, in the order of the table."""
    return {name: Recipe(name, format, decisions)
            for name, format, decisions in ROW.findall(SOURCE.read_text())}
