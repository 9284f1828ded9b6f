"""The table of a comparison: as JSON, as text and as a plot."""
from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docgen"))

SCHEMA = 1
OURS = "fp4"
HEADER = ("product", "fp4, us", "with", "peer", "peer, us", "ratio", "roof, us", "fp4 of roof", "MHz: fp4, peer")


def fastest(problem: dict[str, Any], library: str) -> dict[str, Any] | None:
    """The fastest result of a library for a problem; None where none was measured."""
    found = [r for r in problem["results"] if r["library"] == library and "us" in r]
    return min(found, key=lambda r: r["us"], default=None)


def rows(report: dict[str, Any]) -> list[list[str]]:
    """A row for each problem and case of a peer: ratio is the peer's time by ours, so above 1 ours
    is faster."""
    found = []
    for problem in report["problems"]:
        ours = fastest(problem, OURS)
        peers = [r for r in problem["results"] if r["library"] != OURS and "us" in r]
        for peer in peers or [None]:
            found.append(_row(problem, ours, peer))
    return found


def _row(problem: dict[str, Any], ours: dict[str, Any] | None, peer: dict[str, Any] | None) -> list[str]:
    def us(result: dict[str, Any] | None) -> str:
        return f"{result['us']:.1f}" if result else "-"

    def mhz(result: dict[str, Any] | None) -> str:
        return f"{result['mhz']:.0f}" if result else "-"

    ratio = f"{peer['us'] / ours['us']:.2f}" if ours and peer else "-"
    share = f"{100 * problem['roof_us'] / ours['us']:.0f} %" if ours else "-"
    name = f"{peer['library']} {peer['case']}" if peer else "-"
    return [title(problem), us(ours), ours["case"] if ours else "-", name, us(peer), ratio,
            f"{problem['roof_us']:.1f} ({problem['bound']})", share, f"{mhz(ours)}, {mhz(peer)}"]


def title(problem: dict[str, Any]) -> str:
    groups = f", {problem['groups']} groups" if problem["groups"] > 1 else ""
    return f"{problem['kind']} {problem['rows']} x {problem['n']} x {problem['k']}{groups}"


def failures(report: dict[str, Any]) -> list[str]:
    """Libraries that are missing, and cases that failed."""
    found = [f"{name} is missing: {state}" for name, state in report["libraries"].items() if state != "measured"]
    for problem in report["problems"]:
        found += [f"{title(problem)}: {r['library']} {r['case']}: {r['failed']}"
                  for r in problem["results"] if "failed" in r]
    return found


def regrets(report: dict[str, Any]) -> list[tuple[str, float, str]]:
    """(problem, regret, fastest case) of each problem with plans of --space or --plan, the greatest
    regret first: the time of the fastest plan that the compiler chose by that of the fastest of
    all, less one."""
    found = []
    for problem in report["problems"]:
        cases = [r for r in problem["results"] if r["library"] == OURS and "us" in r]
        chosen = [r["us"] for r in cases if " = " not in r["case"]]
        if len(chosen) in (0, len(cases)):
            continue
        best = min(cases, key=lambda r: r["us"])
        found.append((title(problem), min(chosen) / best["us"] - 1, best["case"]))
    return sorted(found, key=lambda row: -row[1])


def _regret_lines(report: dict[str, Any]) -> list[str]:
    found = regrets(report)
    if not found:
        return []
    mean = sum(regret for _, regret, _ in found) / len(found)
    lines = [f"- {name}: {100 * regret:.1f} %, {case}" for name, regret, case in found]
    return [f"mean regret of {len(found)} problem{'s'[:len(found) != 1]} {100 * mean:.1f} %", "", *lines, ""]


def text(report: dict[str, Any]) -> str:
    """Markdown, one line for each row, and below what is missing."""
    lines = [HEADER, ["---"] * len(HEADER), *rows(report)]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    machine = report["machine"]
    head = f"{machine['device']}, driver {machine['driver']}, torch {machine['torch']}; {report['method']}"
    return "\n".join([head, "", table, "", *_regret_lines(report), *failures(report)]) + "\n"


def plot(report: dict[str, Any]) -> str:
    """An SVG of bars: us of each library's fastest case, on a logarithmic axis where they differ
    much."""
    import plot_benchmarks

    libraries = list(dict.fromkeys(r["library"] for p in report["problems"] for r in p["results"] if "us" in r))
    header = ["product", *(f"{library}, us" for library in libraries), "roof, us"]
    body = []
    for problem in report["problems"]:
        best = [fastest(problem, library) for library in libraries]
        body.append([title(problem), *(f"{r['us']:.1f}" if r else "-" for r in best), f"{problem['roof_us']:.1f}"])
    drawing: str = plot_benchmarks.draw(plot_benchmarks.Table("", "", "", header, body), "us")
    return drawing


def check_schema(report: dict[str, Any]) -> None:
    """Raises ValueError where a report is not one of SCHEMA."""
    if report.get("schema") != SCHEMA:
        raise ValueError(f"the schema must be {SCHEMA}, but is {report.get('schema')}")
    for key in ("machine", "method", "libraries", "problems"):
        if key not in report:
            raise ValueError(f"the report must have '{key}'")
    for problem in report["problems"]:
        for result in problem["results"]:
            if ("us" in result) == ("failed" in result):
                raise ValueError(f"a result must have either 'us' or 'failed': {json.dumps(result)}")
            if "us" in result and not {"low", "high", "mhz", "samples", "error"} <= result.keys():
                raise ValueError(f"a time must have its percentiles, clock, samples and error: {json.dumps(result)}")
