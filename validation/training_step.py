#!/usr/bin/env python3
"""One training step of a linear layer in NVFP4: examples/fprop.mlir, dgrad.mlir and wgrad.mlir in a
row.

Each program runs in fp4-runner and is verified against the reference. Files pass the results of the
forward pass to the backward pass. Prints the kernels that every program launched next to those of
TransformerEngine, and how close Y, dX and dW are to the results of the unquantized operands.

Fails if a program fails, if a GEMM has less signal than torchao requires of its training (15 dB
forward, 14 dB for gradients), if a program launches more kernels than TransformerEngine, or if
docs/guides/models.md has another number of kernels.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Launches of TransformerEngine (main of 2026-08-22, d0067d0) for the same tensors with its NVFP4
# recipe on Blackwell: read in NVFP4Quantizer::quantize_impl and cublas_gemm. These shapes (rows of
# activations a multiple of 64, all else of 128) have its fused quantizers, which write both
# orientations with swizzled scales; others take a launch for every step of that. Kernels that set
# an amax to zero or copy one are counted on neither side.
TRANSFORMER_ENGINE = {
    "fprop": ["amaxes of X and of the transformed X^T", "quantize X and the transformed X^T",
              "amax of W", "quantize W and W^T", "alpha", "product"],
    "dgrad": ["amaxes of dY and of the transformed dY^T", "quantize dY and the transformed dY^T",
              "alpha", "product"],
    "wgrad": ["alpha", "product"],
}
# Arguments of a program that are results of an earlier one.
SAVED = {
    "dgrad": {"w_t": "fprop", "w_t_scales": "fprop", "w_amax": "fprop"},
    "wgrad": {"x_t": "fprop", "x_t_scales": "fprop", "x_t_amax": "fprop",
              "dy_t": "dgrad", "dy_t_scales": "dgrad", "dy_t_amax": "dgrad"},
}
LEAST_SIGNAL = {"y": 15, "dx": 14, "dw": 14}  # dB


def bf16(values):
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def make_inputs(m, n, k):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((m, k))
    x[:, rng.integers(k, size=4)] *= 20  # channels with outliers, as activations have
    return {"fprop": {"x": bf16(x), "w": bf16(rng.standard_normal((n, k)) / k**0.5)},
            "dgrad": {"dy": bf16(rng.standard_normal((m, n)) * 1e-3)}, "wgrad": {}}


def run(options, step, inputs, scratch):
    """Runs examples/<step>.mlir; returns its report and its results, which are also files."""
    command = [options.build / "bin/fp4-runner", ROOT / f"examples/{step}.mlir", "--json",
               f"--device={options.device}", f"--target={options.target}",
               "--shape=%d,%d,%d" % tuple(options.shape)]
    for name, value in inputs[step].items():
        np.save(scratch / f"{step}_{name}.npy", value)
        command.append(f"--input={name}={scratch}/{step}_{name}.npy")
    for name, producer in SAVED.get(step, {}).items():
        command.append(f"--input={name}={scratch}/{producer}_{name}.npy")
    for name in {"fprop": ["y", "x_t", "x_t_scales", "x_t_amax", "w_t", "w_t_scales", "w_amax"],
                 "dgrad": ["dx", "dy_t", "dy_t_scales", "dy_t_amax"], "wgrad": ["dw"]}[step]:
        command.append(f"--output={name}={scratch}/{step}_{name}.npy")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{step} failed\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def signal(got, exact):
    """Signal to noise in dB."""
    return 10 * np.log10(np.sum(exact**2) / np.sum((got - exact) ** 2))


def table(launches):
    lines = ["| step | TransformerEngine | fp4 |", "|---|---|---|"]
    for step, kernels in launches.items():
        theirs = TRANSFORMER_ENGINE[step]
        lines.append(f"| {step} | {len(theirs)} | {len(kernels)}: {', '.join(kernels)} |")
    lines.append(f"| together | {sum(map(len, TRANSFORMER_ENGINE.values()))} | "
                 f"{sum(map(len, launches.values()))} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build tree")
    parser.add_argument("--device", default="sim")
    parser.add_argument("--target", default="sm_100a")
    parser.add_argument("--shape", default="256,384,512", help="M,N,K",
                        type=lambda text: [int(size) for size in text.split(",")])
    options = parser.parse_args()
    inputs = make_inputs(*options.shape)
    launches, problems = {}, []
    with tempfile.TemporaryDirectory(prefix="fp4-training-") as folder:
        scratch = pathlib.Path(folder)
        for step in TRANSFORMER_ENGINE:
            report = run(options, step, inputs, scratch)
            launches[step] = [kernel["module"].removeprefix(step + "_").rsplit("_", 1)[0]
                              for kernel in report["kernels"]]
        x, w, dy = (value.astype(np.float64) for value in
                    (inputs["fprop"]["x"], inputs["fprop"]["w"], inputs["dgrad"]["dy"]))
        exact = {"y": ("fprop", x @ w.T), "dx": ("dgrad", dy @ w), "dw": ("wgrad", dy.T @ x)}
        for name, (step, product) in exact.items():
            decibels = signal(np.load(scratch / f"{step}_{name}.npy").astype(np.float64), product)
            print(f"{name}: {decibels:.1f} dB")
            if decibels < LEAST_SIGNAL[name]:
                problems.append(f"{name} has {decibels:.1f} dB, and must have {LEAST_SIGNAL[name]}")
    print(table(launches))
    for step, kernels in launches.items():
        if len(kernels) > len(TRANSFORMER_ENGINE[step]):
            problems.append(f"{step} launches more kernels than TransformerEngine")
    said = f"launched after `fp4-fuse`: {sum(map(len, launches.values()))}, as many as TransformerEngine has"
    if said not in " ".join((ROOT / "docs/guides/models.md").read_text().split()):
        problems.append("docs/guides/models.md has another number of kernels")
    for problem in problems:
        print("error:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
