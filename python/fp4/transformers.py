"""Models of transformers with layers of fp4: saved by save_pretrained, loaded by from_pretrained.

    import fp4.transformers                          # before from_pretrained: it registers fp4

    fp4.torch.quantize_(model, weight_only=True)
    model.save_pretrained("model-fp4")
    model = transformers.AutoModelForCausalLM.from_pretrained("model-fp4")

quantize_ writes what each layer is into model.config.quantization_config, with the quant_method
"fp4". Without the import transformers would leave the layers with random weights. The file
therefore has a tensor of one byte under the name of each linear weight, whose shape transformers
refuses.
"""

from __future__ import annotations

import json
import re
from typing import Any

import torch

from .errors import UsageError
from .torch.records import Record, is_recorded, module_of, record_of

try:
    from transformers import PreTrainedModel
    from transformers.quantizers import (
        HfQuantizer,
        register_quantization_config,
        register_quantizer,
    )
    from transformers.utils.quantization_config import QuantizationConfigMixin
except ImportError as error:
    raise ImportError("fp4.transformers needs transformers\nnote: pip install transformers"
                      ) from error

METHOD = "fp4"
_VERSION = 1


@register_quantization_config(METHOD)
class FP4Config(QuantizationConfigMixin):  # type: ignore[misc]
    """The section of config.json.

    Attributes:
        layers: the record of each module of fp4, by its name in the model.
    """

    def __init__(self, layers: dict[str, Any] | None = None, version: int = _VERSION,
                 records: list[Record] | None = None, **_: Any) -> None:
        if version != _VERSION:
            raise UsageError(f"the checkpoint must have version {_VERSION} of the layers of fp4, "
                             f"but has {version}", "load it with the fp4 that wrote it")
        self.quant_method, self.version = METHOD, version
        try:
            self.layers: dict[str, Record] = {
                name: record if records is None else records[record]
                for name, record in (layers or {}).items()}
        except (IndexError, TypeError) as error:
            raise UsageError("'quantization_config' of config.json must have a record for each "
                             f"layer, but: {error}", "the file is damaged") from error

    def to_dict(self) -> dict[str, Any]:
        """Layers of the same record share it."""
        names = sorted(self.layers)
        texts = [json.dumps(self.layers[name], sort_keys=True) for name in names]
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        return {"quant_method": METHOD, "version": self.version,
                "records": [json.loads(text) for text in places],
                "layers": {name: places[text] for name, text in zip(names, texts)}}


@register_quantizer(METHOD)
class FP4HfQuantizer(HfQuantizer):  # type: ignore[misc]
    """Makes the layers of a checkpoint before transformers loads their tensors."""

    def _process_model_before_weight_loading(self, model: Any, **_: Any) -> Any:
        if not self.quantization_config.layers:
            raise UsageError("an FP4Config must have layers, but has none",
                             "load the model without it, and call fp4.torch.quantize_(model)")
        for name, record in self.quantization_config.layers.items():
            parent, _, last = name.rpartition(".")
            try:
                holder = model.get_submodule(parent)
                getattr(holder, last)
            except AttributeError as error:
                raise UsageError(f"the model has no layer '{name}', which is one of fp4 in the "
                                 "checkpoint", "its config.json is of another model") from error
            layer = module_of(record)
            layer._is_hf_initialized = True  # type: ignore[assignment]
            setattr(holder, last, layer.train(holder.training))
        _forget_ties(model, self.quantization_config.layers)
        ignored = {re.escape(name) for name in _absent(self.quantization_config.layers)}
        model._keys_to_ignore_on_load_unexpected = ignored | set(
            model._keys_to_ignore_on_load_unexpected or ())
        return model

    def get_state_dict_and_metadata(self, model: Any) -> tuple[dict[str, torch.Tensor], Any]:
        self.quantization_config.layers = _layers_of(model)  # which may have changed
        guards = {name: torch.zeros(1, dtype=torch.uint8)
                  for name in _absent(self.quantization_config.layers)}
        return {**model.state_dict(), **guards}, {}

    def _process_model_after_weight_loading(self, model: Any, **_: Any) -> Any:
        for name in self.quantization_config.layers:
            layer = model.get_submodule(name)
            vars(layer).pop("_is_hf_initialized", None)
            for called, tensor in (*layer.named_parameters(), *layer.named_buffers()):
                if tensor.is_meta:
                    raise UsageError(f"the checkpoint must have the tensor '{name}.{called}', but "
                                     "has not", "it is damaged, or of another model")
        return model

    def is_serializable(self) -> bool:
        return True

    @property
    def is_trainable(self) -> bool:
        return True

    @property
    def is_compileable(self) -> bool:
        return True


def _absent(layers: dict[str, Record]) -> list[str]:
    """The parameters that the model has without fp4, and not with it. The parameters of experts are
    left out, because transformers takes them apart when it saves a model."""
    return [f"{name}.weight" for name, record in layers.items()
            if record["class"].endswith("Linear")]


def record(model: torch.nn.Module) -> None:
    """Writes into the configuration of a model of transformers what its layers of fp4 are; a model
    without them has no such section. `model` may hold it, as PEFT's models do."""
    for found in model.modules():
        if isinstance(found, PreTrainedModel):
            _record(found)
            return


def _record(model: Any) -> None:
    layers = _layers_of(model)
    if not layers:
        if isinstance(getattr(model, "hf_quantizer", None), FP4HfQuantizer):
            model.hf_quantizer.remove_quantization_config(model)
        return
    config = FP4Config(layers)
    model.config.quantization_config = config
    model.hf_quantizer = FP4HfQuantizer(config)
    model.is_quantized, model.quantization_method = True, METHOD
    _forget_ties(model, layers)


def _layers_of(model: torch.nn.Module) -> dict[str, Record]:
    layers: dict[str, Record] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if is_recorded(module) and not any(name.startswith(f"{outer}.") for outer in layers):
            layers[name.removesuffix(".base_layer")] = record_of(module)  # under an adapter of PEFT
    return layers


def _forget_ties(model: torch.nn.Module, layers: dict[str, Record]) -> None:
    """A head in 4 bits shares no weight with the embedding any more."""
    ties = getattr(model, "all_tied_weights_keys", None)
    if not isinstance(ties, dict):
        return
    kept = {one: other for one, other in ties.items()
            if not any(key.rpartition(".")[0] in layers for key in (one, other))}
    if len(kept) != len(ties):
        model.all_tied_weights_keys = kept  # type: ignore[assignment]
        model.config.tie_word_embeddings = False  # type: ignore[union-attr]
