#!/usr/bin/env python3
"""Predicts gated units of FP8 on a B200: one kernel that promotes the sums of two GEMMs and
quantizes, and two kernels.

  benchmarks/promoted_gates.py [--build BUILD] [--only NAME,...] [--json FILE]

The gate is silu(x W) * (x V) with results in FP8 of 1 x 128. The first of two kernels is a GEMM of
both weights side by side with results in bf16, and the second has the elementwise operations and
the quantizer. Times are those of `fp4-run --time-only` with instructions as they are estimated from
PTX: a cold L2, each kernel alone. Nothing ran on a B200.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import tempfile

import kit

BLOCK, PACKED = 128, 8704  # elements of a block, and bytes of a tile of prepacked weights
#: Rows, columns of each weight and K, as experts and layers of DeepSeek-V3 have them.
CELLS = {f"{name}-{m}x{n}x{k}": (name, m, n, k)
         for name, m, n, k in (("fp8", 64, 2048, 7168), ("fp8", 1024, 2048, 7168), ("fp8", 4096, 2048, 7168), ("fp8", 64, 18432, 7168),
                               ("w4a8", 16, 2048, 7168), ("w4a8", 64, 2048, 7168), ("w4a8", 512, 2048, 7168))}
COLUMNS = [("gate", "gate", None), ("one_us", "one kernel", "us"), ("gemm_us", "GEMM of both weights", "us"),
           ("quantizer_us", "gate and quantizer", "us"), ("gain", "two by one", None)]
SILU = """    %one = arith.constant 1.0 : f32
    %minus = arith.negf %sum : f32
    %power = math.exp %minus : f32
    %under = arith.addf %power, %one : f32
    %silu = arith.divf %sum, %under : f32
    %y = arith.mulf %silu, %gate : f32
    %z = arith.truncf %y : f32 to bf16
"""
RECIPE = "recipe = #fp4.recipe<fp8_deepgemm>"


def blocks(size):
    return -(-size // BLOCK)


def results(m, n):
    return f"(tensor<{m}x{n}xf8E4M3FN>, tensor<{m}x{blocks(n)}xf32>)"


def operand(kind, name, rows, k):
    """Arguments, lines and the type of an operand: %x of activations, or weights."""
    if kind == "w4a8":
        made = f"tensor<{rows}x{k}xf8E4M3FN>" if name == "x" else f"tensor<{blocks(rows)}x{blocks(k)}x{PACKED}xi8, #fp4.weight_layout<wgmma>>"
        return [f"%{name}: {made}"], "", made
    data, scales = f"tensor<{rows}x{k}xf8E4M3FN>", f"tensor<{rows if name == 'x' else blocks(rows)}x{blocks(k)}xf32>"
    made = f"!fp4.scaled<fp8_block128, {data}, {scales}>"
    return [f"%q{name}: {data}", f"%s{name}: {scales}"], f"  %{name} = fp4.scaled %q{name}, %s{name} : {made}\n", made


def gemm(kind, m, n, k, weights):
    """A GEMM of one weight with results in bf16, or of two with FP8 results."""
    operands = [operand(kind, name, m if name == "x" else n, k) for name in ("x", *weights)]
    arguments = ", ".join(argument for arguments, _, _ in operands for argument in arguments)
    lines, types = "".join(line for _, line, _ in operands), ", ".join(made for _, _, made in operands)
    if len(weights) == 1:
        y = f"tensor<{m}x{n}xbf16>"
        return f"func.func @f({arguments}) -> {y} {{\n{lines}  %y = fp4.matmul %x, %w : ({types}) -> {y}\n  return %y : {y}\n}}\n"
    codes = results(m, n)
    return (f"func.func @f({arguments}) -> {codes} {{\n{lines}  %q, %s = fp4.matmul %x, %w with %v epilogue() {{\n"
            f"  ^bb0(%sum: f32, %gate: f32):\n{SILU}    %code, %scale = fp4.epilogue_quantize %z {{{RECIPE}}} : (bf16) -> (f8E4M3FN, f32)\n"
            f"    fp4.yield %code, %scale : f8E4M3FN, f32\n  }} : ({types}) -> {codes}\n  return %q, %s : {codes[1:-1]}\n}}\n")


def quantizer(m, n):
    h = f"tensor<{m}x{n}xbf16>"
    return (f"#all = affine_map<(i, j) -> (i, j)>\nfunc.func @f(%p: {h}, %r: {h}) -> {results(m, n)} {{\n  %e = tensor.empty() : {h}\n"
            f"  %h = linalg.generic {{indexing_maps = [#all, #all, #all], iterator_types = [\"parallel\", \"parallel\"]}}"
            f" ins(%p, %r : {h}, {h}) outs(%e : {h}) {{\n  ^bb0(%a: bf16, %b: bf16, %o: bf16):\n"
            f"    %sum = arith.extf %a : bf16 to f32\n    %gate = arith.extf %b : bf16 to f32\n{SILU}    linalg.yield %z : bf16\n  }} -> {h}\n"
            f"  %q, %s = fp4.quantize %h {{format = #fp4.format<fp8_block128>, {RECIPE}}} : ({h}) -> {results(m, n)}\n"
            f"  return %q, %s : {results(m, n)[1:-1]}\n}}\n")


def predicted(build, folder, text):
    """Microseconds of the one kernel of a program."""
    source, library = folder / "f.mlir", folder / "f.so"
    source.write_text(text)
    subprocess.run([build / "bin/fp4-runner", source, "--target=sm_100a", "--emit=so", "-o", library],
                   env=os.environ | {"FP4_PTXAS": "none"}, capture_output=True, check=True)
    run = subprocess.run([build / "bin/fp4-run", library, "--device=sim", "--time-only", "--json", "--no-verify", "--check=off"],
                         capture_output=True, text=True, check=True)
    time, = json.loads(run.stdout)["predicted_times"]
    assert time["predicted"], time
    return time["microseconds"]


def row_of(build, folder, name):
    kind, m, n, k = CELLS[name]
    one = predicted(build, folder, gemm(kind, m, n, k, "wv"))
    both, rest = predicted(build, folder, gemm(kind, m, 2 * n, k, "w")), predicted(build, folder, quantizer(m, n))
    row = {"gate": name, "one_us": round(one, 1), "gemm_us": round(both, 1), "quantizer_us": round(rest, 1),
           "gain": round((both + rest) / one, 2)}
    print(json.dumps(row), flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(kit.ROOT, "build"))
    parser.add_argument("--only", type=kit.names, default=CELLS)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [row_of(options.build, pathlib.Path(folder), name) for name in options.only]
    if options.json:
        revision = subprocess.run(["git", "-C", kit.ROOT, "rev-parse", "--short=8", "HEAD"], text=True, capture_output=True, check=True)
        result = {"area": "promoted-gates", "card": "B200", "device": "sm_100a, simulated", "driver": None,
                  "date": datetime.date.today().isoformat(), "revision": revision.stdout.strip(), "clock": "1.965 GHz, cold L2",
                  "command": "benchmarks/promoted_gates.py", "program": "instructions as estimated from PTX", "evidence": "predicted",
                  "columns": [dict(zip(("name", "title", "unit"), column)) for column in COLUMNS], "key": ["gate"], "rows": rows}
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
