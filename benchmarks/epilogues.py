#!/usr/bin/env python3
"""Predicts the cost of epilogues on a B200 by tile and by warps, in the simulator and by the static
model of plans.

  benchmarks/epilogues.py [--build BUILD] [--only WORD] [--sizes M,N,K ...] [--tiles TILE ...]
      [--times FILE]
                          [--static | --regret]

For every epilogue and size, one GEMM of NVFP4 (or two of one lhs) with a plan for each tile, whose
epilogue has four warps and then eight: microseconds of `fp4-runner --time-only` (sm_100a, 1.965
GHz, the kernel alone, launch included; large grids are sampled). TILE is 256x128 for a pair of CTAs
or 128x128 for one; each of the GEMMs of a dual one has half of the columns. A dash stands for a
plan that the epilogue cannot have. One star marks what the compiler chooses, two the least.
--static prints what the static model says of each plan beside the time. --regret prints, instead of
all times, that of the chosen plan, the least one, and how much longer the chosen one takes. Every
number is a prediction. FILE keeps the times of plans, so that a change of the static model alone
needs few new ones: remove it when kernels or the simulator change.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import blackwell

SIZES = ["1024,2048,1024", "2048,4096,2048", "4096,4096,1024", "4096,4096,4096", "8192,8192,8192"]
TILES = ["128x64", "128x128", "256x64", "256x128", "256x192", "256x256"]
LAYOUT = "#fp4.scale_layout<tiled_128x4>"

# Epilogue regions: %x and, of a dual GEMM, %y are sums; %i is the input of the epilogue. Each
# region ends in %e.
SILU = """    %one = arith.constant 1.0 : f32
    %minus = arith.negf %x : f32
    %power = math.exp %minus : f32
    %below = arith.addf %power, %one : f32
    %act = arith.divf %x, %below : f32
"""
GELU = """    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.7978845608 : f32
    %cube = arith.constant 0.0356774081 : f32
    %square = arith.mulf %x, %x : f32
    %slope = arith.mulf %square, %cube : f32
    %sum = arith.addf %slope, %root : f32
    %inner = arith.mulf %sum, %x : f32
    %tanh = math.tanh %inner : f32
    %above = arith.addf %tanh, %one : f32
    %halved = arith.mulf %x, %half : f32
    %act = arith.mulf %above, %halved : f32
"""
BIAS = "    %e = arith.addf %x, %i : f32\n"


@dataclass
class Epilogue:
    """The operations on the sums: an epilogue region with its input, `codes` of rows, columns or
    both, an amax."""
    name: str
    body: str = ""
    input: str = ""  # its type, with {m} and {n}
    result: str = "bf16"  # of the elements; empty where they are no result
    dual: bool = False
    codes: str = ""  # a format
    outputs: str = "rowwise"
    amax: bool = False
    alpha: bool = False


EPILOGUES = [
    Epilogue("none"),
    Epilogue("none, f32", result="f32"),
    Epilogue("alpha", alpha=True),
    Epilogue("bias", BIAS, "1x{n}xf32"),
    Epilogue("factors of rows", "    %e = arith.mulf %x, %i : f32\n", "{m}x1xf32"),
    Epilogue("residual", "    %wide = arith.extf %i : bf16 to f32\n    %e = arith.addf %x, %wide : f32\n", "{m}x{n}xbf16"),
    Epilogue("SiLU", SILU + "    %e = arith.mulf %act, %one : f32\n"),
    Epilogue("GELU", GELU + "    %e = arith.mulf %act, %one : f32\n"),
    Epilogue("amax", amax=True),
    Epilogue("codes of rows, nvfp4", codes="nvfp4", result=""),
    Epilogue("codes of rows, mxfp4", codes="mxfp4", result=""),
    Epilogue("codes of columns, nvfp4", codes="nvfp4", outputs="columnwise", result=""),
    Epilogue("codes of both, nvfp4", codes="nvfp4", outputs="both", result=""),
    Epilogue("GELU, codes of rows, nvfp4", GELU + "    %e = arith.mulf %act, %one : f32\n", codes="nvfp4", result=""),
    Epilogue("SwiGLU", SILU + "    %e = arith.mulf %act, %y : f32\n", dual=True),
    Epilogue("GeGLU", GELU + "    %e = arith.mulf %act, %y : f32\n", dual=True),
    Epilogue("SwiGLU, codes of rows, nvfp4", SILU + "    %e = arith.mulf %act, %y : f32\n", dual=True, codes="nvfp4", result=""),
    Epilogue("SwiGLU, codes of both, nvfp4, amax", SILU + "    %e = arith.mulf %act, %y : f32\n", dual=True, codes="nvfp4",
             outputs="both", amax=True),
]


def scales(rows: int, columns: int, fmt: str = "nvfp4") -> str:
    block, element = blackwell.BLOCK[fmt], blackwell.SCALE.get(fmt, "f8E8M0FNU")
    return f"tensor<{rows}x{columns // block}x{element}, {LAYOUT}>"


def results_of(e: Epilogue, m: int, n: int) -> list[str]:
    types = [f"tensor<{m}x{n}x{e.result}>"] if e.result else []
    if e.codes and e.outputs != "columnwise":
        types += [f"tensor<{m}x{n}xf4E2M1FN>", scales(m, n, e.codes)]
    if e.codes and e.outputs != "rowwise":
        types += [f"tensor<{n}x{m}xf4E2M1FN>", scales(n, m, e.codes)]
    return types + (["tensor<f32>"] if e.amax else [])


def body_of(e: Epilogue) -> str:
    """The region, which a GEMM without operations does without."""
    needs = e.body or e.codes or e.amax
    if not needs:
        return ""
    arguments = ["%x: f32"] + (["%y: f32"] if e.dual else []) + ([f"%i: {e.input.rsplit('x', 1)[1]}"] if e.input else [])
    inputs = ["%in"] * bool(e.input)
    value, lines, element = "%e" if e.body else "%x", e.body, e.result or "bf16"
    if element != "f32":
        lines += f"    %narrow = arith.truncf {value} : f32 to {element}\n"
        value = "%narrow"
    yielded, types = [value] * bool(e.result), [element] * bool(e.result)
    if e.codes:
        most, kind = (" amax %most", ", f32") if e.codes == "nvfp4" else ("", "")
        sides = 2 if e.outputs == "both" else 1
        made = ["f4E2M1FN", blackwell.SCALE.get(e.codes, "f8E8M0FNU")] * sides
        recipe = "transformer_engine" if e.codes == "nvfp4" else "ocp_rceil"
        lines += (f"    %q:{2 * sides} = fp4.epilogue_quantize {value}{most} {{recipe = #fp4.recipe<{recipe}>,"
                  f" outputs = #fp4.outputs<{e.outputs}>}} : ({element}{kind}) -> ({', '.join(made)})\n")
        arguments, inputs = arguments + ["%most: f32"] * bool(most), inputs + ["%g"] * bool(most)
        yielded, types = yielded + [f"%q#{i}" for i in range(2 * sides)], types + made
    if e.amax:
        lines += f"    %largest = fp4.epilogue_amax {value} : {element} -> f32\n"
        yielded, types = yielded + ["%largest"], types + ["f32"]
    return (f" epilogue({', '.join(inputs)}) {{\n  ^bb0({', '.join(arguments)}):\n{lines}"
            f"    fp4.yield {', '.join(yielded)} : {', '.join(types)}\n  }}")


def program(e: Epilogue, m: int, n: int, k: int, plan: str) -> str:
    """One GEMM as the fusion leaves it."""
    a, b, sa, sb = f"tensor<{m}x{k}xf4E2M1FN>", f"tensor<{n}x{k}xf4E2M1FN>", scales(m, k), scales(n, k)
    given = {"a": a, "sa": sa, "b": b, "sb": sb}
    given |= {"s": "tensor<f32>"} if e.alpha else {}
    given |= {"c": b, "sc": sb} if e.dual else {}
    given |= {"in": f"tensor<{e.input.format(m=m, n=n)}>"} if e.input else {}
    given |= {"g": "tensor<f32>"} if e.codes == "nvfp4" else {}
    sides = "abc" if e.dual else "ab"
    types = [f"!fp4.scaled<nvfp4, {given[side]}, {given[f's{side}']}>" for side in sides]
    lines = "".join(f"  %{side}_scaled = fp4.scaled %{side}, %s{side} : {kind}\n" for side, kind in zip(sides, types))
    types += [given[name] for name in ("s", "in", "g") if name in given]
    operands = "%a_scaled, %b_scaled" + " with %c_scaled" * e.dual + " alpha %s" * e.alpha
    attributes = []
    attributes += [f"fp4.plan = #fp4.plan<tile_gemm, {plan}>"] if plan else []
    found = results_of(e, m, n)
    names = ", ".join(f"%r#{i}" for i in range(len(found))) if len(found) > 1 else "%r"
    return (f"func.func @f({', '.join(f'%{name}: {kind}' for name, kind in given.items())}) -> ({', '.join(found)}) {{\n"
            f"{lines}  %r{f':{len(found)}' if len(found) > 1 else ''} = fp4.matmul {operands}"
            f"{body_of(e)} {{{', '.join(attributes)}}}\n      : ({', '.join(types)}) -> ({', '.join(found)})\n"
            f"  return {names} : {', '.join(found)}\n}}\n")


def plan_of(e: Epilogue, tile: str, warps: int) -> str:
    rows, columns = map(int, tile.split("x"))
    if e.dual:
        columns //= 2
    return f"{'pair, ' if rows == 256 else ''}tile = [{rows}, {columns}, 256], epilogue_warps = {warps}"


def spell(plan: str) -> str:
    """Returns the name that `planned` gives to a plan."""
    rows, columns = re.search(r"\[(\d+), (\d+)", plan).groups()  # type: ignore[union-attr]
    return f"{rows}x{columns}, {plan[-1]}"


REMARK = re.compile(r'Remark="tiles of (\d+)x(\d+) by (.*?), predicted ([\d.]+) us')
WARPS = re.compile(r"epilogue_warps = (\d)")


def planned(build: pathlib.Path, source: pathlib.Path) -> tuple[str, float] | None:
    """The tile and the warps that fp4-plan-kernels decides, and what it predicts."""
    found = subprocess.run([build / "bin/fp4-opt", source, "-fp4-set-target=target=sm_100a", "-fp4-plan-kernels",
                            "--remarks-filter-passed=fp4-plan"], capture_output=True, text=True, check=False)
    remark, warps = REMARK.search(found.stderr + found.stdout), WARPS.search(found.stdout)
    if found.returncode or not remark:
        return None
    return f"{remark[1]}x{remark[2]}, {warps[1] if warps else 4}", float(remark[4])


class Bench:
    """Times of plans, kept in a file."""

    def __init__(self, build: pathlib.Path, path: pathlib.Path | None, scratch: pathlib.Path) -> None:
        self.build, self.path, self.source = build, path, scratch / "p.mlir"
        self.known: dict[str, float | None] = json.loads(path.read_text()) if path and path.exists() else {}

    def of(self, e: Epilogue, size: str, plan: str) -> tuple[float | None, tuple[str, float] | None]:
        """Returns what the simulator predicts, and what the compiler decides and predicts."""
        self.write(e, size, plan)
        decided = planned(self.build, self.source)
        key = f"{e.name}; {size}; {plan}"
        if key not in self.known:
            found = blackwell.timed(self.build, self.source, 240) if decided else "no plan"
            self.known[key] = float(str(found["microseconds"])) if isinstance(found, dict) else None
            if isinstance(found, str):
                print(f"{key}: {found}", file=sys.stderr)
            if self.path:
                self.path.write_text(json.dumps(self.known, indent=1) + "\n")
        return self.known[key], decided

    def choice(self, e: Epilogue, size: str) -> tuple[str, float] | None:
        self.write(e, size, "")
        return planned(self.build, self.source)

    def write(self, e: Epilogue, size: str, plan: str) -> None:
        m, n, k = map(int, size.split(","))
        self.source.write_text(program(e, m, n, k, plan))


def cell(time: float | None, decided: tuple[str, float] | None, static: bool, marks: str) -> str:
    if time is None or decided is None:
        return "-"
    return f"{time:.2f}{f' ({decided[1]:.2f})' if static else ''}{marks}"


def times_of(bench: Bench, e: Epilogue, size: str, tiles: list[str]) -> dict[str, tuple[float | None, tuple[str, float] | None]]:
    """Returns times by tile and warps, and those of the chosen plan under its name."""
    found = {}
    for tile in tiles:
        for warps in (4, 8):
            plan = plan_of(e, tile, warps)
            found[spell(plan)] = bench.of(e, size, plan)
    return found


def row_of(bench: Bench, e: Epilogue, size: str, tiles: list[str], static: bool) -> str:
    found, chosen = times_of(bench, e, size, tiles), bench.choice(e, size)
    least = min((time for time, _ in found.values() if time), default=None)
    cells = []
    for name, (time, decided) in found.items():
        marks = ("*" if chosen and name == chosen[0] else "") + (" **" if time == least else "")
        cells.append(cell(time, decided, static, marks))
    return f"| {e.name} | {' x '.join(size.split(','))} | " + " | ".join(cells) + " |"


def regret_of(bench: Bench, e: Epilogue, size: str, tiles: list[str]) -> tuple[str, float]:
    """The row of an epilogue, and by how much the chosen plan takes longer than the fastest."""
    times = {name: time for name, (time, _) in times_of(bench, e, size, tiles).items() if time}
    chosen = bench.choice(e, size)
    if not chosen or not times:
        sys.exit(f"{e.name} {size}: no plan")
    rows, columns, warps = re.split("[x,]", chosen[0])
    width = int(columns) * (2 if e.dual else 1)
    times[chosen[0]] = bench.of(e, size, plan_of(e, f"{rows}x{width}", int(warps)))[0] or float("nan")
    best = min(times, key=lambda name: times[name])
    regret = times[chosen[0]] / times[best] - 1
    return (f"| {e.name} | {' x '.join(size.split(','))} | {chosen[0]} | {chosen[1]:.2f} | {times[chosen[0]]:.2f} | {best} | "
            f"{times[best]:.2f} | {100 * regret:.1f} |"), regret


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=blackwell.ROOT / "build")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="M,N,K")
    parser.add_argument("--tiles", nargs="+", default=TILES, metavar="TILE")
    parser.add_argument("--times", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--static", action="store_true")
    parser.add_argument("--regret", action="store_true")
    options = parser.parse_args()
    names = [f"{tile}, {warps}" for tile in options.tiles for warps in (4, 8)]
    if options.regret:
        names = ["chosen tile, warps", "static model, us", "us", "fastest", "us", "regret, %"]
    print(f"| epilogue | M x N x K | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
    regrets = []
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options.build, options.times, pathlib.Path(scratch))
        for size in options.sizes:
            for e in EPILOGUES:
                if options.only not in e.name:
                    continue
                if options.regret:
                    row, regret = regret_of(bench, e, size, options.tiles)
                    regrets.append(regret)
                    print(row, flush=True)
                else:
                    print(row_of(bench, e, size, options.tiles, options.static), flush=True)
    if regrets:
        print(f"{len(regrets)} epilogues, mean regret {100 * sum(regrets) / len(regrets):.1f} %, most {100 * max(regrets):.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
