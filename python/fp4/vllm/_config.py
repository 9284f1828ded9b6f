"""The quantization method "fp4" of vLLM."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from vllm.model_executor.layers.attention import Attention, MLAAttention
from vllm.model_executor.layers.fused_moe.routed_experts import RoutedExperts
from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod
from vllm.model_executor.layers.quantization import register_quantization_config
from vllm.model_executor.layers.quantization.base_config import (
    QuantizationConfig,
    QuantizeMethodBase,
)
from vllm.model_executor.layers.quantization.kv_cache import BaseKVCacheMethod

from ._experts import ExpertsMethod
from ._linear import FP4LinearMethod
from ._scheme import Scheme, scheme_of

METHOD = "fp4"


@register_quantization_config(METHOD)
class FP4Config(QuantizationConfig):  # type: ignore[misc]
    """Gives layers of a checkpoint in NVFP4 or MXFP4 the kernels of fp4. Scales of keys and values
    go to vLLM's own attention.

    Attributes:
        kv_cache_scheme: asks vLLM for a cache in FP8, if the user chooses none; or None.
    """

    def __init__(self, scheme: Scheme) -> None:
        super().__init__()
        self.scheme = scheme
        self.kv_cache_scheme = {"strategy": "tensor"} if scheme.cache == "fp8" else None

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
        """Gives layers that are named the names that vLLM has for them. The pattern "path*" of
        ModelOpt is a layer and what is below; regular expressions stay."""
        def mapped(given: tuple[str, ...]) -> tuple[str, ...]:
            patterns = [name for name in given if name.startswith("re:")]
            names = [name.rstrip("*") if name[-2:-1].isalnum() else name
                     for name in given if name not in patterns]
            return (*patterns, *hf_to_vllm_mapper.apply_list(names))

        self.scheme = dataclasses.replace(self.scheme, ignored=mapped(self.scheme.ignored),
                                          targets=mapped(self.scheme.targets))

    def get_quant_method(self, layer: torch.nn.Module, prefix: str) -> QuantizeMethodBase | None:
        if isinstance(layer, LinearBase):
            keeps = self.scheme.experts_alone or self._keeps(prefix)
            return UnquantizedLinearMethod() if keeps else FP4LinearMethod(self.scheme)
        if isinstance(layer, RoutedExperts) and not self.scheme.stays_experts(prefix):
            return ExpertsMethod(self.scheme, layer.moe_config)
        if isinstance(layer, (Attention, MLAAttention)) and self.scheme.cache:
            return BaseKVCacheMethod(self)
        return None

    def _keeps(self, prefix: str) -> bool:
        """Returns True for a layer that stays."""
        parent, _, last = prefix.rpartition(".")
        return self.scheme.stays(prefix, [f"{parent}.{part}" if parent else part for part in
                                          self.packed_modules_mapping.get(last, [last])])
