"""The ways in which operations of fp4 act on shards: what DTensor does with torch.ops.fp4.*.

Every operation acts on tensors that all ranks have. A row of this table is a way to act on parts:
the placements of the results, and those of the operands that are not replicated.

    amax, of a tensor        x by rows or columns            the maximum over ranks
    amax, of each row        x by rows                       by rows
    hadamard                 x by what is not transformed    like x
    quantize                 x by rows                       by rows, where scales are linear
    dequantize               data and scales alike           like them
    scaled_mm                rows of b                       columns of the result
    weight_mm                rows of x                       rows
                             columns of x and the weights    the sum over ranks
    prepack, unprepack       whole tiles                     like them

Tiled scales and prepacked weights are split between tiles only, so a shard has whole tiles or the
operands are gathered. A sum over ranks adds results that are rounded to the dtype of x.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.distributed.tensor import Partial, Placement, Replicate, Shard

from ..torch import weight_programs

#: Results, and operands by name; those that are not named are replicated.
_Way = tuple[list[Placement], Mapping[str, Placement]]
_Ways = Callable[[Mapping[str, Any]], list[_Way]]


def _amax(given: Mapping[str, Any]) -> list[_Way]:
    if given["per_row"]:
        return [([Shard(0)], {"x": Shard(0)})]
    return [([Partial("max")], {"x": Shard(dim)}) for dim in range(2)]


def _hadamard(given: Mapping[str, Any]) -> list[_Way]:
    other = 1 - given["dim"]
    return [([Shard(other)], {"x": Shard(other)})]


def _quantize(given: Mapping[str, Any]) -> list[_Way]:
    # Random bits belong to places of the whole, and square blocks to sixteen rows.
    if given["layout"] != "linear" or given["square"] or given["columnwise"] or given["rng"]:
        return []
    return [([Shard(0), Shard(0)], {"x": Shard(0), **_by_rows(given, "amax")})]


def _dequantize(given: Mapping[str, Any]) -> list[_Way]:
    by_rows = {"data": Shard(0), "scales": Shard(0), **_by_rows(given, "amax")}
    ways: list[_Way] = [([Shard(0)], by_rows)]
    if _divides(given["scales"], 1, 1):
        ways.append(([Shard(1)], {"data": Shard(1), "scales": Shard(1)}))
    return ways


def _scaled_mm(given: Mapping[str, Any]) -> list[_Way]:
    if not _divides(given["b"], 0, 128):
        return []
    return [([Shard(1)], {"b": Shard(0), "scale_b": Shard(0), **_by_rows(given, "amax_b"),
                          **_by_rows(given, "bias")})]


def _weight_mm(given: Mapping[str, Any]) -> list[_Way]:
    ways: list[_Way] = [([Shard(0)], {"x": Shard(0)})]
    x, packed = (given[name].tensor_meta.shape for name in ("x", "packed"))
    whole = int(x[1]) == weight_programs.TILE[1] * int(packed[1])  # no zeros fill the last tiles
    if whole and _divides(given["packed"], 1, 1):
        bias = {} if given["bias"] is None else {"bias": Partial()}  # one rank adds it
        ways.append(([Partial()], {"x": Shard(1), "packed": Shard(1), **bias}))
    return ways


def _prepack(given: Mapping[str, Any]) -> list[_Way]:
    sizes = ((0, 128, 128), (1, 32, 4 if given["format"] == "nvfp4" else 2))
    return [([Shard(dim)], {"data": Shard(dim), "scales": Shard(dim)}) for dim, data, scales in sizes
            if _divides(given["data"], dim, data) and _divides(given["scales"], dim, scales)]


def _unprepack(given: Mapping[str, Any]) -> list[_Way]:
    return [([Shard(dim), Shard(dim)], {"packed": Shard(dim)}) for dim in range(2)
            if _divides(given["packed"], dim, 1)]


def _none(given: Mapping[str, Any]) -> list[_Way]:
    del given
    return []


def _by_rows(given: Mapping[str, Any], name: str) -> dict[str, Placement]:
    """A vector with a number for each row goes with the rows."""
    value = given.get(name)
    return {name: Shard(0)} if value is not None and len(value.tensor_meta.shape) else {}


def _divides(value: Any, dim: int, unit: int) -> bool:
    """Returns True if every rank gets the same number of whole units."""
    return not int(value.tensor_meta.shape[dim]) % (unit * int(value.mesh.size()))


#: The ways of the operations that have more than one.
_WAYS: Mapping[str, _Ways] = {
    "amax": _amax, "hadamard": _hadamard, "quantize": _quantize, "dequantize": _dequantize,
    "scaled_mm": _scaled_mm, "weight_mm": _weight_mm, "prepack": _prepack, "unprepack": _unprepack}


@functools.cache
def register() -> None:
    """Tells DTensor the ways of every operation that fp4.torch has; once is enough."""
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._op_schema import RuntimeSchemaInfo
    from torch.distributed.tensor.experimental import register_sharding

    propagator = DTensor._op_dispatcher.sharding_propagator
    for name in _operations():
        operation = getattr(torch.ops.fp4, name).default
        register_sharding(operation)(functools.partial(_strategies, operation, name))
        # Formats, recipes and flags decide too, and are no numbers, which alone are looked at.
        kinds = [str(argument.type) for argument in operation._schema.arguments]
        first = next((place for place, kind in enumerate(kinds) if "Tensor" not in kind), 100)
        propagator.op_to_schema_info[operation] = RuntimeSchemaInfo(first, needs_pytree=True)


def _operations() -> list[str]:
    names = {name.partition("::")[2].partition(".")[0]
             for name in torch._C._dispatch_get_all_op_names() if name.startswith("fp4::")}
    return sorted(names)


def _strategies(operation: Any, name: str, *given: Any) -> list[tuple[list[Any], list[Any]]]:
    """Returns what DTensor asks for: placements of the results and of all operands."""
    arguments = operation._schema.arguments
    values = {argument.name: value for argument, value in zip(arguments, given)}
    whole: _Way = ([Replicate()] * len(operation._schema.returns), {})
    found = []
    for results, operands in [whole, *_WAYS.get(name, _none)(values)]:
        inputs = [operands.get(key, Replicate()) if hasattr(value, "placements") else None
                  for key, value in values.items()]
        found.append((list(results), inputs))
    return found
