"""The sections of a run. Each yields the name of a case and what executes it."""
from __future__ import annotations

import base64
import hashlib
import json
import pathlib
import sys
import zlib
from collections.abc import Callable, Iterator

import catalogue
from case import Case, Probe
from supervise import Entry, Outcome, failure_of, run

NAMES = ["images", "probes", "conformance", "programs", "times", "micro"]
Work = Iterator[tuple[str, Callable[[], Entry]]]


def ended(section: str, name: str, outcome: Outcome) -> Entry | None:
    """An entry for a command that did not end well."""
    if outcome.code is None:
        return Entry(section, name, "hung", f"ended after {outcome.seconds:.0f} s", outcome.seconds)
    if outcome.code:
        return Entry(section, name, "failed", failure_of(outcome), outcome.seconds, {"output": outcome.output[-2000:]})
    return None


def packed(image: bytes) -> str:
    """For the report: at most some 20 KB."""
    return base64.b64encode(zlib.compress(image[:65536])).decode()


def difference(image: bytes, expected: bytes) -> str:
    """Nothing if they are equal, else where they differ, in words of 4 bytes."""
    if image == expected:
        return ""
    at = next((i for i in range(min(len(image), len(expected))) if image[i] != expected[i]), 0) // 4 * 4
    count = sum(a != b for a, b in zip(image, expected))
    return (f"{count} of {len(expected)} bytes differ, first at {at}: the device has {image[at:at + 4].hex()}, "
            f"the simulator {expected[at:at + 4].hex()}")


def take_image(folder: pathlib.Path, case: Case, limit: float) -> tuple[Outcome, bytes]:
    path = folder / "images" / f"{case.name}.bin"
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    outcome = run([sys.executable, "run_case.py", case.name, "--image", str(path)], limit, folder)
    return outcome, path.read_bytes() if outcome.code == 0 else b""


def images(folder: pathlib.Path, target: str, limit: float) -> Work:
    """Kernels whose bytes must be those of the simulator."""
    def execute(case: Case) -> Entry:
        outcome, image = take_image(folder, case, limit)
        if bad := ended("images", case.name, outcome):
            return bad
        expected = (folder / "expected" / target / f"{case.name}.bin").read_bytes()
        if text := difference(image, expected):
            return Entry("images", case.name, "differs", text, outcome.seconds, {"image": packed(image)})
        return Entry("images", case.name, "pass", "", outcome.seconds)

    for case in catalogue.conformance():
        there = (folder / "expected" / target / f"{case.name}.bin").exists()
        if target in case.targets and (there or case.name.startswith("fault_")):
            yield case.name, lambda case=case: execute(case)  # type: ignore[misc]


def probes(folder: pathlib.Path, target: str, limit: float) -> Work:
    """Runs the cases that the simulator infers; the result of the device is an answer, neither right nor wrong."""
    def execute(probe: Probe) -> Entry:
        outcome, image = take_image(folder, probe.case, limit)
        if bad := ended("probes", probe.case.name, outcome):
            return bad
        path = folder / "expected" / target / f"{probe.case.name}.bin"
        expected = b"" if probe.assumes else path.read_bytes()
        found, assumed = probe.answer(image), probe.assumes or probe.answer(expected)
        same = "the same bytes" if image == expected else "other bytes"
        return Entry("probes", probe.case.name, "answered", f"{found} (the simulator: {assumed}; {same})", outcome.seconds,
                     {"question": probe.question, "where": probe.where, "device": found, "simulator": assumed,
                      "agrees": found == assumed if probe.answers else image == expected,
                      "equal": image == expected, "image": packed(image)})

    for probe in catalogue.probes():
        packed_image = folder / "expected" / target / f"{probe.case.name}.bin"
        silicon_only = bool(probe.assumes) and not (folder / "quick").exists()
        if target in probe.case.targets and (silicon_only or packed_image.exists()):
            yield probe.case.name, lambda probe=probe: execute(probe)  # type: ignore[misc]


def conformance(folder: pathlib.Path, target: str, limit: float) -> Work:
    """The suites of fp4-cts, each with the images that the simulator wrote."""
    listed = folder / "suites.json"
    suites = json.loads(listed.read_text()).get(target, {}) if listed.exists() else {}

    def execute(suite: str, hashes: dict[str, str]) -> Entry:
        environment = {"FP4_DEVICE": "cuda", "FP4_IMAGES": f"images/cts-{suite}", "FP4_PTX_FOLDER": "."}
        outcome = run(["./fp4-cts", "--gtest_brief=1", f"--gtest_filter={suite}.*"], 4 * limit, folder, environment)
        if bad := ended("conformance", suite, outcome):
            return bad
        wrong = [name for name, digest in hashes.items() if image_hash(folder / f"images/cts-{suite}" / name) != digest]
        return Entry("conformance", suite, "differs" if wrong else "pass",
                     f"{len(hashes) - len(wrong)} of {len(hashes)} images agree", outcome.seconds, {"differ": wrong[:50]})

    for suite, hashes in suites.items():
        yield suite, lambda suite=suite, hashes=hashes: execute(suite, hashes)  # type: ignore[misc]


def image_hash(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def lines_of(folder: pathlib.Path, name: str, target: str) -> list[str]:
    path = folder / target / name
    return path.read_text().splitlines() if path.exists() else []


def programs(folder: pathlib.Path, target: str, limit: float) -> Work:
    """Compiled programs, whose results fp4-run verifies against the reference."""
    def execute(line: str) -> Entry:
        outcome = run(["../fp4-run", *line.split(), "--device", "cuda"], limit, folder / target)
        bad = ended("programs", line, outcome)
        if bad and outcome.code == 1:
            bad.status = "differs"
        return bad or Entry("programs", line, "pass", "", outcome.seconds)

    for line in lines_of(folder, "programs.txt", target):
        yield line, lambda line=line: execute(line)  # type: ignore[misc]


def times(folder: pathlib.Path, target: str, limit: float) -> Work:
    """Measured times of kernels beside predicted ones. fp4-run verifies a result before it times it, and replays
    what takes less than 50 us as a graph."""
    def execute(name: str, line: str, predicted: float) -> Entry:
        outcome = run(["../fp4-run", *line.split(), "--device", "cuda", "--benchmark", "--json"], 4 * limit,
                      folder / target)
        if bad := ended("times", name, outcome):
            return bad
        found = measured_program(outcome.output)
        if found is None:
            return Entry("times", name, "skipped", "no time: a simulator has none", outcome.seconds)
        measured, clock = found
        detail = (f"measured {measured:8.1f} us, predicted {predicted:8.1f} us, ratio {measured / predicted:.2f}, "
                  f"at {clock}")
        return Entry("times", name, "pass", detail, outcome.seconds,
                     {"measured": measured, "predicted": predicted, "ratio": measured / predicted,
                      "report": outcome.output})

    for line in lines_of(folder, "times.txt", target):
        name, arguments, predicted = line.split("\t")
        yield name, lambda n=name, a=arguments, p=float(predicted): execute(n, a, p)  # type: ignore[misc]


def measured_program(output: str) -> tuple[float, str] | None:
    """Microseconds of all kernels of a call together, of fp4-run --benchmark --json, and the clock."""
    try:
        entries = json.loads(output[output.index("{"):])["benchmark"]["entries"]
        [timing] = [entry["timing"] for entry in entries if entry["name"] == "program"]
        clock = timing.get("sm_clock_mhz", [0, 0])
        true = timing.get("true_clock_mhz")
        return 1e3 * float(timing["median_ms"]), f"{true:.0f} MHz" if true else f"{clock[0]} to {clock[1]} MHz by the driver"
    except (ValueError, KeyError, TypeError):
        return None


def micro(folder: pathlib.Path, target: str, limit: float) -> Work:
    """Microbenchmarks, a process for each section of them."""
    def execute(section: str) -> Entry:
        path = folder / "images" / f"micro-{section}.json"
        path.parent.mkdir(exist_ok=True)
        quick = ["--quick"] if (folder / "quick").exists() else []
        outcome = run([sys.executable, "run.py", "--only", section, "--json", str(path), *quick], 4 * limit, folder)
        if bad := ended("micro", section, outcome):
            return bad
        rows = json.loads(path.read_text())["rows"]
        return Entry("micro", section, "pass", f"{len(rows)} measurements", outcome.seconds, {"rows": rows})

    listed = run([sys.executable, "run.py", "--list"], 60, folder).output.split()
    for section in listed:
        yield section, lambda section=section: execute(section)  # type: ignore[misc]
