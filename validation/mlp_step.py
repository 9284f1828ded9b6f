#!/usr/bin/env python3
"""One training step of a two-layer perceptron in NVFP4, examples/mlp_step.mlir, beside
TransformerEngine's.

  validation/mlp_step.py [--build BUILD] [--scale 32]

Runs and verifies the program, and prints a table: the launches of each part, and the bytes that
they must read and write, of a step whose sizes are SCALE times those of the example. Bytes are
those of the operands and results of each launch, counted once, for both sides by the same rule;
what a cache saves or costs is in neither column.

Fails if the program fails, if a part launches more kernels than TransformerEngine, or if
docs/performance/gemm-fp4.md has another table.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BITS = {"bf16": 16, "f32": 32, "i64": 64, "f4E2M1FN": 4, "f8E4M3FN": 8}
TENSOR = re.compile(r"tensor<((?:\d+x)*)(\w+)[^>]*?(?:>|, #[\w.]+<\w+>>)")
PARTS = ["forward: layer 1", "silu", "forward: layer 2", "backward: layer 2", "silu'", "backward: layer 1"]
# Parts of the program by kind of operation, in the order of its text: fp4-fuse moves none of
# another part in between.
LAUNCH = re.compile(r"= (fp4\.(?:hadamard_amax|quantize|amax|matmul_alpha|matmul)|linalg\.generic) ")


def bytes_of(types):
    total = 0
    for shape, element in TENSOR.findall(types):
        size = BITS[element]
        for extent in re.findall(r"\d+", shape):
            size *= int(extent)
        total += size // 8
    return total


def launches_of(fused):
    """Operation and bytes of each kernel of the fused program: the types of an operation end its
    last line."""
    found, name, given = [], None, 0
    for alias, kind in re.findall(r"^(!\w+) = (.*)$", fused, re.M):
        fused = re.sub(rf"{alias}\b", kind, fused)
    for line in fused.splitlines():
        if start := LAUNCH.search(line):
            name = start[1]
            given = bytes_of(re.search(r"ins\((.*?)\) outs", line)[1]) if name == "linalg.generic" else 0
        if not name or line.rstrip().endswith("{"):
            continue
        ended = re.search(r"\} -> (tensor.*)" if name == "linalg.generic" else r" : (\(?(?:tensor|!fp4\.scaled)<.* -> .*)", line)
        if ended:
            found.append((name.split(".")[1], given + bytes_of(ended[1])))
            name = None
    return found


def theirs(m, k, f, n):
    """Launches of TransformerEngine (main of 2026-08-22, d0067d0) for a Linear, an activation and a
    Linear with its NVFP4 recipe on Blackwell, with their bytes. NVFP4Quantizer::quantize_impl has
    the quantizers; its activations compute an activation in bf16 before it quantizes where
    transforms are on (Impl::UNFUSED); cublas_gemm launches the factor and the GEMM. Kernels that
    set an amax to zero, copy one or unpack the state of random numbers are not counted."""
    def both(r, c):  # amaxes, then codes and scales in both orientations
        return [2 * r * c + 8, 2 * r * c + 8 + 2 * (r * c // 2 + r * c // 16)]

    def product(r, c, depth, result=2):
        codes = (r + c) * depth
        return [12, codes // 2 + codes // 16 + 4 + result * r * c]

    weight = lambda r, c: [2 * r * c + 4, both(r, c)[1] - 4]
    return {PARTS[0]: both(m, k) + weight(f, k) + product(m, f, k), PARTS[1]: [4 * m * f],
            PARTS[2]: both(m, f) + weight(n, f) + product(m, n, f),
            PARTS[3]: [x + 16 * (i == 1) for i, x in enumerate(both(m, n))] + product(m, f, n) + product(n, f, m, 4),
            PARTS[4]: [6 * m * f],
            PARTS[5]: [x + 16 * (i == 1) for i, x in enumerate(both(m, f))] + product(m, k, f) + product(f, k, m, 4)}


def ours(launches):
    """Returns our launches by part: 6 launches of layer 1, silu, 6 of layer 2, 6 backward, among
    them the slope of silu, and 6."""
    parts, rest = {}, list(launches)
    for part, count in zip(PARTS, (6, 1, 6, 6, 0, 6)):
        parts[part], rest = rest[:count], rest[count:]
    if rest or parts["silu"][0][0] != "generic" or sum(name == "generic" for name, _ in launches) != 1:
        sys.exit(f"error: the program is no longer cut as expected: {[name for name, _ in launches]}")
    return {part: [count for _, count in listed] for part, listed in parts.items()}


def table(mine, their):
    megabytes = lambda listed: f"{sum(listed) / 1e6:.1f}"
    lines = ["| part | launches: TransformerEngine | fp4 | MB: TransformerEngine | fp4 |", "|---|---|---|---|---|"]
    for part in PARTS:
        lines.append(f"| {part} | {len(their[part])} | {len(mine[part]) or 'in the GEMM before'} | "
                     f"{megabytes(their[part])} | {megabytes(mine[part]) if mine[part] else ''} |")
    whole = [sum(side.values(), []) for side in (their, mine)]
    lines.append(f"| together | {len(whole[0])} | {len(whole[1])} | {megabytes(whole[0])} | {megabytes(whole[1])} |")
    return "\n".join(lines)


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def scaled(text, scale):
    """The program with every size of a matrix times `scale`."""
    return re.sub(r"tensor<(\d+)x(\d+)x", lambda sizes: f"tensor<{int(sizes[1]) * scale}x{int(sizes[2]) * scale}x", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build tree")
    parser.add_argument("--scale", type=int, default=32)
    options = parser.parse_args()
    runner, example = options.build / "bin/fp4-runner", ROOT / "examples/mlp_step.mlir"
    report = json.loads(run([runner, example, "--device=sim", "--json"]))
    with tempfile.TemporaryDirectory(prefix="fp4-mlp-") as folder:
        large = pathlib.Path(folder) / "mlp_step.mlir"
        large.write_text(scaled(example.read_text(), options.scale))
        launches = launches_of(run([runner, large, "--emit=mlir", "--compile-to=fused"]))
    m, k, f, n = (size * options.scale for size in (128, 256, 512, 256))
    mine, their = ours(launches), theirs(m, k, f, n)
    print(f"M, K, F, N = {m}, {k}, {f}, {n}\n{table(mine, their)}")
    problems = []
    if not report["passed"] or len(report["kernels"]) != len(launches):
        problems.append(f"the program launched {len(report['kernels'])} kernels, but has {len(launches)} operations")
    problems += [f"{part} launches more kernels than TransformerEngine" for part in PARTS if len(mine[part]) > len(their[part])]
    if options.scale == 32 and table(mine, their) not in (ROOT / "docs/performance/gemm-fp4.md").read_text():
        problems.append("docs/performance/gemm-fp4.md has another table")
    for problem in problems:
        print("error:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
