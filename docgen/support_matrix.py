#!/usr/bin/env python3
"""Writes the support matrix of README.md: which kernels each target has.

  docgen/support_matrix.py --build build           writes the table
  docgen/support_matrix.py --build build --check   exits with 1 where the table is not current

A row of GEMMs is what the table of routes says of its pairs of operands, and a dash has a footnote
with the reason that the table gives. Each cell of another row is the answer of the compiler: a tick
where a small program becomes PTX, a dash where the compiler says that the target has no such kernel. The programs of GEMMs are compiled too, and end the script where
the compiler and the table differ. The sweeps run the same operations in the simulator and compare
every bit.
"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import textwrap

from reference import routes

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "validation"))
import sweep
import sweep_attention
import sweep_attention_backward
import sweep_attention_blocks
import sweep_fp8
import sweep_groups
import sweep_quantize
import sweep_results
import sweep_rows
import sweep_weights
import sweep_wide

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- support matrix -->\n", "<!-- end of the support matrix -->\n"
TARGETS = {"Hopper": "sm_90a", "B200": "sm_100a", "B300": "sm_103a", "Rubin": "sm_107a", "RTX 50": "sm_120a"}
NO_KERNEL = 3  # exit code of a program that does not compile
GROUPS = (130, 0, 126)


def weights(element, fmt, kind):
    arithmetic = "plain" if kind == "plain" else "prepacked"
    plans = "lanes" if kind == "plain" else "wgmma"
    return sweep_weights.program(element, fmt, "bf16", arithmetic, "none", 1, "chosen", 256, 512, "?", plans)


def experts(fmt, lhs, form="offsets", after="none", n=128):
    return sweep_groups.program(form, GROUPS, n, 512, fmt, "bf16", "none", "chosen", lhs, after)


def quantizer(recipe, outputs="rowwise", transform="none", rounding="nearest_even", groups="one"):
    return sweep_quantize.Case(("sm_100a", recipe, "bf16", outputs, "row", transform, rounding, "linear", groups,
                                128, 256)).program()


def blocks(has_values):
    """Attention of queries and keys with scales of blocks, and of values with or without them."""
    return [sweep_attention_blocks.program(("", 1, 200, 320, (8, 2), (128, 128), form, "causal", 64, False, "", "0.0", ""), order=False)
            for form in sweep_attention_blocks.FORMATS if (form in sweep_attention_blocks.WITH_VALUES) == has_values]


def fused(dual, result):
    layout = "linear" if result == "fp8_block128" else "tiled"
    return sweep_results.program(("nvfp4", dual, result, "rowwise", layout, "", "gone", "bf16", "128", 128, 512,
                                  "chosen"))


#: The pairs of operands of rows of GEMMs, as the table of routes calls them.
PAIRS = {
    "NVFP4 and MXFP4 activations and weights (W4A4)": ["Fp4"],
    "bf16 activations, NVFP4 or MXFP4 weights (W4A16)": ["HalfScaled", "HalfPrepacked"],
    "bf16 activations, MXFP6 weights (W6A16)": ["HalfMx6"],
    "e4m3 activations, MXFP4 weights (W4A8)": ["ByteScaled"],
    "e4m3 activations, prepacked MXFP4 weights (W4A8)": ["BytePrepacked"],
    "MXFP8 activations, MXFP8 or MXFP4 weights": ["Mx8"],
    "MXFP6 beside MXFP8, MXFP6, MXFP4": ["Mx6"],
    "FP8 with f32 scales (DeepSeek-V3)": ["F32Scaled"],
    "W4A4 experts (grouped GEMM)": ["Fp4"],
    "W4A16 experts": ["HalfPrepacked"],
    "Results of GEMMs in NVFP4, MXFP4, MXFP8, FP8 of 1 x 128": ["Fp4"],
    "SwiGLU of two GEMMs, with quantized results": ["Fp4"],
}

#: What a user asks for, and the programs that show it: each must become a kernel.
ROWS = {
    "NVFP4 and MXFP4 activations and weights (W4A4)":
        [sweep.program(fmt, "bf16", "fp4", "chosen", 128, 128, 512) for fmt in ("nvfp4", "mxfp4")],
    "bf16 activations, NVFP4 or MXFP4 weights (W4A16)":
        [weights("bf16", fmt, "plain") for fmt in ("nvfp4", "mxfp4")],
    "bf16 activations, MXFP6 weights (W6A16)":
        [weights("bf16", fmt, "plain") for fmt in sweep_weights.SIX],
    "e4m3 activations, MXFP4 weights (W4A8)": [weights("f8E4M3FN", "mxfp4", "plain")],
    "e4m3 activations, prepacked MXFP4 weights (W4A8)": [weights("f8E4M3FN", "mxfp4", "prepacked")],
    "MXFP8 activations, MXFP8 or MXFP4 weights":
        [sweep_wide.program("mxfp8_e4m3", rhs, "bf16", "codes", "none", "chosen", 128, 128, 512)
         for rhs in ("mxfp8_e4m3", "mxfp4")],
    "MXFP6 beside MXFP8, MXFP6, MXFP4":
        [sweep_wide.program("mxfp6_e2m3", rhs, "bf16", "codes", "none", "chosen", 128, 128, 512)
         for rhs in ("mxfp8_e4m3", "mxfp6_e2m3", "mxfp4")],
    "FP8 with f32 scales (DeepSeek-V3)":
        [sweep_fp8.program("bf16", "plain", "none", "chosen", "one", 128, 128, 512)],
    "W4A4 experts (grouped GEMM)": [experts(fmt, "codes") for fmt in ("nvfp4", "mxfp4")],
    "W4A16 experts": [experts(fmt, "bf16 prepacked") for fmt in ("nvfp4", "mxfp4")],
    "Results of GEMMs in NVFP4, MXFP4, MXFP8, FP8 of 1 x 128":
        [fused("one", result) for result in ("nvfp4", "mxfp4", "mxfp8_e4m3", "fp8_block128")],
    "SwiGLU of two GEMMs, with quantized results": [fused("dual", result) for result in ("nvfp4", "mxfp8_e4m3")],
    "Quantizers: NVFP4, MXFP4, MXFP8, both orientations":
        [quantizer("transformer_engine", "both"), quantizer("ocp_rceil", "both"), quantizer("mxfp8_e4m3_floor", "both")],
    "Random Hadamard transform and stochastic rounding":
        [quantizer("transformer_engine", "both", "0,16", "element")],
    "Norms, rotations and softmax in one kernel with the quantizer":
        [sweep_rows.program((kind, "nvfp4", "tiled", "gone", "bf16", "?5", 1024)) for kind in ("residual", "halves", "softmax")],
    "Attention, forward, bf16 and f16":
        [sweep_attention.program((1, 200, 300, (8, 2), (128, 128), element, "causal", "0.125", "")) for element in ("bf16", "f16")],
    "Attention, forward, FP8":
        [sweep_attention.program((1, 200, 300, (8, 2), (128, 128), "f8E4M3FN", "causal", "0.125"), factors="sequences")],
    "Attention, forward, MXFP8 and NVFP4, values FP8": blocks(has_values=False),
    "Attention, forward, MXFP8 and NVFP4": blocks(has_values=True),
    "Attention, backward, bf16 and f16":
        [sweep_attention_backward.program((1, 200, 300, (8, 2), (128, 128), element, "causal", "0.125", "")) for element in ("bf16", "f16")],
    "Attention over caches of NVFP4, MXFP4, MXFP8 and FP8":
        [sweep_attention.program((2, 1, 300, (8, 2), (128, 128), "bf16", "causal", "0.125"), 16, form)
         for form in ("nvfp4", "mxfp4", "mxfp8", "fp8")],
    "Attention over latent caches (MLA)":
        [sweep_attention.program((2, 1, 300, (16, 1), (576, 512), "bf16", "causal", "0.125"), 64, latent=True)],
}


#: Why rows that no pair of operands explains have no kernel on some targets.
REASONS = {"Attention, forward, FP8": "only wgmma and tcgen05",
           "Attention, forward, MXFP8 and NVFP4, values FP8": "only tcgen05 and mma.sync",
           "Attention, forward, MXFP8 and NVFP4": "only tcgen05 and mma.sync",
           "Attention, backward, bf16 and f16": "only wgmma", "Attention over latent caches (MLA)": "only wgmma"}


def cell(build, name, target, texts):
    """The answer of the compiler, which the table of routes must give too."""
    found = compiled(build, target, texts)
    if name in PAIRS:
        said = all(routes.supported(ROOT, pair, target) for pair in PAIRS[name])
        if said != (found == "✓"):
            sys.exit(f"error: the table of routes says {said} of '{name}' on {target}, and the compiler '{found}'")
    elif found != "✓" and name not in REASONS:
        sys.exit(f"error: '{name}' has no kernel on {target}, and no table says why")
    reasons = [REASONS.get(name), *(routes.reason(ROOT, pair, target) for pair in PAIRS.get(name, []))]
    return found if found == "✓" else next(filter(None, reasons))


def compiled(build, target, texts):
    for text in texts:
        run = subprocess.run([build / "bin/fp4-runner", "-", "--target", target, "--emit=ptx"],
                             input=text, capture_output=True, text=True)
        if run.returncode not in (0, NO_KERNEL):
            sys.exit(f"{run.stderr}\nwith {target} of\n{text}")
        if run.returncode:
            return "-"
    return "✓"


def table(build):
    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    rows = {name: [pool.submit(cell, build, name, target, texts) for target in TARGETS.values()]
            for name, texts in ROWS.items()}
    lines = ["| | " + " | ".join(f"{name}, {target}" for name, target in TARGETS.items()) + " |",
             "|---|" + ":-:|" * len(TARGETS)]
    reasons = []
    for name, cells in rows.items():
        lines.append(f"| {name} | " + " | ".join(marked(future.result(), reasons) for future in cells) + " |")
    notes = " ".join(f"<sup>{number}</sup> {reason[0].upper()}{reason[1:]}."
                     for number, reason in enumerate(reasons, 1))
    return "".join(line + "\n" for line in lines + [""] * bool(notes) + textwrap.wrap(notes, 100))


def marked(found, reasons):
    """A tick, or a dash with the number of its reason, which is added to `reasons`."""
    if found == "✓":
        return found
    if found not in reasons:
        reasons.append(found)
    return f"-<sup>{reasons.index(found) + 1}</sup>"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "README.md")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    page = options.page.read_text()
    if BEGIN not in page or END not in page:
        sys.exit(f"error: {options.page} has no '{BEGIN.strip()}' and '{END.strip()}'")
    before, rest = page.split(BEGIN, 1)
    current = before + BEGIN + table(options.build.resolve()) + END + rest.split(END, 1)[1]
    if options.check and current != page:
        sys.exit(f"error: the support matrix of {options.page} is stale: run docgen/support_matrix.py")
    if not options.check:
        options.page.write_text(current)


if __name__ == "__main__":
    main()
