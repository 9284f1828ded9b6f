#!/usr/bin/env python3
"""Times a training step in NVFP4 beside cuBLAS' three bf16 GEMMs, in one run;
benchmarks/training_step.sh packs it.

  training_step.py                      in a folder with fp4-run and training_step.so, on a machine
                                        with a GPU

fp4-run compares the results of the step with the reference before it times anything; if they
differ, this script fails and prints no time. Prints one row per kernel, then the sums and the
ratio, and writes training_step.json: the report of fp4-run and the times of cuBLAS.
"""
import json
import math
import re
import statistics
import subprocess
import sys

LIBRARY = "training_step.so"
# Purposes of the kernels of benchmarks/training_step.mlir, in its order.
PURPOSES = {
    "hadamard_amax_0": "amaxes of X and of X^T transformed",
    "quantize_0": "X, and X^T transformed",
    "amax_0": "amax of W",
    "quantize_1": "W and W^T, blocks of 16 x 16",
    "hadamard_amax_1": "amaxes of dY and of dY^T transformed",
    "quantize_2": "dY, and dY^T transformed, stochastically",
    "matmul_alpha_0": "factor of Y",
    "convert_0": "X to 16 bits",
    "matmul_0": "Y = X W^T",
    "matmul_alpha_1": "factor of dX",
    "convert_1": "dY to 16 bits",
    "matmul_1": "dX = dY W",
    "matmul_alpha_2": "factor of dW",
    "convert_2": "dY^T to 16 bits",
    "matmul_2": "dW = dY^T X",
}


def capture(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed\n{done.stdout}{done.stderr}")
    return done.stdout


def sizes():
    """M, N, K of the library's step."""
    listing = capture(["./fp4-run", LIBRARY, "--list"])
    shape = {name: (int(rows), int(columns))
             for name, rows, columns in re.findall(r"argument (x|w)\s+(\d+)x(\d+)xbf16", listing)}
    return shape["x"][0], shape["w"][0], shape["x"][1]


def kernels(report):
    """(name, microseconds, entry) of the whole step and of each kernel, the step first."""
    rows = [(entry["name"], 1000 * entry["timing"]["median_ms"], entry) for entry in report["benchmark"]["entries"]]
    return sorted(rows, key=lambda row: row[0] != "program")


def time_gemms(m, n, k, samples=40, sets=2):
    """Medians of microseconds of the GEMMs Y, dX and dW, and of the three in a row."""
    import torch

    def tensor(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    x, w, dy = ([tensor(*shape) for _ in range(sets)] for shape in ((m, k), (n, k), (m, n)))
    products = {"Y": lambda i: torch.matmul(x[i], w[i].t()), "dX": lambda i: torch.matmul(dy[i], w[i]),
                "dW": lambda i: torch.matmul(dy[i].t(), x[i])}
    products["all"] = lambda i, three=tuple(products.values()): [product(i) for product in three]
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    medians = {}
    for name, product in products.items():
        times = []
        for i in range(samples + 10):
            begin.record()
            product(i % sets)
            end.record()
            torch.cuda.synchronize()
            times.append(1000 * begin.elapsed_time(end))
        medians[name] = statistics.median(times[10:])
    return medians


def main():
    m, n, k = sizes()
    before = time_gemms(m, n, k)
    report = json.loads(capture(["./fp4-run", LIBRARY, "--device", "cuda", "--benchmark", "--json"]))
    after = time_gemms(m, n, k)
    cublas = {name: math.sqrt(before[name] * after[name]) for name in before}
    rows = kernels(report)
    for verdict in report["verdicts"]:
        print(f"{verdict['name']}: {verdict['elements']} elements, {verdict['mismatches']} differ from the reference")
    print(f"training step of {m} x {n} x {k} (M x N x K), us")
    for name, median, entry in rows:
        rate = f"{entry['bytes_per_second'] / 1e12:6.2f} TB/s"
        if entry["flops"]:
            rate = f"{entry['flops_per_second'] / 1e12:6.0f} TFLOP/s"
        copy = f"{100 * entry['of_copy']:5.0f} % of copy" if "of_copy" in entry and not entry["flops"] else ""
        kernel = re.sub(r"^step_", "", name)
        print(f"  {kernel:16} {median:9.2f} {rate} {copy:15} {PURPOSES.get(kernel, '')}")
    whole, parts = rows[0][1], sum(median for _, median, _ in rows[1:])
    products = sum(median for name, median, _ in rows[1:] if "matmul_" in name and "alpha" not in name)
    print(f"  sum of kernels   {parts:9.2f}, of GEMMs {products:.2f}, of quantizers {parts - products:.2f}")
    for name in before:
        print(f"  cuBLAS bf16 {name:4} {cublas[name]:9.2f} (before {before[name]:.2f}, after {after[name]:.2f})")
    print(f"  ratio of the step to cuBLAS' three GEMMs: {whole / cublas['all']:.3f} "
          f"(sum of kernels: {parts / cublas['all']:.3f})")
    with open("training_step.json", "w") as file:
        json.dump({"size": [m, n, k], "cublas_us": cublas, "step": report}, file, indent=1)


if __name__ == "__main__":
    main()
