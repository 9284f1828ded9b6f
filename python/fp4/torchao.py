"""fp4 in torchao's quantize_: torchao.quantization.quantize_(model, FP4WeightOnlyConfig())."""

from __future__ import annotations

import dataclasses

import torch

from .errors import UsageError
from .torch import QuantizedLinear, WeightOnlyLinear
from .torch.recipes import check_format

try:
    from torchao.core.config import AOBaseConfig  # type: ignore[import-not-found]
    from torchao.quantization import transform_module  # type: ignore[import-not-found]
except ImportError as error:
    raise ImportError("fp4.torchao needs torchao\nnote: pip install torchao") from error


@dataclasses.dataclass
class FP4WeightOnlyConfig(AOBaseConfig):  # type: ignore[misc]
    """Makes fp4.torch.WeightOnlyLinear layers. Arguments are those of fp4.torch.quantize_."""

    format: str = "nvfp4"
    recipe: str = ""
    batch_invariant: bool = False

    def __post_init__(self) -> None:
        check_format(self.format)


def _transform(module: torch.nn.Module, config: FP4WeightOnlyConfig) -> torch.nn.Module:
    """The layer that takes the place of `module`; one of fp4 stays."""
    if isinstance(module, (QuantizedLinear, WeightOnlyLinear)):
        return module
    if type(module) is not torch.nn.Linear:
        raise UsageError(f"layers must be torch.nn.Linear, but one is a {type(module).__name__}",
                         "pass a filter_fn that is False for it")
    return WeightOnlyLinear.from_linear(module, format=config.format, recipe=config.recipe,
                                        batch_invariant=config.batch_invariant)


transform_module.register_quantize_module_handler(FP4WeightOnlyConfig)(_transform)
