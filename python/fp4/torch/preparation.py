"""Programs of a model that are ready before its first call."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import time
from typing import Any

import torch

from ..errors import Error
from . import execution, programs
from .experts import WeightOnlyExperts
from .layers import Linear, QuantizedLinear
from .moe import MoE
from .routed import RoutedExperts
from .w4a8 import W4A8Linear
from .weight_only import WeightOnlyLinear

_LAYERS = (Linear, MoE, QuantizedLinear, W4A8Linear, WeightOnlyExperts, WeightOnlyLinear)


@dataclasses.dataclass(frozen=True)
class Prepared:
    """The programs of a model.

    Attributes:
        programs: how many there are.
        compiled: how many of them the cache did not have.
        seconds: of all.
    """

    programs: int
    compiled: int
    seconds: float


def prepare(model: torch.nn.Module, *inputs: Any, threads: int | None = None,
            dtype: torch.dtype = torch.bfloat16, gpu: str | None = None) -> Prepared:
    """Makes the programs of the forward pass of all layers of `model` ready, for any number of
    rows: those of the cache on disk are loaded, and the others compiled at the same time and kept
    there, with cubins where there is a ptxas. On a GPU the layers then run once for each range of
    rows, on zeros, so that graphs can be captured.

        fp4.torch.quantize_(model, weight_only=True)
        fp4.torch.prepare(model)

    Args:
        inputs: of the model, which is called with them, without running programs. The programs of
            every operation of fp4.torch are made ready then, also of those outside layers.
        threads: that compile; as many as the process may use without it.
        dtype: of the activations, where there are no inputs.
        gpu: a target and a product, such as "sm_90a/h200", which need not be here: the cache gets
            the programs ('python -m fp4 cache export' copies it), and none is made ready.

    Raises:
        CompileError, UsageError: a layer that has no kernel. The message names the layer.
    """
    begin = time.monotonic()
    found = _of_call(model, inputs) if inputs else _of_layers(model, dtype)
    before = programs.compilations()
    with concurrent.futures.ThreadPoolExecutor(threads or len(os.sched_getaffinity(0))) as pool:
        work = [(pool.submit(_make, what, gpu), name) for what, name in found.items()]
        concurrent.futures.wait([future for future, _ in work])
    for future, name in work:
        with _Named(name):
            future.result()
    if gpu is None and any(place.type == "cuda" for _, _, place, _ in found):
        _load(model, inputs, set(found.values()), dtype)
    return Prepared(len(found), programs.compilations() - before, time.monotonic() - begin)


_Programs = dict[tuple[Any, ...], str]


class _Named:
    """Puts the name of a layer in front of the message of an error."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Error) and self._name:
            raise type(error)(f"layer '{self._name}': {error.message}", error.note) from error


def _make(what: tuple[Any, ...], gpu: str | None) -> None:
    make, facts, place, target = what
    with programs.assembling():
        if gpu is None:
            execution.ready(make, facts, place, target)
        else:
            make(*facts, gpu if "/" in gpu else f"{gpu}/")


def _of_call(model: torch.nn.Module, inputs: tuple[Any, ...]) -> _Programs:
    with torch.no_grad(), execution.collecting() as found:
        model(*inputs)
    return dict.fromkeys(found, "")


def _of_layers(model: torch.nn.Module, dtype: torch.dtype) -> _Programs:
    """The programs of each layer of fp4.torch, and the name of the first layer that has one."""
    found: _Programs = {}
    for name, layer in _layers(model):
        with _Named(name), execution.collecting() as some:
            for rows in _rows_of(layer):
                _run(layer, rows, dtype)
        for what in some:
            found.setdefault(what, name)
    return found


def _layers(model: torch.nn.Module) -> list[tuple[str, Any]]:
    """The layers that are called; the experts of a mixture are parts of its program."""
    found = [(name, layer) for name, layer in model.named_modules()
             if isinstance(layer, _LAYERS) or _chosen_of(model, name, layer)]
    inner = {id(part) for _, layer in found for part in _parts_of(layer)}
    return [(name, _Routed(layer, _chosen_of(model, name, layer))
             if isinstance(layer, RoutedExperts) else layer)
            for name, layer in found if id(layer) not in inner]


def _parts_of(layer: Any) -> tuple[torch.nn.Module, ...]:
    """The layers whose kernels the program of `layer` has."""
    if isinstance(layer, MoE):
        return layer.experts, *_parts_of(layer.experts)
    return (layer.gate_up, layer.down) if isinstance(layer, RoutedExperts) else ()


def _chosen_of(model: torch.nn.Module, name: str, layer: torch.nn.Module) -> int:
    """The experts of a token, as the block of a RoutedExperts or a router beside it says; 0 where
    nothing says so, and for other layers."""
    if not isinstance(layer, RoutedExperts):
        return 0
    block = model.get_submodule(name.rpartition(".")[0])
    numbers = (getattr(module, "top_k", 0) for module in (block, *block.children()))
    return next((k for k in numbers if isinstance(k, int) and k > 0), 0)


class _Routed(torch.nn.Module):
    """A RoutedExperts that is called with rows alone."""

    def __init__(self, experts: RoutedExperts, chosen: int) -> None:
        super().__init__()
        self.experts, self.chosen = experts, chosen
        self.in_features = experts.hidden_size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ids = torch.zeros(len(x), self.chosen, dtype=torch.int64, device=x.device)
        y: torch.Tensor = self.experts(x, ids, torch.zeros_like(ids, dtype=torch.float32))
        return y


def _rows_of(layer: Any) -> tuple[int, ...]:
    """The rows of calls that need all programs of a layer: one, or some by the rows of experts of
    which others are elsewhere."""
    experts = layer.experts if isinstance(layer, (MoE, _Routed)) else None
    is_part = experts is not None and experts.num_experts < experts.total
    return (*_ROWS, 8 * _ROWS[-1]) if is_part else (1,)


def _run(layer: Any, rows: int, dtype: torch.dtype) -> None:
    """Calls a layer with rows of zeros; all are of its first expert."""
    place = next(iter((*layer.buffers(), *layer.parameters()))).device
    columns = layer.experts.hidden_size if isinstance(layer, MoE) else layer.in_features
    x = torch.zeros(rows, columns, dtype=dtype, device=place)
    rest: tuple[torch.Tensor, ...] = ()
    if isinstance(layer, WeightOnlyExperts):
        offsets = torch.full((layer.experts + 1,), rows, dtype=torch.int64, device=place)
        offsets[0] = 0
        rest = (offsets,)
    with torch.no_grad():
        layer(x, *rest)


#: One in each range of rows that plans of matmuls have.
_ROWS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


def _load(model: torch.nn.Module, inputs: tuple[Any, ...], names: set[str],
          dtype: torch.dtype) -> None:
    """Runs the model, or its layers of these names, whose modules a device loads at first use."""
    if inputs:
        with torch.no_grad():
            model(*inputs)
    for name, layer in [] if inputs else _layers(model):
        for rows in _ROWS if name in names else ():
            with _Named(name):
                _run(layer, rows, dtype)
