"""The layers of fp4 in a model of transformers, and what its configuration says about them."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.quantizers import HfQuantizer

from ..errors import UsageError
from ..torch.records import Record, is_recorded, record_of
from ._config import METHOD, FP4Config


class LayersHfQuantizer(HfQuantizer):  # type: ignore[misc]
    """A quantizer of transformers whose models have layers of fp4."""

    def is_serializable(self) -> bool:
        return True

    @property
    def is_trainable(self) -> bool:
        return True

    @property
    def is_compileable(self) -> bool:
        return True


def record(model: torch.nn.Module) -> None:
    """Writes into the configuration of a model of transformers what its layers of fp4 are; a model
    without them has no such section. `model` may hold it, as PEFT's models do."""
    for found in model.modules():
        if isinstance(found, PreTrainedModel):
            _record(found)
            return


def _record(model: Any) -> None:
    from ._quantizer import FP4HfQuantizer

    layers = layers_of(model)
    if not layers:
        if isinstance(getattr(model, "hf_quantizer", None), FP4HfQuantizer):
            model.hf_quantizer.remove_quantization_config(model)
        return
    config = FP4Config(layers=layers)
    model.config.quantization_config = config
    model.hf_quantizer = FP4HfQuantizer(config)
    model.is_quantized, model.quantization_method = True, METHOD
    forget_ties(model, layers)


def layers_of(model: torch.nn.Module) -> dict[str, Record]:
    """The record of each layer of fp4, by its name in the model."""
    layers: dict[str, Record] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if is_recorded(module) and not any(name.startswith(f"{outer}.") for outer in layers):
            layers[name.removesuffix(".base_layer")] = record_of(module)  # under an adapter of PEFT
    return layers


def forget_ties(model: torch.nn.Module, layers: Container[str]) -> None:
    """A head in 4 bits shares no weight with the embedding any more."""
    ties = getattr(model, "all_tied_weights_keys", None)
    if not isinstance(ties, dict):
        return
    kept = {one: other for one, other in ties.items()
            if not any(key.rpartition(".")[0] in layers for key in (one, other))}
    if len(kept) != len(ties):
        model.all_tied_weights_keys = kept  # type: ignore[assignment]
        model.config.tie_word_embeddings = False  # type: ignore[union-attr]


def refuse_offload(model: torch.nn.Module) -> None:
    """Refuses a model of which transformers keeps a part on the CPU or on a disk, from where
    accelerate fetches tensors that are no more those of the layers."""
    places = {str(place) for place in (getattr(model, "hf_device_map", None) or {}).values()}
    if "disk" in places or ("cpu" in places and len(places) > 1):
        raise UsageError("'device_map' must place all layers on GPUs, or all on the CPU, but "
                         f"places them on {', '.join(sorted(places))}",
                         "the model in 4 bits may fit: save it, and load what was saved")
