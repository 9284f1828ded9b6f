"""The layouts of checkpoints: the names, types and meanings of the tensors of a quantized weight.

Sources: compressed-tensors 0.20.0 (compressors.nvfp4, compressors.mxfp4), nvidia-modelopt 0.47.0
(torch.export.quant_utils, torch.export.unified_export_hf, torch.quantization.qtensor), vLLM 0.33.0
(the loaders of both, and models.gpt_oss), transformers 5.24.0 (integrations.finegrained_fp8 and
models.deepseek_v4), and the model files of gpt-oss.
"""

from __future__ import annotations

import dataclasses

from ..errors import UsageError


@dataclasses.dataclass(frozen=True)
class Kind:
    """The way in which a layout stores the weights of one format. Names of tensors are the name of
    the weight and one of these endings.

    Attributes:
        format: "nvfp4" or "mxfp4".
        data: uint8 [R, K/2] with the even column in the low nibble.
        scales: of blocks, linear: E4M3 [R, K/16], or the bytes of UE8M0 [R, K/32].
        level: the scale of the tensor, one float32; "" where there is none.
        convention: of `level`, as in GlobalScale.
        input: likewise for the input of the layer, which may be missing.
        recipe: how fp4 decodes the weight as the layout's own package does (reference/recipes.md).
        words: one of which config.json must have, if it says anything.
        is_blocked: data are [..., R, K/32, 16] and scales [..., R, K/32], where a leading size
            counts experts.
        stacks: data may also be [E, R, K/2], or [E, K/2, R] with scales [E, K/16, R]. `level` and
            `input` are one number for all experts then, or one for each.
        types: of `data`, as safetensors names them.
        scale_types: likewise; those of the format, if there are none.
    """

    format: str
    data: str
    scales: str
    recipe: str
    level: str = ""
    convention: str = ""
    input: str = ""
    words: tuple[str, ...] = ()
    is_blocked: bool = False
    stacks: bool = False
    types: tuple[str, ...] = ("U8", "F4")
    scale_types: tuple[str, ...] = ()

    @property
    def types_of_scales(self) -> tuple[str, ...]:
        return self.scale_types or _SCALE_TYPES[self.format]

    def same_names(self, other: Kind) -> bool:
        """Returns True if the type of the block scales alone tells the two apart."""
        return (self.data, self.scales) == (other.data, other.scales)


_SCALE_TYPES = {"nvfp4": ("F8_E4M3",), "mxfp4": ("U8", "F8_E8M0")}


@dataclasses.dataclass(frozen=True)
class Layout:
    """The convention of one package.

    Attributes:
        methods: what config.json may call it under quant_method.
        kinds: of weights. The first of a format is the one that is written.
        changes: endings of tensors that change what a layer computes, and that fp4 has no use for.
        needs_config: formats whose names other packages use too, so that config.json must decide.
    """

    name: str
    methods: tuple[str, ...]
    kinds: tuple[Kind, ...]
    changes: tuple[str, ...] = ()
    needs_config: tuple[str, ...] = ()

    def kind(self, format: str) -> Kind:
        for kind in self.kinds:
            if kind.format == format:
                return kind
        formats = " or ".join(kind.format for kind in self.kinds)
        raise UsageError(f"layout '{self.name}' must have weights of {formats}, but got {format}",
                         "write another layout, or quantize to another format")


_COMPRESSED_TENSORS = Layout(
    "compressed-tensors", ("compressed-tensors",),
    (Kind("nvfp4", ".weight_packed", ".weight_scale",
          "compressed_tensors, tensor_scale = supplied", ".weight_global_scale", "encode",
          ".input_global_scale", ("nvfp4-pack-quantized",)),
     Kind("mxfp4", ".weight_packed", ".weight_scale", "mxfp4_compressed_tensors",
          words=("mxfp4-pack-quantized",))),
    (".weight_zero_point", ".weight_g_idx"))

_MODELOPT_RECIPE = "modelopt, tensor_scale = supplied_decode"
_MODELOPT_WORDS = ("NVFP4", "W4A16_NVFP4", "NVFP4_AWQ", "NVFP4_SVD", "W4A8_NVFP4_FP8")

_MODELOPT = Layout(
    "modelopt", ("modelopt", "modelopt_fp4"),
    (Kind("nvfp4", ".weight", ".weight_scale", _MODELOPT_RECIPE, ".weight_scale_2", "decode",
          ".input_scale", _MODELOPT_WORDS, stacks=True),
     Kind("mxfp4", ".weight", ".weight_scale", "mxfp4_modelopt",
          words=("MXFP4", "W4A8_MXFP4_FP8"), stacks=True),
     # Experts that are parameters of one module, such as those of gpt-oss and Llama 4.
     Kind("nvfp4", "", "_weight_scale", _MODELOPT_RECIPE, "_weight_scale_2", "decode",
          "_input_scale", _MODELOPT_WORDS, stacks=True)),
    (".pre_quant_scale", ".svdquant_lora_a", ".svdquant_lora_b"),
    needs_config=("mxfp4",))

_GPT_OSS = Layout(
    "gpt-oss", ("mxfp4",),
    (Kind("mxfp4", "_blocks", "_scales", "ocp_floor", is_blocked=True),))

_GPT_OSS_ORIGINAL = Layout(
    "gpt-oss-original", (),
    (Kind("mxfp4", ".blocks", ".scales", "ocp_floor", is_blocked=True),))

_DEEPSEEK = Layout(
    "deepseek", ("fp8",),
    (Kind("mxfp4", ".weight", ".scale", "ocp_floor", types=("I8",), scale_types=("F8_E8M0",)),))

#: The layouts by their names: compressed-tensors; modelopt; gpt-oss, the files of transformers and
#: vLLM; gpt-oss-original, the files of the model's authors; and deepseek, the experts of
#: DeepSeek-V4.
LAYOUTS = {layout.name: layout for layout in (_COMPRESSED_TENSORS, _MODELOPT, _GPT_OSS,
                                              _GPT_OSS_ORIGINAL, _DEEPSEEK)}


def layout_of(name: str) -> Layout:
    """The layout `name`, or a UsageError that lists the names."""
    if name not in LAYOUTS:
        raise UsageError(f"'layout' must be {', '.join(LAYOUTS)}, but got {name!r}",
                         "without a layout the names of the tensors say which it is")
    return LAYOUTS[name]
