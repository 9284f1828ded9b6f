"""The layouts of checkpoints: the names, types and meanings of the tensors of a quantized weight.

Sources: compressed-tensors 0.20.0 (compressors.nvfp4, compressors.mxfp4), nvidia-modelopt 0.47.0
(torch.export.quant_utils, torch.quantization.qtensor), vLLM 0.33.0 (the loaders of both, and
models.gpt_oss), and the model files of gpt-oss.
"""

from __future__ import annotations

import dataclasses

from ..errors import UsageError


@dataclasses.dataclass(frozen=True)
class Kind:
    """How a layout stores the weights of one format. Names of tensors are the name of the weight
    and one of these endings.

    Attributes:
        format: "nvfp4" or "mxfp4".
        data: uint8 [R, K/2] with the even column in the low nibble.
        scales: of blocks, linear: E4M3 [R, K/16], or the bytes of UE8M0 [R, K/32].
        level: the scale of the tensor, one float32; "" where there is none.
        convention: what `level` is: "encode", 2688 / amax, or "decode", amax / 2688.
        input: likewise for the input of the layer, which may be missing.
        recipe: how fp4 decodes the weight as the layout's own package does (docs/Numerics.md).
        words: one of which config.json must have, if it says anything.
        is_blocked: data are [..., R, K/32, 16] and scales [..., R, K/32], where a leading size
            counts experts.
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


@dataclasses.dataclass(frozen=True)
class Layout:
    """The convention of one package.

    Attributes:
        methods: what config.json may call it under quant_method.
        kinds: of weights, by format.
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

_MODELOPT = Layout(
    "modelopt", ("modelopt", "modelopt_fp4"),
    (Kind("nvfp4", ".weight", ".weight_scale", "modelopt, tensor_scale = supplied_decode",
          ".weight_scale_2", "decode", ".input_scale",
          ("NVFP4", "W4A16_NVFP4", "NVFP4_AWQ", "NVFP4_SVD", "W4A8_NVFP4_FP8")),
     Kind("mxfp4", ".weight", ".weight_scale", "mxfp4_modelopt",
          words=("MXFP4", "W4A8_MXFP4_FP8"))),
    (".pre_quant_scale", ".svdquant_lora_a", ".svdquant_lora_b"),
    needs_config=("mxfp4",))

_GPT_OSS = Layout(
    "gpt-oss", ("mxfp4",),
    (Kind("mxfp4", "_blocks", "_scales", "ocp_floor", is_blocked=True),))

_GPT_OSS_ORIGINAL = Layout(
    "gpt-oss-original", (),
    (Kind("mxfp4", ".blocks", ".scales", "ocp_floor", is_blocked=True),))

#: The layouts by their names: compressed-tensors; modelopt; gpt-oss, the files of transformers and
#: vLLM; and gpt-oss-original, the files of the model's authors.
LAYOUTS = {layout.name: layout for layout in (_COMPRESSED_TENSORS, _MODELOPT, _GPT_OSS,
                                              _GPT_OSS_ORIGINAL)}


def layout_of(name: str) -> Layout:
    """The layout `name`, or a UsageError that lists the names."""
    if name not in LAYOUTS:
        raise UsageError(f"'layout' must be {', '.join(LAYOUTS)}, but got {name!r}",
                         "without a layout the names of the tensors say which it is")
    return LAYOUTS[name]
