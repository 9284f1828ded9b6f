#!/usr/bin/env python3
"""Looks for registers that ptxas spills in GEMMs, by the plans that are chosen: operands x forms x
epilogues x targets.

  validation/spills.py                 a covering subset: every pair of values of two parameters
                                       occurs
  validation/spills.py --full          the whole cross product
  validation/spills.py --match WORD    only cases whose name contains each WORD (may be repeated);
                                       --list prints their names
  validation/spills.py --keep FOLDER   leaves the programs and the PTX there

Every kernel of a program is assembled by ptxas ($FP4_PTXAS or PATH). Prints each that spills, then
how many programs of each target were assembled, and how many have no kernel there, by the
compiler's words. Ends with 1 where any spills.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import recipes
import sweeping
import tables
from matmul_text import Side, matmul

LAYOUT = "#fp4.scale_layout<tiled_128x4>"
TARGETS = tables.targets_by(*tables.TENSOR_CORE)
#: Operands: the format, the element of activations without scales (else empty), and whether weights
#: are prepacked.
OPERANDS = {
    "nvfp4": ("nvfp4", "", False), "mxfp4": ("mxfp4", "", False), "mxfp8": ("mxfp8_e4m3", "", False),
    "mxfp6": ("mxfp6_e2m3", "", False), "fp8": ("fp8_block128", "", False),
    "bf16_nvfp4": ("nvfp4", "bf16", False), "bf16_mxfp4": ("mxfp4", "bf16", False),
    "bf16_packed_nvfp4": ("nvfp4", "bf16", True), "bf16_packed_mxfp4": ("mxfp4", "bf16", True),
    "f16_packed_nvfp4": ("nvfp4", "f16", True), "packed_nvfp4": ("nvfp4", "", True), "packed_mxfp4": ("mxfp4", "", True),
    "e4m3_mxfp4": ("mxfp4", "f8E4M3FN", False), "e4m3_packed_mxfp4": ("mxfp4", "f8E4M3FN", True),
    "e4m3_fast_mxfp4": ("mxfp4", "f8E4M3FN", True)}
#: Operands whose sums stay in the tensor core.
FAST = ("e4m3_fast_mxfp4",)
#: M, N, K and the form: several groups whose rows the program or the device has, or split-K.
FORMS = {
    "8_rows": (8, 8192, 8192, ""), "64_rows": (64, 8192, 8192, ""), "128_rows": (128, 8192, 8192, ""),
    "512_rows": (512, 4096, 7168, ""), "4096_rows": (4096, 8192, 8192, ""), "1024_short": (1024, 2048, 1024, ""),
    "1024_uneven": (1024, 7168, 2048, ""), "64_of_42_blocks": (64, 7168, 5376, ""), "512_of_42_blocks": (512, 7168, 5376, ""),
    "4096_of_43_blocks": (4096, 4096, 5504, ""), "groups_of_42_blocks": (4096, 4096, 5376, "groups"),
    "any_rows": ("?", 8192, 8192, ""), "any": ("?", "?", "?", ""), "any_depth_512": ("?", "?", 512, ""),
    "split": (64, 2048, 8192, "split_k = 4"), "split_8": (64, 2048, 16384, "split_k = 8"), "few_in_groups": (64, 2944, 2880, "offsets"),
    "groups": (512, 2944, 2880, "offsets"), "many_in_groups": (4096, 2944, 2880, "offsets"),
    "known_groups": (512, 4096, 7168, "groups"), "wide_groups": (8192, 4096, 4096, "groups")}
GROUPS = 8
RECIPES = recipes.recipes()

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
GATE = SILU + "    %e = arith.mulf %act, %y : f32\n"
#: Sums are %s0 and, of gates, %s1; inputs i0 and on, widened: w0 and on. Lines define %e from %x
#: and %y.
Epilogue = collections.namedtuple("Epilogue", "lines inputs gate alpha codes amax result recipe",
                                  defaults=["", (), False, False, "", False, "bf16", "transformer_engine"])
BIAS, RESIDUAL = ("bias", "bf16"), ("residual", "bf16")
EPILOGUES = {
    "none": Epilogue(), "f32": Epilogue(result="f32"), "alpha": Epilogue(alpha=True),
    "bias": Epilogue("    %e = arith.addf %s0, %w0 : f32\n", (BIAS,)),
    "bias_f32": Epilogue("    %e = arith.addf %s0, %w0 : f32\n", (("bias", "f32"),), result="f32"),
    "alpha_bias": Epilogue("    %e = arith.addf %s0, %w0 : f32\n", (BIAS,), alpha=True),
    "rows": Epilogue("    %e = arith.mulf %s0, %w0 : f32\n", (("rows", "f32"),)),
    "residual": Epilogue("    %e = arith.addf %s0, %w0 : f32\n", (RESIDUAL,)),
    "silu": Epilogue(SILU.replace("%x", "%s0") + "    %e = arith.mulf %act, %one : f32\n"),
    "gelu": Epilogue(GELU.replace("%x", "%s0") + "    %e = arith.mulf %act, %one : f32\n"),
    "bias_gelu": Epilogue("    %x = arith.addf %s0, %w0 : f32\n" + GELU + "    %e = arith.mulf %act, %one : f32\n", (BIAS,)),
    "bias_gelu_residual": Epilogue("    %x = arith.addf %s0, %w0 : f32\n" + GELU + "    %e = arith.addf %act, %w1 : f32\n",
                                   (BIAS, RESIDUAL)),
    "alpha_bias_gelu_residual": Epilogue(
        "    %x = arith.addf %s0, %w0 : f32\n" + GELU + "    %e = arith.addf %act, %w1 : f32\n", (BIAS, RESIDUAL), alpha=True),
    "gate": Epilogue(GATE.replace("%x", "%s0").replace("%y", "%s1"), gate=True),
    "biased_gate": Epilogue("    %x = arith.addf %s0, %w0 : f32\n    %y = arith.addf %s1, %w1 : f32\n" + GATE, (BIAS, BIAS),
                            gate=True),
    "amax": Epilogue(amax=True), "codes": Epilogue(codes="rowwise"), "codes_of_both": Epilogue(codes="both"),
    "bias_codes": Epilogue("    %e = arith.addf %s0, %w0 : f32\n", (BIAS,), codes="rowwise"),
    "gate_codes": Epilogue(GATE.replace("%x", "%s0").replace("%y", "%s1"), gate=True, codes="rowwise"),
    "wide_codes": Epilogue(codes="rowwise", recipe="fp8_deepgemm"),
    "gate_wide_codes": Epilogue(GATE.replace("%x", "%s0").replace("%y", "%s1"), gate=True, codes="rowwise", recipe="fp8_deepgemm")}


def over(size, unit):
    return size if size == "?" else -(-size // unit)


class Writer:
    """One GEMM as the fusion leaves it: arguments, and the parts of its text."""

    def __init__(self, operands, form, epilogue):
        self.format_name, self.lhs, self.packed = OPERANDS[operands]
        self.fast = operands in FAST
        self.format = recipes.FORMATS[self.format_name]
        self.m, self.n, self.k, self.what = FORMS[form]
        self.epilogue = EPILOGUES[epilogue]
        self.arguments, self.inputs = [], []

    @property
    def groups(self):
        return GROUPS if self.what in ("groups", "offsets") else 1

    def side(self, name, kind, scales=""):
        self.arguments += [f"%{name}: {kind}"] + [f"%s{name}: {scales}"] * bool(scales)
        return Side(f"%{name}", kind, f"%s{name}" * bool(scales), scales, self.format_name)

    def rows_of_groups(self):
        each = self.m // GROUPS
        return [each - 3, each + 3] * (GROUPS // 2)

    def scales(self, rows, stacked, columns):
        """The scales of `rows`, or a list of tiles of groups of `stacked` rows each."""
        if self.format.has_f32_scales:
            return f"tensor<{rows}x{over(columns, 128)}xf32>"
        if self.groups > 1:
            tiles = sum(over(count, 128) for count in stacked) * over(columns // self.format.block, 4)
            return f"tensor<{128 * tiles}x4x{self.format.scale}, {LAYOUT}>"
        return f"tensor<{rows}x{over(columns, self.format.block)}x{self.format.scale}, {LAYOUT}>"

    def activations(self):
        element = self.lhs or self.format.element
        data = f"tensor<{self.m}x{self.k}x{element}>"
        if self.lhs:
            return self.side("a", data)
        stacked = self.rows_of_groups() if self.groups > 1 else [self.m]
        if self.what == "offsets":
            stacked = [128] * (self.m // 128 + GROUPS)
        return self.side("a", data, self.scales(self.m, stacked, self.k))

    def weights(self, name):
        rows = self.n if self.groups == 1 else self.groups * self.n
        if self.packed:
            columns = 128 if self.lhs == "f8E4M3FN" else 64
            tile = columns * 128 // 2 + columns * 128 // self.format.block
            layout = "wgmma_rows" if self.fast else "wgmma"
            return self.side(name, f"tensor<{over(rows, 128)}x{over(self.k, columns)}x{tile}xi8, #fp4.weight_layout<{layout}>>")
        bands = self.groups * over(self.n, 128) if self.format.has_f32_scales and self.n != "?" else over(rows, 1)
        return self.side(name, f"tensor<{rows}x{self.k}x{self.format.element}>",
                         self.scales(bands, [self.n] * self.groups, self.k))

    def input_type(self, kind, element):
        sizes = {"bias": f"{self.groups}x1x{self.n}" if self.groups > 1 else f"1x{self.n}", "rows": f"{self.m}x1",
                 "residual": f"{self.m}x{self.n}"}[kind]
        return f"tensor<{sizes}x{element}>"

    def region(self):
        e = self.epilogue
        names, sums = [f"%i{i}" for i in range(len(e.inputs))], ["%s0: f32", "%s1: f32"][:1 + e.gate]
        for name, (kind, element) in zip(names, e.inputs):
            self.arguments.append(f"{name}: {self.input_type(kind, element)}")
            self.inputs.append((name, self.input_type(kind, element)))
        arguments = sums + [f"{name}_: {element}" for name, (_, element) in zip(names, e.inputs)]
        lines = "".join(f"    %w{i} = arith.extf %i{i}_ : {element} to f32\n" if element != "f32" else ""
                        for i, (_, element) in enumerate(e.inputs)) + e.lines
        lines = re.sub(r"%w(\d+)", lambda w: w[0] if e.inputs[int(w[1])][1] != "f32" else f"%i{w[1]}_", lines)
        value = "%e" if e.lines else "%s0"
        if e.result != "f32":
            lines, value = lines + f"    %z = arith.truncf {value} : f32 to {e.result}\n", "%z"
        values, kinds = [value] * (not e.codes), [e.result] * (not e.codes)
        if e.codes:
            recipe, most, kind = RECIPES[e.recipe], "", ""
            if recipe.has_tensor_scale:
                self.arguments.append("%g: tensor<f32>")
                self.inputs.append(("%g", "tensor<f32>"))
                arguments.append("%most: f32")
                most, kind = " amax %most", ", f32"
            sides = 2 if e.codes == "both" else 1
            facts = recipes.FORMATS[recipe.format]
            values, kinds = [f"%q#{i}" for i in range(2 * sides)], [facts.element, facts.scale] * sides
            lines += (f"    %q:{2 * sides} = fp4.epilogue_quantize {value}{most} {{recipe = #fp4.recipe<{e.recipe}>,"
                      f" outputs = #fp4.outputs<{e.codes}>}} : ({e.result}{kind}) -> ({', '.join(kinds)})\n")
        if e.amax:
            lines += f"    %largest = fp4.epilogue_amax {value} : {e.result} -> f32\n"
            values, kinds = values + ["%largest"], kinds + ["f32"]
        return (f"\n  ^bb0({', '.join(arguments)}):\n{lines}"
                f"    fp4.yield {', '.join(values)} : {', '.join(kinds)}\n  ")

    def results(self):
        e = self.epilogue
        if not e.codes:
            return [f"tensor<{self.m}x{self.n}x{e.result}>"] + ["tensor<f32>"] * e.amax
        kinds, facts = [], recipes.FORMATS[RECIPES[e.recipe].format]
        for rows, columns in [(self.m, self.n), (self.n, self.m)][:2 if e.codes == "both" else 1]:
            kinds += [f"tensor<{rows}x{columns}x{facts.element}>", f"tensor<{rows}x{over(columns, facts.block)}x{facts.scale}>"]
        return kinds

    def program(self):
        e = self.epilogue
        lhs, rhs, parts = self.activations(), self.weights("b"), {}
        if e.alpha:
            kind = f"tensor<{self.groups}xf32>" if self.groups > 1 else "tensor<f32>"
            self.arguments.append(f"%alpha: {kind}")
            parts = {"alpha": "%alpha", "alpha_type": kind}
        region = self.region() if e.lines or e.codes or e.amax else ""
        attributes = ["arithmetic = #fp4.matmul_arithmetic<fast_accumulation>"] * self.fast
        if self.what == "offsets":
            parts |= {"offsets": "%o", "offsets_type": f"tensor<{GROUPS + 1}xi64>"}
            self.arguments.append(f"%o: {parts['offsets_type']}")
            parts["work"] = (f"expected_rows = {self.m // GROUPS}", "unspecified_rows")
        elif self.what == "groups":
            parts["work"] = (f"groups = [{', '.join(map(str, self.rows_of_groups()))}]",)
        elif self.what:
            parts["work"] = (self.what,)
        second = self.weights("c") if e.gate else None
        found, names = ", ".join(self.results()), ", ".join(f"%r{i}" for i in range(len(self.results())))
        lines = matmul(names, f"({found})", lhs, rhs, rhs2=second, inputs=tuple(self.inputs),
                       region=region, attributes=tuple(attributes), **parts)
        return "\n".join([f"func.func @f({', '.join(self.arguments)}) -> ({found}) {{", *lines,
                          f"  return {names} : {found}", "}", ""])


def exists(case):
    """Leaves out most of what has no kernel, so that a covering subset is one of kernels."""
    operands, form, epilogue, target = case
    fmt, lhs, packed = OPERANDS[operands]
    m, n, k, what = FORMS[form]
    e = EPILOGUES[epilogue]
    derives, floats = e.codes or e.amax, lhs in ("bf16", "f16")
    has_wide = e.codes and RECIPES[e.recipe].format == "fp8_block128"
    if packed and "?" in (n, k) or lhs.startswith("f8") and not packed and (e.gate or derives):
        return False
    if has_wide and (n == "?" or n % 128 or e.gate and target.startswith("sm_12")):
        return False
    if lhs and derives or e.gate and floats and not packed:
        return False
    if what and (e.amax or e.codes == "both") or what.startswith("split") and (derives or e.gate):
        return False
    if e.codes == "both" and (m == "?" or m % 16):
        return False
    if target == "sm_100a" and operands == "e4m3_packed_mxfp4" and e.gate:
        return False
    return not packed or lhs or target == "sm_90a"


class Outcome:
    """The outcome of a case: kernels that spill, or why there is none."""

    def __init__(self, case, spills=(), kernels=0, reason=""):
        self.case, self.spills, self.kernels, self.reason = case, spills, kernels, reason


class Assembler:
    def __init__(self, options, folder):
        self.tools, self.folder, self.known = options.tools, folder, {}
        self.ptxas = os.environ.get("FP4_PTXAS") or shutil.which("ptxas")

    def spills(self, target, file):
        """Bytes that the kernel stores and loads."""
        key = target + hashlib.sha256(file.read_bytes()).hexdigest()
        if key not in self.known:
            run = subprocess.run([self.ptxas, "-v", f"-arch={target}", file, "-o", file.with_suffix(".cubin")],
                                 capture_output=True, text=True, check=True)
            self.known[key] = [int(n) for n in re.findall(r"(\d+) bytes spill", run.stderr)]
        return self.known[key]

    def look(self, case):
        *what, target = case
        folder = self.folder / "-".join(case)
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / "program.mlir"
        source.write_text(Writer(*what).program())
        run = subprocess.run([self.tools / "fp4-runner", source, f"--target={target}", "--emit=ptx", "-o", folder],
                             capture_output=True, text=True)
        if run.returncode:
            error = re.search(r"error: (.*)", run.stderr)
            return Outcome(case, reason=f"exit code {run.returncode}: {error[1] if error else run.stderr}")
        files = sorted(folder.glob("*.ptx"))
        found = [(file.stem, self.spills(target, file)) for file in files]
        spills = [f"{name}: {' + '.join(map(str, numbers))}" for name, numbers in found if any(numbers)]
        return Outcome(case, spills, len(files))


def report(outcomes):
    reasons = collections.Counter(f"{outcome.case[-1]}: {outcome.reason}" for outcome in outcomes if outcome.reason)
    for reason, count in sorted(reasons.items()):
        print(f"{count} programs have no kernel, {reason}")
    for target in TARGETS:
        mine = [outcome for outcome in outcomes if outcome.case[-1] == target and not outcome.reason]
        print(f"{target}: {sum(outcome.kernels for outcome in mine)} kernels of {len(mine)} programs, of which "
              f"{sum(bool(outcome.spills) for outcome in mine)} spill")


def chosen(full):
    """Returns all cases of each target, or some."""
    for target in TARGETS:
        cases = list(filter(exists, itertools.product(OPERANDS, FORMS, EPILOGUES, [target])))
        yield from cases if full else sweeping.covering(cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--match", action="append", default=[])
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--tools", type=pathlib.Path, default=sweeping.ROOT / "build" / "bin")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    cases = [case for case in chosen(options.full) if all(word in f"-{'-'.join(case)}-" for word in options.match)]
    if options.list:
        print("\n".join("-".join(case) for case in cases))
        return 0
    outcomes = []
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(Assembler(options, options.keep or pathlib.Path(scratch)).look, cases):
            outcomes.append(outcome)
            for spill in outcome.spills:
                print(f"{'-'.join(outcome.case)}: {spill}", flush=True)
    report(outcomes)
    return 1 if any(outcome.spills for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
