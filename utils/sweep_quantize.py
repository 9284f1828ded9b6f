#!/usr/bin/env python3
"""Compiles quantizers of every recipe and kernel, runs them in the simulator and checks every bit.

  utils/sweep_quantize.py            a covering subset, below
  utils/sweep_quantize.py --full     also the cross product of recipes and kernels on a ragged shape
  utils/sweep_quantize.py --list     what would run

A program takes a matrix to its amaxes, its codes and scales in one or both orientations and, where the
scales are row-major, back again; fp4-run compares all of it with lib/Numerics. Parameters are the target, the
recipe, the element type, the outputs, the block, the transform of either orientation, the rounding, the
layout of the scales and the shape. The subset holds every pair of values of two of them, but for recipes
with transforms, layouts and shapes, whose code does not meet.

Inputs: bf16 values over several binades under an amax that is no power of two, which is where recipes
differ; the numbered blocks of docs/Numerics.md, under each of their largest magnitudes in turn; and, for
f32, values of 24 bits. A combination that the compiler says to have no kernel for is listed, and counts as a
failure unless --partial is given. Ends with "N passed, N failed".
"""
import itertools
import sys

import sweeping

NVFP4 = ["transformer_engine", "transformer_engine_2_13", "transformer_engine_fast", "torchao",
         "torchao_cuda", "torchao_0_16", "torchao_0_16_cuda", "torchao_1level",
         "torchao_1level_cuda", "torchao_1level_0_17", "pytorch_eager", "flashinfer",
         "flashinfer_exact", "vllm", "mslk", "modelopt", "cutlass", "four_over_six",
         "four_over_six_448", "four_over_six_squared", "four_over_six_largest"]
MXFP4 = ["ocp_floor", "ocp_ceil", "ocp_even", "ocp_even_down", "ocp_rceil", "ocp_rceil_divide",
         "mxfp4_flashinfer", "mxfp4_vllm", "mxfp4_fouroversix"]
# Recipes whose decisions no named one has.
OVERRIDES = ["transformer_engine, guard = none, scale_floor = 0.015625",
             "transformer_engine, amax_nan = propagate, negative_zero = drop",
             "ocp_rceil, zero_byte = zero"]

TARGET = ["sm_100a", "sm_90a"]
RECIPE = NVFP4 + MXFP4 + OVERRIDES
ELEMENT = ["bf16", "f16", "f32"]
OUTPUTS = ["rowwise", "columnwise", "both"]
BLOCK = ["row", "square"]
# Size of the transform of each orientation, and its arithmetic.
TRANSFORM = ["none", "16,0", "0,16", "16,16", "32,0", "0,64", "128,32", "16,0 tensor_core",
             "0,16 tensor_core"]
ROUNDING = ["nearest_even", "element", "transformer_engine"]
LAYOUT = ["linear", "tiled", "mixed"]
ROWS = [1, 16, 40, 128, 130, 320]
COLUMNS = [16, 24, 32, 80, 128, 272, 1024]
PARAMETERS = [TARGET, RECIPE, ELEMENT, OUTPUTS, BLOCK, TRANSFORM, ROUNDING, LAYOUT, ROWS, COLUMNS]
PEAKS = 11  # of the distribution "adversarial", chosen by the seed


class Case:
    def __init__(self, case):
        (self.target, self.recipe, self.element, self.outputs, self.block, transform,
         self.rounding, self.layout, self.rows, self.columns) = case
        name = self.recipe.split(",")[0]
        self.nvfp4 = name in NVFP4
        self.has_tensor_scale = self.nvfp4 and "1level" not in name
        self.adaptive = name.startswith("four_over_six")
        sizes, _, self.arithmetic = transform.partition(" ")
        self.sizes = [0, 0] if sizes == "none" else [int(size) for size in sizes.split(",")]
        self.sides = [side for side, name in enumerate(("rowwise", "columnwise"))
                      if self.outputs in (name, "both")]
        self.tiled = [self.layout != "linear", self.layout == "tiled"]
        # Rows may be dynamic where they are not what is quantized.
        self.m = "?" if self.outputs == "rowwise" and self.columns % 3 else str(self.rows)

    def axis(self, side):
        """Elements along the blocks of a side."""
        return self.rows if side else self.columns

    def valid(self):
        if self.block == "square" and (not self.nvfp4 or any(self.sizes)
                                       or self.rounding == "transformer_engine"):
            return False
        if self.rounding != "nearest_even" and self.adaptive:
            return False
        if self.rounding == "transformer_engine" and not self.nvfp4:
            return False
        if any(self.sizes) and self.element != "bf16":
            return False
        if not self.nvfp4 and any(self.axis(side) % 32 for side in self.sides):
            return False
        for side, size in enumerate(self.sizes):
            if size and (side not in self.sides or self.axis(side) % size):
                return False
        return self.layout != "mixed" or self.outputs == "both"

    def scales_type(self, side):
        rows = self.columns if side else self.m
        block = 16 if self.nvfp4 else 32
        element = "f8E4M3FN" if self.nvfp4 else "f8E8M0FNU"
        encoding = ", #fp4.scale_layout<tiled_128x4>" if self.tiled[side] else ""
        return f"tensor<{rows}x{(self.axis(side) + block - 1) // block}x{element}{encoding}>"

    def data_type(self, side):
        rows, columns = (self.columns, self.rows) if side else (self.m, self.columns)
        return f"tensor<{rows}x{columns}xf4E2M1FN>"

    def input_type(self):
        return f"tensor<{self.m}x{self.columns}x{self.element}>"

    def amax(self, side):
        """Lines that define %a<side>."""
        x = self.input_type()
        if not self.sizes[side]:
            return [f"  %a{side} = fp4.amax %x : {x} -> tensor<f32>"]
        arithmetic = (f", arithmetic = #fp4.hadamard_arithmetic<{self.arithmetic}>"
                      if self.arithmetic else "")
        return [f"  %b{side}, %a{side} = fp4.hadamard_amax %x {{size = {self.sizes[side]} : i64,"
                f" dimension = {1 - side} : i64{arithmetic}}}",
                f"    : {x} -> tensor<f32>, tensor<f32>"]

    def attributes(self):
        fmt = "nvfp4" if self.nvfp4 else "mxfp4"
        out = [f"format = #fp4.format<{fmt}>", f"recipe = #fp4.recipe<{self.recipe}>",
               f"outputs = #fp4.outputs<{self.outputs}>"]
        if self.block == "square":
            out.append("block = array<i64: 16, 16>")
        for size, name in zip(self.sizes, ("hadamard", "columnwise_hadamard")):
            if size:
                arithmetic = f", arithmetic = {self.arithmetic}" if self.arithmetic else ""
                out.append(f"{name} = #fp4.hadamard<size = {size}{arithmetic}>")
        if self.rounding != "nearest_even":
            out += ["rounding = #fp4.rounding<stochastic>",
                    f"philox = #fp4.philox<{self.rounding}>"]
        return ", ".join(out)

    def program(self):
        x = self.input_type()
        arguments, operands, types, lines = [f"%x: {x}"], "%x", [x], []
        results = []
        if self.has_tensor_scale:
            distinct = self.sides if any(self.sizes) else self.sides[:1]
            for word, side in zip(("amax", "columnwise_amax"), distinct):
                lines += self.amax(side)
                operands += f" {word} %a{side}"
                types.append("tensor<f32>")
                results.append((f"%a{side}", "tensor<f32>"))
        if self.rounding != "nearest_even":
            arguments.append("%rng: tensor<2xi64>")
            operands += " rng %rng"
            types.append("tensor<2xi64>")
        outputs = [pair for side in self.sides for pair in ((f"%q{side}", self.data_type(side)),
                                                            (f"%s{side}", self.scales_type(side)))]
        lines += [f"  {', '.join(name for name, _ in outputs)} = fp4.quantize {operands}",
                  f"    {{{self.attributes()}}}",
                  f"    : ({', '.join(types)}) -> ({', '.join(kind for _, kind in outputs)})"]
        results += outputs
        if self.sides[0] == 0 and not self.tiled[0]:
            amax = " amax %a0" if self.has_tensor_scale else ""
            more = ", tensor<f32>" if self.has_tensor_scale else ""
            fmt = "nvfp4" if self.nvfp4 else "mxfp4"
            lines += [f"  %y = fp4.dequantize %q0 scaled %s0{amax} {{format = #fp4.format<{fmt}>,"
                      f" recipe = #fp4.recipe<{self.recipe}>}}",
                      f"    : ({self.data_type(0)}, {self.scales_type(0)}{more}) -> {x}"]
            results.append(("%y", x))
        names, kinds = (", ".join(words) for words in zip(*results))
        return "\n".join([f"func.func @f({', '.join(arguments)}) -> ({kinds}) {{", *lines,
                          f"  return {names} : {kinds}", "}", ""])


def wanted(i, j):
    """Pairs that count: a recipe is only paired with what its code may meet."""
    return not ({i, j} & {1} and {i, j} & {5, 7, 8, 9})


def cross_product():
    """Every recipe and kernel; layouts and shapes, of whole and of broken tiles and blocks, in turn."""
    rest = itertools.cycle(itertools.product(LAYOUT, [(320, 272), (128, 128), (160, 416)]))
    for kernel in itertools.product(*PARAMETERS[:7]):
        for layout, shape in itertools.islice(rest, 9):
            if Case(case := (*kernel, layout, *shape)).valid():
                yield case
                break


def check(tools, scratch, index, values, partial):
    case = Case(values)
    library, command, built = sweeping.compile_library(tools, scratch / f"case{index}",
                                                       case.program(), f"--target={case.target}")
    outcome = sweeping.Outcome()
    if built.returncode:
        if "no kernel" in built.stderr or "kernels for" in built.stderr or "kernel for" in built.stderr:
            text = built.stderr.split("error: ", 1)[1].splitlines()[0]
            outcome.unsupported += [] if partial else [f"{values}: {text}"]
        else:
            outcome.failures.append(f"{values}\n{case.program()}{built.stderr}")
        return outcome
    inputs = [("bf16", index), ("adversarial", index % PEAKS)]
    if case.element == "f32":
        inputs.append(("gaussian", index))
    for distribution, seed in inputs:
        outcome.run([tools / "fp4-run", library, "--device=sim", f"--shape={case.rows}",
                     f"--dist={distribution}", f"--seed={seed}", "--threads=1"])
    outcome.failures = [f"{values}\n{case.program()}{text}" for text in outcome.failures]
    library.unlink()
    return outcome


def main():
    parser = sweeping.option_parser(__doc__)
    parser.add_argument("--partial", action="store_true",
                        help="combinations without a kernel are no failures")
    parser.add_argument("--match", default="", help="only cases whose values, as --list prints "
                                                    "them, contain this")
    options = parser.parse_args()
    cases = sweeping.sampled_covering(PARAMETERS, lambda case: Case(case).valid(), wanted)
    if options.full:
        cases += cross_product()
    cases = [case for case in dict.fromkeys(cases) if options.match in str(case)]
    if options.list:
        for case in cases:
            print(case)
        print(f"{len(cases)} cases")
        return 0
    return sweeping.run_all(options, check, [(index, case, options.partial)
                                             for index, case in enumerate(cases)])


if __name__ == "__main__":
    sys.exit(main())
