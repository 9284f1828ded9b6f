"""Quantizes a checkpoint file by file, without a model: 'fp4 quantize-model'."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from ..errors import DeviceError, UsageError
from ..torch import Scaled, dequantize, quantize
from ..torch.damage import check_weight
from ..torch.recipes import (
    BLOCKS,
    check_format,
    has_tensor_scale,
    is_supplied,
    is_supplied_decode,
)
from ._calibrate import Calibration, Text
from ._errors import (
    Line,
    Loss,
    ModelReport,
    check_budget,
    kept_by,
    loss_of,
    sorted_lines,
)
from ._files import INDEX, Files, read_json, safe_open
from ._gptq import loss_on, round_for
from ._layouts import layout_of
from ._linears import Linear, check_config, check_names, fused, linears, stacks
from ._write import Tensors, matrix_of, named, quantization_config, save_tensors

_SINGLE = "model.safetensors"
#: Endings of files that are not copied, because they hold other forms of the weights.
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx",
            ".index.json")


@dataclasses.dataclass(frozen=True)
class Request:
    """The arguments of 'fp4 quantize-model'.

    Attributes:
        format: "nvfp4" or "mxfp4".
        recipe: of the weights; "" is the recipe of the package whose layout is written.
        exclude: shell patterns of names of layers that stay as they are.
        bits: the mean over the weights of all layers that could be quantized; those with the
            largest error stay as they are.
        head: quantize the head too.
        device: that quantizes, such as "cuda"; "cpu" is the simulator.
        calibrate: a text. Weights are rounded by GPTQ so that the results of each layer on it
            change least; without one each number is rounded to the nearest.
    """

    format: str = "nvfp4"
    recipe: str = ""
    exclude: Sequence[str] = ()
    bits: float | None = None
    head: bool = False
    device: str = "cpu"
    calibrate: Text | None = None

    layout = "compressed-tensors"

    @property
    def bits_of_format(self) -> float:
        return 4 + 8 / BLOCKS[self.format]


def quantize_model(source: str | os.PathLike[str], target: str | os.PathLike[str],
                   request: Request, say: Callable[[str], None] = lambda text: None
                   ) -> ModelReport:
    """Writes the folder `target`, with the linear layers of `source` in 4 bits, in the layout
    compressed-tensors. Weights have the bytes that fp4.torch.quantize gives. No more than one file
    is in memory.

    Layers that engines multiply by at once, such as q_proj, k_proj and v_proj, get one scale of the
    tensor, that of the largest amax.

    Args:
        source: a folder with config.json and safetensors files.
        say: is told about each file.

    Raises:
        UsageError: `source` is no such folder, or is quantized; a layer that cannot be; or `target`
            exists. There is no `target` then.
    """
    _check_request(request)
    folder, goal = pathlib.Path(source), pathlib.Path(target)
    if goal.exists() or goal.is_symlink():
        raise UsageError(f"'{goal}' must not exist, but does", "remove it, or name another folder")
    if not (folder / "config.json").is_file():
        raise UsageError(f"'{folder}' must be a folder with a config.json, but has none",
                         "pass the folder of a model as transformers saves it")
    config = _config_of(folder)
    with contextlib.closing(Files(folder, request.device)) as files, _building(goal) as built:
        work = _Work(files, built, request)
        work.calibrate(folder, say)
        work.write(say)
        report = work.keep()
        work.write_index()
        _write_json(built / "config.json", work.quantized_config(config))
        _copy_others(folder, built)
    return report


def _config_of(folder: pathlib.Path) -> dict[str, Any]:
    config = read_json(folder / "config.json")
    check_config(config, folder / "config.json")
    if (folder / "hf_quant_config.json").exists():
        raise UsageError(f"'{folder}' must be of a model in 16 bits, but has a "
                         "hf_quant_config.json", "quantize the model that it was made of")
    return config


def _check_request(request: Request) -> None:
    check_format(request.format)
    if request.bits is not None:
        check_budget(request.bits, request.bits_of_format)
    try:
        torch.empty(1, device=request.device)
    except (AssertionError, RuntimeError) as error:
        raise DeviceError(f"'device' must be one that torch has, but got {request.device!r}: "
                          f"{str(error).splitlines()[0]}", "pass cpu, which is the simulator"
                          ) from error
    if torch.device(request.device).type not in ("cpu", "cuda"):
        raise DeviceError(f"'device' must be cpu or cuda, but got {request.device!r}",
                          "pass cpu, which is the simulator")
    if is_supplied(request.recipe) or is_supplied_decode(request.recipe):
        raise UsageError("'recipe' must compute the scale of the tensor, but got "
                         f"{request.recipe!r}", "leave out its tensor_scale")


class _Work:
    """The files of a checkpoint while they are quantized.

    Attributes:
        quantized: names of the layers that are in 4 bits.
    """

    def __init__(self, files: Files, folder: pathlib.Path, request: Request) -> None:
        self._files, self._folder, self._request = files, folder, request
        self._kind = layout_of(request.layout).kind(request.format)
        self._recipe = request.recipe or self._kind.recipe.partition(",")[0]
        self._layers = linears(files.headers, request.format, request.exclude, request.head)
        chosen = [layer.name for layer in self._layers if not layer.reason]
        check_names(files.headers, chosen, self._kind)
        self.quantized = set(chosen)
        self._groups = {name: group for group in fused(chosen) for name in group}
        self._amaxes: dict[tuple[str, ...], torch.Tensor] = {}
        self._losses: dict[str, Loss] = {}
        self._nearest: dict[str, Loss] = {}
        self._calibration: Calibration | None = None
        self._moments: dict[str, torch.Tensor] = {}
        self._map: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._before = 0

    def calibrate(self, folder: pathlib.Path, say: Callable[[str], None]) -> None:
        """Loads the model, where the request has a text."""
        text = self._request.calibrate
        if text is not None:
            say(f"loading the model for {text.path}")
            self._calibration = Calibration(folder, text, self._request.device)

    def write(self, say: Callable[[str], None]) -> None:
        """Writes every file, with all layers in 4 bits."""
        shards = self._files.shards
        for number, (file, names) in enumerate(shards.items(), 1):
            say(f"file {number} of {len(shards)}: {file}")
            if self._calibration is not None:
                layers = {name.removesuffix(".weight") for name in names} & self.quantized
                self._moments = self._calibration.moments(
                    sorted({self._groups[name] for name in layers}))
            content = Tensors()
            for name in names:
                tensor = self._files.load(name)
                self._before += tensor.nbytes
                layer = name.removesuffix(".weight")
                content.update(self._quantized(layer, tensor)
                               if layer != name and layer in self.quantized else {name: tensor})
            self._save(file, content)

    def _quantized(self, name: str, weight: torch.Tensor) -> Tensors:
        request = self._request
        with named(name):
            check_weight(weight)
        amax = self._amax_of(name, weight)
        with named(name):
            stored = quantize(weight, format=request.format, recipe=self._recipe, layout="linear",
                              amax=amax)
            stored, loss = self._rounded(name, weight, stored)
            self._losses[name] = loss
            if not math.isfinite(loss.noise):
                raise UsageError(f"the numbers in 4 bits must be finite, but those of recipe "
                                 f"'{self._recipe}' are not", "the weight is next to the largest "
                                 "float; scale or exclude it")
            tensors = matrix_of(stored, self._kind, False)
        return {name + ending: tensor.cpu() for ending, tensor in tensors.items()}

    def _rounded(self, name: str, weight: torch.Tensor, stored: Scaled) -> tuple[Scaled, Loss]:
        """The weight as the text rounds it, and its loss. Numbers that were rounded to the nearest
        stay where they lose less."""
        moments = self._moments.get(name)
        loss = loss_of(weight, dequantize(stored, torch.float32))
        if moments is None or not math.isfinite(loss.noise):
            return stored, loss
        nearest = loss_on(weight, dequantize(stored, torch.float32), moments)
        found = round_for(weight, stored, moments)
        loss = loss_on(weight, dequantize(found, torch.float32), moments)
        self._nearest[name] = nearest
        return (found, loss) if loss.noise < nearest.noise else (stored, nearest)

    def _amax_of(self, name: str, weight: torch.Tensor) -> torch.Tensor | None:
        """The amax of all layers that are multiplied by at once; None: the recipe has no scale of
        the tensor."""
        group = self._groups[name]
        if not has_tensor_scale(self._request.format, self._recipe):
            return None
        if group not in self._amaxes:
            found = []
            for other in group:
                one = weight if other == name else self._files.load(f"{other}.weight")
                with named(other):
                    check_weight(one)
                found.append(one.abs().max())
            self._amaxes[group] = torch.stack(found).max().float()
        return self._amaxes[group]

    def keep(self) -> ModelReport:
        """Puts back the layers that a budget keeps, and reports all."""
        request = self._request
        bits = request.bits_of_format
        chosen = [layer for layer in self._layers if layer.name in self.quantized]
        kept = set() if request.bits is None else kept_by(request.bits, chosen, self._losses, bits)
        self.quantized -= kept
        if not self.quantized:
            raise UsageError(f"'bits' must leave a layer in 4 bits, but {request.bits:g} keeps all "
                             "of them", f"{request.format} has {bits:g} bits a weight")
        for file, names in self._files.shards.items():
            back = [name for name in names
                    if name.endswith(".weight") and name.removesuffix(".weight") in kept]
            if back:
                self._put_back(file, back)
        lines = sorted_lines(self._line(layer, kept) for layer in self._layers)
        total = sum(line.bits * line.layer.size for line in lines if line.loss)
        return ModelReport(lines, self._recipe, total / sum(layer.size for layer in chosen),
                           self._before, sum(self._sizes.values()),
                           self._calibration is not None)

    def _line(self, layer: Linear, kept: set[str]) -> Line:
        loss, nearest = self._losses.get(layer.name), self._nearest.get(layer.name)
        if layer.name in self.quantized:
            unseen = self._calibration is not None and nearest is None
            return Line(layer, self._request.format, self._request.bits_of_format, loss,
                        "no token of the text reaches it" if unseen else "", nearest)
        return Line(layer, "", layer.bits, loss, layer.reason or "is kept by the budget", nearest)

    def _put_back(self, file: str, names: Sequence[str]) -> None:
        path = self._folder / self._name_of(file)
        dropped = {name.removesuffix(".weight") + ending for name in names
                   for ending in (self._kind.data, self._kind.scales, self._kind.level) if ending}
        with safe_open(str(path), "pt") as old:
            content = {name: old.get_tensor(name) for name in old.keys()  # noqa: SIM118
                       if name not in dropped}
        for name in dropped:
            self._map.pop(name)
            self._sizes.pop(name)
        self._save(file, {**content, **{name: self._files.load(name) for name in names}})

    def _name_of(self, file: str) -> str:
        return file if len(self._files.shards) > 1 else _SINGLE

    def _save(self, file: str, content: Tensors) -> None:
        name = self._name_of(file)
        content = {key: tensor.cpu().contiguous() for key, tensor in content.items()}
        save_tensors(content, self._folder / name)
        self._map.update(dict.fromkeys(content, name))
        self._sizes.update({key: tensor.nbytes for key, tensor in content.items()})

    def quantized_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The config.json of the result. A head in 4 bits is not the embedding any more, which some
        models assume where nothing is said."""
        # Engines know a head by the name lm_head also where it has no tensor.
        names = {layer.name for layer in self._layers} | stacks(self._files.headers) | {"lm_head"}
        section = quantization_config(self._request.layout, self._request.format,
                                      ignore=sorted(names - self.quantized))
        found = {**config, "quantization_config": section}
        if any(layer.is_head and layer.name in self.quantized for layer in self._layers):
            found["tie_word_embeddings"] = False
            if isinstance(found.get("text_config"), dict):
                found["text_config"] = {**found["text_config"], "tie_word_embeddings": False}
        return found

    def write_index(self) -> None:
        """Writes the index, where there are several files."""
        if len(self._files.shards) > 1:
            _write_json(self._folder / INDEX,
                        {"metadata": {"total_size": sum(self._sizes.values())},
                         "weight_map": dict(sorted(self._map.items()))})


@contextlib.contextmanager
def _building(goal: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder beside `goal` that gets its name at the end, or is removed."""
    temporary = goal.with_name(f".{goal.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        temporary.mkdir()  # another's folder, which stays, is an error
        try:
            yield temporary
            os.rename(temporary, goal)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise UsageError(f"cannot write '{goal}': {error}", "nothing was written") from error


def _copy_others(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copies configurations and tokenizers, and the modules of sentence-transformers."""
    for file in sorted(source.iterdir()):
        if (file.is_file() and not file.name.startswith(".")
                and not file.name.endswith(_WEIGHTS) and not (target / file.name).exists()):
            shutil.copyfile(file, target / file.name)
    for name in _modules(source / "modules.json"):
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name)


def _modules(file: pathlib.Path) -> set[str]:
    """Folders that modules.json of sentence-transformers names, such as 1_Pooling. The folder of
    the model itself is ""."""
    if not file.is_file():
        return set()
    try:
        found = [str(module["path"]) for module in json.loads(file.read_text(encoding="utf-8"))]
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(f"'{file}' must be a list of modules with a path, but is not: {error!r}",
                         "repair or remove the file") from error
    return {name for name in found if name not in ("", "..") and pathlib.Path(name).name == name}


def _write_json(path: pathlib.Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
