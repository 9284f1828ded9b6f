"""Checkpoints of other packages: from_pretrained loads their weights into layers of fp4."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import torch
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key
from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING, AUTO_QUANTIZER_MAPPING
from transformers.utils.quantization_config import NVFP4Config, QuantizationConfigMixin

from .. import checkpoints
from ..checkpoints._files import INDEX
from ..checkpoints._loading import Loading, Options
from ..errors import UsageError
from ..torch import QuantizedLinear, WeightOnlyLinear
from ..torch.convert import put, tell_transformers
from ._config import FP4Config
from ._layers import LayersHfQuantizer, forget_ties, refuse_offload
from ._quantizer import FP4HfQuantizer

#: The values of quant_method in config.json that `register` takes.
METHODS = ("compressed-tensors", "modelopt", "mxfp4", "nvfp4")


def register(*methods: str, weight_only: bool | None = True) -> contextlib.ExitStack:
    """Lets from_pretrained load checkpoints in NVFP4 and MXFP4 of other packages with layers of
    fp4, whose weights stay in 4 bits. transformers itself decompresses them, or does not know them.

        fp4.transformers.register("modelopt")            # for the whole process
        with fp4.transformers.register("modelopt"): ...  # for these calls

    Args:
        methods: "compressed-tensors", "modelopt" or "mxfp4", the quant_method of config.json, whose
            other formats are refused then; "nvfp4", that of NVFP4Config.
        weight_only: as in fp4.checkpoints.load_into.
    """
    if not methods:
        raise UsageError(f"'methods' must be some of {', '.join(METHODS)}, but there is none")
    for method in methods:
        if method not in METHODS:
            raise UsageError(f"'methods' must be of {', '.join(METHODS)}, but got {method!r}",
                             "it is the quant_method of config.json")
    stack = contextlib.ExitStack()
    for method in methods:
        quantizer, config = _classes_of(method, weight_only)
        for mapping, new in ((AUTO_QUANTIZER_MAPPING, quantizer),
                             (AUTO_QUANTIZATION_CONFIG_MAPPING, config)):
            stack.callback(_restore, mapping, method, mapping.get(method))
            mapping[method] = new
    return stack


def _classes_of(method: str, weight_only: bool | None) -> tuple[type, type]:
    """The quantizer of a method and the class of its config."""
    if method == "nvfp4":
        return type("NVFP4HfQuantizer", (_NVFP4HfQuantizer,), {
            "weight_only": weight_only is not False}), NVFP4Config
    return type("StoredHfQuantizer", (_StoredHfQuantizer,), {
        "weight_only": weight_only}), StoredConfig


def _restore(mapping: dict[str, Any], method: str, old: Any) -> None:
    if old is None:
        mapping.pop(method, None)
    else:
        mapping[method] = old


class _NVFP4HfQuantizer(FP4HfQuantizer):
    """Makes layers of fp4 where NVFP4Config asks for those of a kernel for Blackwell. Layers that
    have no kernel stay, as those do there that its kernel does not take."""

    weight_only = True

    def __init__(self, quantization_config: NVFP4Config, **options: Any) -> None:
        super().__init__(FP4Config(
            weight_only=self.weight_only, skip_unsupported=True,
            modules_to_not_convert=quantization_config.modules_to_not_convert), **options)


class StoredConfig(QuantizationConfigMixin):  # type: ignore[misc]
    """The section of config.json as another package wrote it, until the model is loaded."""

    def __init__(self, **section: Any) -> None:
        self.quant_method, self.section = section["quant_method"], section

    def to_dict(self) -> dict[str, Any]:
        return dict(self.section)


class _Pending(torch.nn.Linear):
    """Holds the place of a layer while transformers loads the others, and has its bytes, so that
    transformers finds a device with room for it."""

    def __init__(self, layer: torch.nn.Module, size: int) -> None:
        torch.nn.Module.__init__(self)
        self.training = layer.training
        if isinstance(layer, torch.nn.Linear):
            self.out_features, self.in_features = layer.out_features, layer.in_features
        self.register_buffer("weight", torch.empty(size, dtype=torch.uint8, device="meta"),
                             persistent=False)
        self.register_parameter("bias", None)
        self._is_hf_initialized = True


class _StoredHfQuantizer(LayersHfQuantizer):
    """Fills the places of layers from the files, after transformers has loaded the others."""

    weight_only: bool | None = True

    def _process_model_before_weight_loading(self, model: Any, *,
                                             checkpoint_files: list[str] | None = None,
                                             **_: Any) -> Any:
        self._dtype = model.dtype
        self._checkpoint = _opened(checkpoint_files, self.quantization_config.quant_method)
        names = _Names(model)
        self._loading = loading = Loading(model, self._checkpoint,
                                          Options(names, weight_only=self.weight_only))
        self._experts = {name: model.get_submodule(name) for name in loading.experts}
        _check_others(model, self._checkpoint, names, loading)
        forget_ties(model, loading.linears)
        for name in loading.names:
            layer = model.get_submodule(name)
            put(model, name, _Pending(layer, loading.stored_bytes(name)))
        ignored = {*self._checkpoint, *map(names, self._checkpoint), *loading.experts}
        model._keys_to_ignore_on_load_unexpected = {
            *(model._keys_to_ignore_on_load_unexpected or ()),
            *(rf"^{re.escape(name)}(?:[._]|$)" for name in ignored)}
        return model

    def _process_model_after_weight_loading(self, model: Any, **_: Any) -> Any:
        refuse_offload(model)
        with self._checkpoint:
            for name in self._loading.names:
                place = model.get_submodule(name).weight.device
                if name in self._experts:
                    put(model, name, self._experts[name])
                self._loading.replace(name)
                _as_dtype(model.get_submodule(name).to(place), self._dtype)
        del self._experts, self._loading
        tell_transformers(model)
        return model


def _opened(files: list[str] | None, method: str) -> checkpoints.Checkpoint:
    if not files or not all(str(file).endswith(".safetensors") for file in files):
        raise UsageError(f"a checkpoint of {method} must be in safetensors files, but "
                         f"is in {', '.join(map(str, files or ['none']))}",
                         "fp4.transformers.register was called for it")
    path = pathlib.Path(os.fspath(files[0]))
    try:
        return checkpoints.open(path if len(files) == 1 else path.parent / INDEX)
    except UsageError as error:
        note = (f"fp4.transformers.register was called for {method}; without that transformers "
                "loads its other formats")
        raise UsageError(error.message, f"{error.note}; {note}" if error.note else note) from error


class _Names:
    """The names that tensors of a checkpoint have in a model, as transformers renames them."""

    def __init__(self, model: Any) -> None:
        transforms = get_model_conversion_mapping(model)
        self._renamings = [one for one in transforms if isinstance(one, WeightRenaming)]
        self.has_converters = any(isinstance(one, WeightConverter) for one in transforms)
        self._prefix, self._state = model.base_model_prefix, model.state_dict()

    def __call__(self, name: str) -> str:
        """The name of a tensor or of a module with a weight."""
        for ending in ("", ".weight"):
            if f"{name}{ending}" in self._state:
                return name
        found, _ = rename_source_key(f"{name}.weight", self._renamings, [], self._prefix,
                                     self._state)
        if found in self._state:
            return str(found).removesuffix(".weight")
        found, _ = rename_source_key(name, self._renamings, [], self._prefix, self._state)
        return str(found)


def _check_others(model: torch.nn.Module, checkpoint: checkpoints.Checkpoint,
                  names: _Names, loading: Loading) -> None:
    """Refuses a checkpoint that lacks the weight of a linear layer, for which transformers would
    make random numbers. Weights that transformers puts together are not looked for."""
    if names.has_converters:
        return
    held = {names(name) for name in checkpoint.others}
    ties: Mapping[str, str] = getattr(model, "all_tied_weights_keys", None) or {}
    for name, module in model.named_modules():
        key = f"{name}.weight"
        if (isinstance(module, torch.nn.Linear) and name not in loading.linears
                and key not in held and key not in ties):
            raise UsageError(f"layer '{name}' must have a weight, but the checkpoint has neither "
                             f"'{key}' nor one in 4 bits", "it is damaged, or of another model")


def _as_dtype(layer: torch.nn.Module, dtype: torch.dtype) -> None:
    """Gives a linear layer the dtype that transformers was asked for."""
    if not isinstance(layer, (QuantizedLinear, WeightOnlyLinear)):
        return
    layer.weight_dtype = dtype
    if layer.bias is not None:
        layer.bias = torch.nn.Parameter(layer.bias.detach().to(dtype), False)


