"""All cases and probes of the kit."""
from __future__ import annotations

from collections.abc import Iterator

import clusters
import conversions
import faults
import layouts
import products
import uncertain
import uncertain_threads
from case import Case, Probe


def conformance() -> Iterator[Case]:
    """What the simulator is sure of."""
    yield from faults.cases()
    yield from layouts.cases()
    yield from products.cases()
    yield from conversions.cases()
    yield from clusters.cases()


def probes() -> Iterator[Probe]:
    """What it infers."""
    yield from uncertain.cases()
    yield from uncertain_threads.cases()


def of_target(target: str, simulated: bool = False) -> Iterator[Case]:
    """Of both kinds; `simulated`: without those that the simulator refuses."""
    for case in conformance():
        if target in case.targets:
            yield case
    for probe in probes():
        if target in probe.case.targets and not (simulated and probe.assumes):
            yield probe.case
