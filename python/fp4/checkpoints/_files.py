"""The safetensors files of a checkpoint, and what its JSON files say."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
from typing import Any

import torch

from ..errors import UsageError
from ..torch.shards import Part

try:
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import save_file
except ImportError as error:
    raise ImportError("fp4.checkpoints needs safetensors\nnote: pip install safetensors") from error

__all__ = ["Config", "Files", "Header", "SafetensorError", "configs", "read_json", "safe_open",
           "save_file"]

INDEX = "model.safetensors.index.json"


@dataclasses.dataclass(frozen=True)
class Header:
    """The facts that a file has about a tensor: its dtype, such as U8, F8_E4M3 or F4, and its
    logical shape."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} of shape {list(self.shape)}"


class Files:
    """The tensors of one or several safetensors files. Each tensor is read when somebody asks for
    it.

    Attributes:
        headers: by the names of the tensors.
        shards: the names of the tensors in each file, by the name of the file.
    """

    def __init__(self, path: pathlib.Path, device: str) -> None:
        self._stack = contextlib.ExitStack()
        self._files: dict[str, Any] = {}
        self.headers: dict[str, Header] = {}
        self.shards: dict[str, list[str]] = {}
        try:
            for file, names in _shards(path).items():
                self._add(file, names, device)
        except BaseException:
            self.close()
            raise

    def _add(self, path: pathlib.Path, names: set[str] | None, device: str) -> None:
        try:
            file = self._stack.enter_context(safe_open(str(path), "pt", device=device))
        except (OSError, SafetensorError) as error:
            raise UsageError(f"cannot read '{path}': {error}", "pass a safetensors file, a folder "
                             f"with one, or a folder with {INDEX}") from error
        for name in file.keys():  # noqa: SIM118 (no dict, and it does not iterate)
            if names is None or name in names:
                found = file.get_slice(name)
                self.headers[name] = Header(found.get_dtype(), tuple(found.get_shape()))
                self._files[name] = file
                self.shards.setdefault(path.name, []).append(name)
        missing = (names or set()) - set(self._files)
        if missing:
            raise UsageError(f"tensor '{min(missing)}' must be in '{path}', as the index says, but "
                             "is not", "fetch the file again, or repair the index")

    def load(self, name: str, index: int | None = None, part: Part | None = None) -> torch.Tensor:
        """A tensor, or the part `index` of its first dimension, or a rank's part of a matrix. No
        more is read than the part."""
        file = self._files.get(name)
        if file is None:
            raise UsageError(f"the checkpoint is closed, or has no tensor '{name}'")
        # Slices of F4 tensors count their logical shape as bytes in safetensors 0.8.
        if (index is None and part is None) or self.headers[name].dtype == "F4":
            whole: torch.Tensor = file.get_tensor(name)
            whole = whole if index is None else whole[index]
            return whole if part is None else part.of(whole)
        place: Any = index if part is None else part.slices(self.headers[name].shape)
        found: torch.Tensor = file.get_slice(name)[place]
        return found.contiguous()

    def close(self) -> None:
        self._files.clear()
        self._stack.close()


def _shards(path: pathlib.Path) -> dict[pathlib.Path, set[str] | None]:
    """Files, and the names that an index expects in each; None: all."""
    index = path / INDEX if path.is_dir() else path
    if index.suffix == ".json" and index.exists():
        names = read_json(index).get("weight_map")
        if not isinstance(names, dict) or not names:
            raise UsageError(f"'{index}' must have a 'weight_map' of names and files, but has none")
        shards: dict[pathlib.Path, set[str] | None] = {}
        for name, file in names.items():
            held = shards.setdefault(index.parent / str(file), set())
            assert held is not None
            held.add(name)
        return shards
    if not path.is_dir():
        return {path: None}
    found = sorted(path.glob("*.safetensors"))
    if len(found) != 1:
        raise UsageError(f"'{path}' must have one safetensors file, or {INDEX}, but has "
                         f"{len(found)} files", "pass the path of one of them")
    return {found[0]: None}


def read_json(path: pathlib.Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read '{path}': {error}", "repair or remove the file") from error
    if not isinstance(found, dict):
        raise UsageError(f"'{path}' must hold a JSON object, but holds "
                         f"{type(found).__name__}")
    return found


@dataclasses.dataclass(frozen=True)
class Config:
    """The facts about quantization in a JSON file.

    Attributes:
        path: of the file.
        method: its quant_method.
        words: the formats and algorithms that it names.
        has_4_bit_inputs: whether inputs of layers are quantized to 4 bits; None if it does not say.
    """

    path: pathlib.Path
    method: str
    words: frozenset[str]
    has_4_bit_inputs: bool | None = None


def configs(path: pathlib.Path) -> list[Config]:
    """Reads config.json and hf_quant_config.json beside the tensors."""
    folder = path if path.is_dir() else path.parent
    found = []
    for name, key in (("config.json", "quantization_config"), ("hf_quant_config.json", "")):
        file = folder / name
        if not file.exists():
            continue
        content = read_json(file)
        section = content.get(key) if key else content
        if isinstance(section, dict) and section:
            found.append(_config(file, section))
    return found


def _config(path: pathlib.Path, section: dict[str, Any]) -> Config:
    producer = section.get("producer")
    method = section.get("quant_method")
    if method is None and isinstance(producer, dict):
        method = producer.get("name")
    words: set[str] = set()
    groups: list[dict[str, Any]] = []
    nested = section.get("quantization")
    for part in (section, nested if isinstance(nested, dict) else {}):
        found = part.get("config_groups"), part.get("quantized_layers")
        members = [member for group in found if isinstance(group, dict)
                   for member in group.values() if isinstance(member, dict)]
        words |= {str(member[key]) for member in (part, *members)
                  for key in ("format", "quant_algo") if member.get(key)}
        groups += [member for member in members if "weights" in member]
    return Config(path, str(method), frozenset(words), _has_4_bit_inputs(words, groups))


#: Algorithms of ModelOpt whose inputs have the format of the weights.
_4_BIT_INPUTS = {"NVFP4", "MXFP4", "NVFP4_AWQ", "NVFP4_SVD"}


def _has_4_bit_inputs(words: set[str], groups: list[dict[str, Any]]) -> bool | None:
    if groups:
        inputs = [group.get("input_activations") for group in groups]
        return any(isinstance(each, dict) and each.get("num_bits") == 4 for each in inputs)
    said = {word.upper() for word in words}
    if said & _4_BIT_INPUTS:
        return True
    return False if any(word.startswith(("W4A16", "W4A8")) for word in said) else None
