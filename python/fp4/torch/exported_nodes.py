"""Nodes of torch.export: their sizes, and the error of one that fp4 does not have."""

from __future__ import annotations

import torch

from ..errors import UsageError

Node = torch.fx.Node


def wrong(node: Node, reason: str, note: str) -> UsageError:
    trace = (node.stack_trace or "").strip().splitlines()
    place = f" ({trace[-2].strip()})" if len(trace) >= 2 else ""
    return UsageError(f"node '{node.name}'{place} has no counterpart in fp4: {reason}", note)


def shape_of(node: Node) -> tuple[int, ...]:
    shape = tuple(node.meta["val"].shape)
    if not all(isinstance(size, int) for size in shape):
        raise wrong(node, "its sizes must be static", "export it without dynamic_shapes")
    return shape
