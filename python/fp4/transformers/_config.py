"""The section of config.json, and the options of a model that is quantized while it is loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ..errors import UsageError
from ..torch.recipes import check_format
from ..torch.records import Record

try:
    from transformers.quantizers import register_quantization_config
    from transformers.utils.quantization_config import QuantizationConfigMixin
except ImportError as error:
    raise ImportError("fp4.transformers needs transformers 5.17 or later\nnote: pip install "
                      "transformers") from error

METHOD = "fp4"
_VERSION = 1


@register_quantization_config(METHOD)
class FP4Config(QuantizationConfigMixin):  # type: ignore[misc]
    """Lets from_pretrained quantize the linear layers of a 16-bit model: each weight as soon as it
    is loaded, with the bytes that quantize_ gives.

    Args:
        format, recipe, weight_only, head, skip_unsupported: those of fp4.torch.quantize_.
        modules_to_not_convert: names, or regular expressions, as other quantizers of transformers
            take them. The head stays unless `head` is on.
        layers, records, version: of a saved model.
    """

    def __init__(self, *, format: str = "nvfp4", recipe: str = "", weight_only: bool = True,
                 modules_to_not_convert: Sequence[str] | None = None, head: bool = False,
                 skip_unsupported: bool = False, layers: dict[str, Any] | None = None,
                 records: list[Record] | None = None, version: int = _VERSION,
                 quant_method: str = METHOD, **unknown: Any) -> None:
        if version != _VERSION:
            raise UsageError(f"the checkpoint must have version {_VERSION} of the layers of fp4, "
                             f"but has {version}", "load it with the fp4 that wrote it")
        if unknown:  # members of another version, which is an error already
            raise TypeError(f"FP4Config has no argument {min(unknown)!r}")
        if isinstance(modules_to_not_convert, str):
            raise UsageError("'modules_to_not_convert' must be a list of names, but got the str "
                             f"{modules_to_not_convert!r}", "pass a list with it")
        for pattern in modules_to_not_convert or ():
            try:
                re.compile(pattern)
            except re.error as error:
                raise UsageError("'modules_to_not_convert' must be regular expressions, but got "
                                 f"{pattern!r}: {error}", "a backslash before a character takes "
                                 "it as it is") from error
        self.quant_method, self.version = quant_method, version
        self.format, self.recipe = check_format(format), recipe
        self.weight_only, self.head, self.skip_unsupported = weight_only, head, skip_unsupported
        self.modules_to_not_convert = list(modules_to_not_convert or ())
        try:
            self.layers: dict[str, Record] = {
                name: record if records is None else records[record]
                for name, record in (layers or {}).items()}
        except (AttributeError, LookupError, TypeError) as error:
            raise UsageError("'quantization_config' of config.json must have a record for each "
                             f"layer, but: {error}", "the file is damaged") from error

    @property
    def _options(self) -> dict[str, Any]:
        """Arguments of quantize_."""
        return {"format": self.format, "recipe": self.recipe, "weight_only": self.weight_only}

    def to_dict(self) -> dict[str, Any]:
        """The section of config.json. Layers of the same record share it."""
        if not self.layers:  # the arguments of a model that is yet to be quantized
            return {"quant_method": METHOD, "version": self.version, **self._options,
                    "modules_to_not_convert": self.modules_to_not_convert, "head": self.head,
                    "skip_unsupported": self.skip_unsupported}
        names = sorted(self.layers)
        texts = [json.dumps(self.layers[name], sort_keys=True) for name in names]
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        return {"quant_method": METHOD, "version": self.version,
                "records": [json.loads(text) for text in places],
                "layers": {name: places[text] for name, text in zip(names, texts)}}
