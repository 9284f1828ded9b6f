"""Inputs of the linear layers of a model on a text."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pathlib
from collections.abc import Iterable
from typing import Any

import torch

from ..errors import UsageError

#: Tokens of a row, where the model takes so many.
_ROW = 512


@dataclasses.dataclass(frozen=True)
class Text:
    """A text file, of which `tokens` at most are used."""

    path: pathlib.Path
    tokens: int = 65536

    def read(self) -> str:
        if self.tokens < 1:
            raise UsageError(f"'tokens' must be at least 1, but got {self.tokens}")
        try:
            return self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"'{self.path}' must be a text in UTF-8, but cannot be read: {error}",
                             "name a file of sentences as the model will see them") from error


class Calibration:
    """A model of transformers in memory, and the rows of tokens that it is run on."""

    def __init__(self, folder: pathlib.Path, text: Text, device: str) -> None:
        content = text.read()
        transformers = _transformers()
        self._model = _model(transformers, folder).to(device).eval()
        self._rows = _rows(transformers, folder, content, text, self._model.config).to(device)

    def moments(self, groups: Iterable[tuple[str, ...]]) -> dict[str, torch.Tensor]:
        """The sum of x x^T, float32 [K, K], over the inputs x of each layer of `groups`. Layers of
        a group have one input. A layer that no token reaches has none."""
        found: dict[str, torch.Tensor] = {}
        hooks = []
        try:
            for group in groups:
                hooks.append(_linear(self._model, group[0]).register_forward_pre_hook(
                    _Moments(group, found)))
            with torch.no_grad():
                for row in self._rows:
                    self._model(input_ids=row[None])
        finally:
            for hook in hooks:
                hook.remove()
        return found


class _Moments:
    """A hook that adds the inputs of a layer."""

    def __init__(self, group: tuple[str, ...], found: dict[str, torch.Tensor]) -> None:
        self._group, self._found = group, found

    def __call__(self, module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        x = arguments[0].reshape(-1, arguments[0].shape[-1]).float()
        if x.shape[0]:
            total = self._found.get(self._group[0])
            product = x.T @ x
            total = product if total is None else total.add_(product)
            self._found.update(dict.fromkeys(self._group, total))


def _transformers() -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise ImportError("calibration needs transformers\nnote: pip install transformers, or "
                          "leave out --calibrate") from error


def _model(transformers: Any, folder: pathlib.Path) -> Any:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    names = config.get("architectures") or [""]
    kind = getattr(transformers, names[0], None)
    if kind is None:
        raise UsageError("config.json must name a class of transformers in 'architectures', but "
                         f"has {names[0]!r}", "save the model with save_pretrained, or leave out "
                         "--calibrate")
    try:
        return kind.from_pretrained(folder, dtype="auto", local_files_only=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"transformers cannot load '{folder}': {error}") from error


def _linear(model: torch.nn.Module, name: str) -> torch.nn.Module:
    try:
        module = model.get_submodule(name)
    except AttributeError:
        module = torch.nn.Module()
    if not isinstance(module, torch.nn.Linear):
        raise UsageError(f"layer '{name}' must be a linear layer of {type(model).__name__}, but is "
                         "none", f"exclude '{name}', or leave out --calibrate")
    return module


def _rows(transformers: Any, folder: pathlib.Path, content: str, text: Text,
          config: Any) -> torch.Tensor:
    """Tokens of the text, [rows, tokens of a row]; a shorter rest is left out."""
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"'{folder}' must have a tokenizer, but transformers loads none: {error}",
                         "copy the files of the tokenizer there") from error
    found = tokenizer(content, add_special_tokens=False, return_tensors="pt").input_ids[0]
    tokens: torch.Tensor = found[:text.tokens].long()
    if not len(tokens):
        raise UsageError(f"'{text.path}' must have a token, but is empty",
                         "name a file of sentences as the model will see them")
    length = min(_ROW, getattr(config, "max_position_embeddings", None) or _ROW, len(tokens))
    return tokens[:len(tokens) // length * length].view(-1, length)
