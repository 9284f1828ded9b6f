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
    """Returns the cases whose results the simulator is sure of."""
    yield from faults.cases()
    yield from layouts.cases()
    yield from products.cases()
    yield from conversions.cases()
    yield from clusters.cases()


def probes() -> Iterator[Probe]:
    """Returns the cases whose results the simulator infers."""
    yield from uncertain.cases()
    yield from uncertain_threads.cases()


def of_target(target: str, simulated: bool = False) -> Iterator[Case]:
    """Returns the cases of both kinds for `target`; with `simulated`, only those that the simulator runs."""
    for case in conformance():
        if target in case.targets:
            yield case
    for probe in probes():
        if target in probe.case.targets and not (simulated and probe.assumes):
            yield probe.case
