"""Tensor scales of recipes, by their names (docs/reference/numerics.md has the recipes)."""

from __future__ import annotations

from ..errors import UsageError
from ..formats import FORMATS
from ..manifest import SCALE_LAYOUTS

#: The formats that matmuls take.
_FORMATS = {name: FORMATS[name] for name in ("nvfp4", "mxfp4")}
#: The recipe of each format where none is named.
DEFAULT_RECIPES = {name: facts.recipe for name, facts in _FORMATS.items()}
#: Elements that share a block scale.
BLOCKS = {name: facts.block for name, facts in _FORMATS.items()}

#: Rules by which the scales of two tensors become the factor of their matmul, if not amax_product.
_ALPHAS = {name: rule for rule, names in {
    "decode_scales": ("torchao", "torchao_cuda", "torchao_0_16", "torchao_0_16_cuda", "modelopt",
                      "modelopt_0_44", "modelopt_static"),
    "over_encode_scales": ("flashinfer", "flashinfer_exact", "vllm", "mslk", "mslk_1_3",
                           "compressed_tensors", "compressed_tensors_f32",
                           "flashinfer_four_over_six", "flashinfer_four_over_six_exact"),
}.items() for name in names}

_E2M1_MAX = 6.0
_E4M3_MAX = {name: 256.0 for name in (
    "four_over_six", "four_over_six_squared", "four_over_six_largest", "fouroversix",
    "fouroversix_mae", "fouroversix_abs_max")}
#: Rules by which the scale of the tensor follows from its amax, if not guarded_divide.
_RULES = {name: rule for rule, names in {
    "one": ("torchao_1level", "torchao_1level_cuda", "torchao_1level_0_17", "ggml_nvfp4"),
    "positive_divide": ("transformer_engine_transform", "transformer_engine_transform_fast"),
    "divide": ("cutlass", "mslk", "mslk_1_3"),
    "divide_unless_zero": ("fouroversix", "fouroversix_mae", "fouroversix_abs_max"),
    "reciprocal": ("pytorch_eager", "flashinfer", "flashinfer_exact", "vllm",
                   "flashinfer_four_over_six", "flashinfer_four_over_six_exact"),
    "reciprocal_or_one": ("compressed_tensors", "compressed_tensors_f32"),
    "decode_divide": ("torchao", "torchao_0_16", "modelopt", "modelopt_0_44", "modelopt_static"),
    "decode_multiply": ("torchao_cuda", "torchao_0_16_cuda"),
}.items() for name in names}


def check_format(name: str) -> str:
    """`name`, or a UsageError if it is no format that matmuls take."""
    if name not in BLOCKS:
        raise UsageError(f"'format' must be nvfp4 or mxfp4, but got {name!r}",
                         "fp4.compat.flashinfer.mxfp8_quantize has MXFP8")
    return name


def check_layout(name: str) -> str:
    if name not in SCALE_LAYOUTS:
        raise UsageError(f"'layout' must be linear or tiled_128x4, but got {name!r}",
                         "matmuls take tiled_128x4")
    return name


def decisions(recipe: str) -> dict[str, str]:
    """The name of a recipe, under "name", and the decisions in which it differs."""
    name, *rest = (part.strip() for part in recipe.split(","))
    found = {"name": name}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f"'recipe' must be 'name, decision = value, ...', but got {recipe!r}",
                             "docs/reference/recipes.md has the recipes and their decisions")
        found[key.strip()] = value.strip()
    return found


def tensor_scale_rule(recipe: str) -> str:
    """The decision tensor_scale of a recipe of NVFP4: how its scale of the tensor follows from the
    amax (docs/reference/numerics.md)."""
    found = decisions(recipe)
    return found.get("tensor_scale") or _RULES.get(found["name"], "guarded_divide")


def has_tensor_scale(format: str, recipe: str) -> bool:
    """Returns True if data of this recipe has a scale of the whole tensor besides the block
    scales."""
    return format == "nvfp4" and tensor_scale_rule(recipe) != "one"


def alpha_rule(recipe: str) -> str:
    """The decision alpha of a recipe of NVFP4 (docs/reference/recipes.md)."""
    found = decisions(recipe)
    return found.get("alpha") or _ALPHAS.get(found["name"], "amax_product")


def computes_in_bf16(recipe: str) -> bool:
    """Returns True if the rule reciprocal_or_one rounds to bf16."""
    found = decisions(recipe)
    default = "bf16" if found["name"] == "compressed_tensors" else "f32"
    return found.get("amax_arithmetic", default) == "bf16"


def is_supplied(recipe: str) -> bool:
    """Returns True if the encode scale stands in place of the amax."""
    return tensor_scale_rule(recipe) == "supplied"


def is_supplied_decode(recipe: str) -> bool:
    """Returns True if the decode scale stands in place of the amax."""
    return tensor_scale_rule(recipe) == "supplied_decode"


def range_of(recipe: str) -> float:
    """The amax divided by the decode scale, 6 * 448 = 2688 or 6 * 256."""
    found = decisions(recipe)
    return _E2M1_MAX * float(found.get("e4m3_max", _E4M3_MAX.get(found["name"], 448.0)))
