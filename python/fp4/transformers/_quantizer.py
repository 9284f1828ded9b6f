"""The quantizer of transformers for models of fp4: saved ones, and those that are quantized while
they are loaded."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from typing import Any

import torch
from transformers.core_model_loading import ConversionOps
from transformers.quantizers import register_quantizer
from transformers.quantizers.quantizers_utils import should_convert_module

from ..errors import CompileError, UsageError
from ..torch import convert
from ..torch.candidates import Candidate, candidates
from ..torch.records import Record, module_of
from ._config import METHOD, FP4Config
from ._layers import LayersHfQuantizer, forget_ties, layers_of, refuse_offload

#: Bytes of an element in 4 bits with its share of a block scale.
_BYTES = {"nvfp4": 0.5625, "mxfp4": 0.53125}


@register_quantizer(METHOD)
class FP4HfQuantizer(LayersHfQuantizer):
    """Makes the layers of a saved model before transformers loads their tensors, and those of a
    16-bit model one by one while it does."""

    quantization_config: FP4Config

    def __init__(self, quantization_config: FP4Config, **options: Any) -> None:
        super().__init__(quantization_config, **options)
        self._aim = convert.Aim(training=False, square=False, activations="token", check=True,
                                **quantization_config._options)
        #: Names of the parameters that are quantized when they are loaded.
        self._waiting: set[str] = set()

    #===--- Before and after loading -------------------------------------===#

    def _process_model_before_weight_loading(self, model: Any, **_: Any) -> Any:
        config = self.quantization_config
        if not self.pre_quantized:
            self._waiting = self._chosen(model)
            return model
        if not config.layers:
            raise UsageError("the 'quantization_config' of config.json must have layers, but has "
                             "none", "the file is damaged")
        for name, record in config.layers.items():
            _make(model, name, record)
        forget_ties(model, config.layers)
        ignored = {re.escape(name) for name in _absent(config.layers)}
        model._keys_to_ignore_on_load_unexpected = ignored | set(
            model._keys_to_ignore_on_load_unexpected or ())
        return model

    def _process_model_after_weight_loading(self, model: Any, **_: Any) -> Any:
        if not self.pre_quantized:
            return self._finish(model)
        for name in self.quantization_config.layers:
            layer = model.get_submodule(name)
            vars(layer).pop("_is_hf_initialized", None)
            for called, tensor in (*layer.named_parameters(), *layer.named_buffers()):
                if tensor.is_meta:
                    raise UsageError(f"the checkpoint must have the tensor '{name}.{called}', but "
                                     "has not", "it is damaged, or of another model")
        return model

    def get_state_dict_and_metadata(self, model: Any) -> tuple[dict[str, torch.Tensor], Any]:
        self.quantization_config.layers = layers_of(model)  # which may have changed
        guards = {name: torch.zeros(1, dtype=torch.uint8)
                  for name in _absent(self.quantization_config.layers)}
        return {**model.state_dict(), **guards}, {}

    #===--- Quantization while a model is loaded -------------------------===#

    def _filter(self, module: torch.nn.Module, name: str) -> bool:
        del module
        kept: bool = should_convert_module(name, self.quantization_config.modules_to_not_convert)
        return kept

    def _chosen(self, model: Any) -> set[str]:
        """Weights that need nothing but themselves to be quantized. Layers that share a weight,
        transposed ones and experts are left to _finish."""
        _warn_of_unknown(model, self.quantization_config.modules_to_not_convert)
        ties = getattr(model, "all_tied_weights_keys", None) or {}
        shared = {*ties, *ties.values()}
        found = candidates(model, self._filter, self.quantization_config.head)
        names = Counter(id(candidate.module) for candidate in found)
        return {f"{candidate.name}.weight" for candidate in found
                if type(candidate.module) is torch.nn.Linear and not candidate.obstacle
                and names[id(candidate.module)] == 1 and f"{candidate.name}.weight" not in shared}

    def quantize(self, model: Any, name: str, weight: torch.Tensor) -> bool:
        """Puts the layer of a weight that was loaded into the model. Returns False where that
        fails, for which _finish finds the reason."""
        place = name.removesuffix(".weight")
        layer = model.get_submodule(place)
        if tuple(weight.shape) != (layer.out_features, layer.in_features):
            raise UsageError(f"layer '{place}' must have a weight of {layer.out_features} x "
                             f"{layer.in_features}, but the checkpoint has {list(weight.shape)}",
                             "if it is in 4 bits already, call fp4.transformers.register with its "
                             "quant_method, and pass no quantization_config")
        if layer.bias is not None and layer.bias.device != weight.device:
            return False
        plain = convert.plain_linear(weight, layer.bias).train(layer.training)
        try:
            made = convert.attempt(Candidate(place, plain), self._aim)
        except (UsageError, CompileError):
            return False
        assert isinstance(made, torch.nn.Module)
        made._is_hf_initialized = True  # type: ignore[assignment]
        convert.put(model, place, made)
        return True

    def _finish(self, model: Any) -> Any:
        refuse_offload(model)
        for module in model.modules():
            if type(module).__module__.startswith("fp4."):
                vars(module).pop("_is_hf_initialized", None)
        config = self.quantization_config
        convert.quantize_(model, self._filter, head=config.head,
                          skip_unsupported=config.skip_unsupported, **config._options)
        if not layers_of(model):
            raise UsageError("the model must have a linear layer to quantize, but every layer "
                             "stays as it is", "look at modules_to_not_convert, or load the model "
                             "without a quantization_config")
        return model

    def param_needs_quantization(self, model: Any, param_name: str, **_: Any) -> bool:
        del model
        return param_name in self._waiting

    def get_quantize_ops(self) -> ConversionOps:
        return _Quantize(self)

    @property
    def quantized_element_size(self) -> float | None:
        return None if self.pre_quantized else _BYTES[self.quantization_config.format]


class _Quantize(ConversionOps):  # type: ignore[misc]
    """The operation on a weight that transformers has loaded."""

    def __init__(self, quantizer: FP4HfQuantizer) -> None:
        self._quantizer = quantizer

    def convert(self, input_dict: dict[str, Any], *, model: Any = None,
                missing_keys: set[str] | None = None, **_: Any) -> dict[str, Any]:
        left = {}
        for name, value in input_dict.items():
            weight = value[0] if isinstance(value, list) else value
            if not self._quantizer.quantize(model, name, weight):
                left[name] = value
            elif missing_keys is not None:
                missing_keys.discard(name)
        return left


def _make(model: Any, name: str, record: Record) -> None:
    parent, _, last = name.rpartition(".")
    try:
        holder = model.get_submodule(parent)
        getattr(holder, last)
    except AttributeError as error:
        raise UsageError(f"the model has no layer '{name}', which is one of fp4 in the checkpoint",
                         "its config.json is of another model") from error
    layer = module_of(record)
    layer._is_hf_initialized = True  # type: ignore[assignment]
    setattr(holder, last, layer.train(holder.training))


def _absent(layers: dict[str, Record]) -> list[str]:
    """The parameters that the model has without fp4, and not with it. The parameters of experts are
    left out, because transformers takes them apart when it saves a model."""
    return [f"{name}.weight" for name, record in layers.items()
            if record["class"].endswith("Linear")]


def _warn_of_unknown(model: torch.nn.Module, patterns: list[str]) -> None:
    names = [name for name, _ in model.named_modules() if name]
    for pattern in patterns:
        if all(should_convert_module(name, [pattern]) for name in names):
            warnings.warn(f"no module of the model matches '{pattern}' of modules_to_not_convert",
                          stacklevel=2)
