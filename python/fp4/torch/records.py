"""Modules as JSON: the facts from which a module without numbers can be made, into which a
state_dict is loaded.

A record of a module has its class, its facts (the attributes that are no tensors and no modules),
its tensors and its parts. A record exists for every module of fp4 whose facts are numbers, names,
dtypes and sequences of them.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch

from ..errors import UsageError

Record = dict[str, Any]

#: Attributes that torch.nn.Module itself keeps.
_INTERNAL = frozenset(vars(torch.nn.Module()))
#: Beginnings of the names of attributes that transformers and accelerate leave behind.
_NOTES = ("_is_hf_", "_hf_")


def is_recorded(module: torch.nn.Module) -> bool:
    """Returns True if the module is one of fp4's with a stored weight."""
    kind = type(module)
    return kind.__module__.startswith("fp4.torch.") and not _trains(module)


def _trains(module: torch.nn.Module) -> bool:
    return isinstance(module._parameters.get("weight"), torch.nn.Parameter)


def record_of(module: torch.nn.Module) -> Record:
    """The record of a module of fp4."""
    kind = type(module)
    facts = {name: _plain(value, f"{kind.__name__}.{name}")
             for name, value in vars(module).items()
             if name not in _INTERNAL and not name.startswith(_NOTES)}
    tensors = {name: _tensor(value) for name, value in (*module._parameters.items(),
                                                        *module._buffers.items())}
    found: Record = {"class": f"{kind.__module__}.{kind.__qualname__}", "facts": facts,
                     "parameters": list(module._parameters), "tensors": tensors}
    parts = {name: record_of(part) for name, part in module._modules.items() if part is not None}
    return {**found, "modules": parts} if parts else found


def module_of(record: Record) -> torch.nn.Module:
    """A module of this record, on the device meta."""
    try:
        module: torch.nn.Module = object.__new__(_class(record["class"]))
        torch.nn.Module.__init__(module)
        for name, value in record["facts"].items():
            setattr(module, name, _restored(value))
        for name, facts in record["tensors"].items():
            tensor = None if facts is None else torch.empty(
                facts["shape"], dtype=getattr(torch, facts["dtype"]), device="meta")
            if name in record["parameters"]:
                module.register_parameter(name, None if tensor is None else torch.nn.Parameter(
                    tensor, requires_grad=tensor.is_floating_point()))
            else:
                module.register_buffer(name, tensor)
        for name, part in record.get("modules", {}).items():
            module.add_module(name, module_of(part))
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"no module of fp4 has the record {str(record)[:120]}: {error}",
                         "it was written by another version of fp4, or is damaged") from error
    return module


def _class(name: str) -> type:
    place, _, last = name.rpartition(".")
    if place != "torch.nn.modules.container" and not place.startswith("fp4.torch."):
        raise TypeError(f"'{name}' is no module of fp4")
    try:
        found = getattr(importlib.import_module(place), last)
    except ImportError as error:
        raise TypeError(str(error)) from error
    if not isinstance(found, type) or not issubclass(found, torch.nn.Module):
        raise TypeError(f"'{name}' is no module")
    return found


def _tensor(value: torch.Tensor | None) -> Record | None:
    if value is None:
        return None
    return {"dtype": str(value.dtype)[6:], "shape": list(value.shape)}


def _plain(value: Any, name: str) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [_plain(each, name) for each in value]
    if isinstance(value, torch.dtype):
        return {"dtype": str(value)[6:]}
    raise UsageError(f"'{name}' must be a number, a name or a dtype to be recorded, but is a "
                     f"{type(value).__name__}")


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_restored(each) for each in value)
    return getattr(torch, value["dtype"]) if isinstance(value, dict) else value
