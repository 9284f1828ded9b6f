"""The quantization method "fp4" of vLLM."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from vllm.model_executor.layers.fused_moe.routed_experts import RoutedExperts
from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod
from vllm.model_executor.layers.quantization import register_quantization_config
from vllm.model_executor.layers.quantization.base_config import (
    QuantizationConfig,
    QuantizeMethodBase,
)

from ..errors import UsageError
from ._experts import ExpertsMethod
from ._linear import FP4LinearMethod
from ._scheme import Scheme, scheme_of

METHOD = "fp4"


@register_quantization_config(METHOD)
class FP4Config(QuantizationConfig):  # type: ignore[misc]
    """Gives layers of a checkpoint in NVFP4 or MXFP4 the kernels of fp4."""

    def __init__(self, scheme: Scheme) -> None:
        super().__init__()
        self.scheme = scheme

    def get_name(self) -> str:
        return METHOD

    def get_supported_act_dtypes(self) -> list[torch.dtype]:
        # float16 has not the exponents of MXFP4.
        return [torch.bfloat16] + [torch.float16] * (self.scheme.format == "nvfp4")

    @classmethod
    def get_min_capability(cls) -> int:
        return 90

    @staticmethod
    def get_config_filenames() -> list[str]:
        return ["hf_quant_config.json"]

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> FP4Config:
        return cls(scheme_of(config))

    @classmethod
    def override_quantization_method(cls, hf_quant_cfg: dict[str, Any], user_quant: str | None,
                                     hf_config: Any = None) -> str | None:
        """Claims a checkpoint that a user asks for with `--quantization fp4`, and no other."""
        del hf_config
        if user_quant != METHOD:
            return None
        scheme_of(hf_quant_cfg)
        return METHOD

    def apply_vllm_mapper(self, hf_to_vllm_mapper: Any) -> None:
        """Gives layers that stay the names that vLLM has for them. The pattern "path*" of ModelOpt
        is a layer and what is below; regular expressions stay."""
        patterns = [name for name in self.scheme.ignored if name.startswith("re:")]
        names = [name.rstrip("*") if name[-2:-1].isalnum() else name
                 for name in self.scheme.ignored if name not in patterns]
        self.scheme = dataclasses.replace(
            self.scheme, ignored=(*patterns, *hf_to_vllm_mapper.apply_list(names)))

    def get_quant_method(self, layer: torch.nn.Module, prefix: str) -> QuantizeMethodBase | None:
        if isinstance(layer, LinearBase):
            keeps = self.scheme.experts_alone or self._keeps(prefix)
            return UnquantizedLinearMethod() if keeps else FP4LinearMethod(self.scheme)
        if isinstance(layer, RoutedExperts) and not self._keeps(prefix):
            return ExpertsMethod(self.scheme, layer.moe_config)
        return None

    def _keeps(self, prefix: str) -> bool:
        """Returns True for a layer that stays: all parts that vLLM makes one layer stay, or none
        does."""
        parent, _, last = prefix.rpartition(".")
        parts = [f"{parent}.{part}" if parent else part
                 for part in self.packed_modules_mapping.get(last, [last])]
        kept = [part for part in parts if self.scheme.keeps(part)]
        if kept and len(kept) != len(parts) and not self.scheme.keeps(prefix):
            raise UsageError(f"layers {', '.join(parts)} must all be in 4 bits or none, because "
                             f"vLLM makes them one, but {', '.join(kept)} stays",
                             "quantize the checkpoint with all of them, or without")
        return bool(kept) or self.scheme.keeps(prefix)
