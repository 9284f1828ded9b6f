#!/usr/bin/env python3
"""Compiles quantizers of every recipe and kernel, runs them in the simulator and checks every bit.

  validation/sweep_quantize.py            a covering subset, below
  validation/sweep_quantize.py --full     also the cross product of recipes and kernels
  validation/sweep_quantize.py --list     what would run
  validation/sweep_quantize.py --strided  inputs have gaps between their rows (fp4.strided)
  validation/sweep_quantize.py --full --part=2/16   every 16th of them, from the second
  validation/sweep_quantize.py --pack=FOLDER --match=sm_90a    for another machine: leaves the
                                     libraries in FOLDER with, in NAME.txt beside NAME.so, the
                                     options of each run of fp4-run

A quantizing program computes the amaxes of a matrix and its codes and scales in one or both
orientations. If the scales are row-major it also converts them back. fp4-run compares everything
with lib/Numerics. Parameters are the target, the recipe, the element type, the outputs, the block,
the transform of either orientation, the rounding, the layout of the scales, groups of rows, also
such as only the device knows, and the shape. The subset has every pair of values of two parameters,
except pairs of a recipe with a transform, a layout or a shape, whose code is independent. Targets
that convert to fp4 alike stand for each other beside a recipe.

Amax, Hadamard transforms and scale layouts have programs of their own. The transform on the tensor
core has kernels only for columns, in NVFP4, inside fp4.quantize; others are not tried, nor with
tcgen05 dynamic rows and groups.

The inputs are bf16 values over several binades under an amax that is not a power of two, where
recipes differ; the numbered blocks of unittests/Numerics/data/numerics_vectors.json, under each of
their largest magnitudes in turn; and, for f32, values of 24 bits. A combination for which the
compiler reports that it has no kernel is listed and counts as a failure unless --partial is given.
Ends with "N passed, N failed".
"""
import itertools
import sys

import recipes
import sweeping
import tables

# Formats with f32 scales have no outputs but one; test/Runner/Quantize/fp8-quantize.mlir has their
# shapes.
RECIPES = {name: recipe for name, recipe in recipes.recipes().items()
           if not recipes.FORMATS[recipe.format].has_f32_scales}
# Recipes whose decisions no named one has.
OVERRIDES = ["transformer_engine, guard = none, scale_floor = 0.015625",
             "transformer_engine, amax_nan = propagate, negative_zero = drop",
             "ocp_rceil, zero_byte = zero",
             "flashinfer, reciprocals = approximate",
             "vllm, dequantize = decode_scale, tensor_scale = supplied",
             "torchao, tensor_scale = supplied_decode"]

TARGET = tables.targets_by("hasTcgen05", "hasFp4Convert", "hasStochasticConvert")
RECIPE = [*RECIPES, *OVERRIDES]
ELEMENT = ["bf16", "f16", "f32"]
OUTPUTS = ["rowwise", "columnwise", "both"]
BLOCK = ["row", "square"]
# Size of the transform of each orientation, and its arithmetic, or that it is not rounded to bf16.
TRANSFORM = ["none", "16,0", "0,16", "16,16", "32,0", "0,64", "128,32", "0,16 tensor_core",
             "16,16 unrounded"]
ROUNDING = ["nearest_even", *tables.words("Philox")]
LAYOUT = ["linear", "tiled", "mixed"]
ROWS = [1, 16, 40, 128, 130, 320]
COLUMNS = [16, 24, 32, 80, 128, 272, 1024]
# Rows of stacked matrices that are quantized each by itself, instead of ROWS. "rows": each row of
# an output has an amax of its own.
GROUPS = {"one": [], "any": [0, 1, 127, 128, 129], "blocks": [32, 0, 160, 96], "rows": [],
          "offsets": [], "ranges": []}
# Rows of groups that only the device knows, of so many.
OFFSETS = {"offsets": [2, 2, 131, 132, 290], "ranges": [[0, 129], [5, 5], [140, 150], [150, 290]]}
OFFSET_ROWS = 300
PARAMETERS = [TARGET, RECIPE, ELEMENT, OUTPUTS, BLOCK, TRANSFORM, ROUNDING, LAYOUT, list(GROUPS),
              ROWS, COLUMNS]
NO_KERNEL = ["has no kernel", "has a kernel for", "has kernels for", "on the tensor core must"]
PEAKS = 11  # of the distribution "adversarial", chosen by the seed


class Case:
    strided = ""  # an attribute of the input

    def __init__(self, case):
        (self.target, self.recipe, self.element, self.outputs, self.block, transform,
         self.rounding, self.layout, groups, self.rows, self.columns) = case
        self.groups, self.per_row = GROUPS[groups], groups == "rows"
        self.offsets = OFFSETS.get(groups, [])
        self.rows = OFFSET_ROWS if self.offsets else sum(self.groups) or self.rows
        recipe = RECIPES[self.recipe.split(",")[0]]
        self.format, self.has_tensor_scale = recipe.format, recipe.has_tensor_scale
        self.nearest_only = recipe.rounds_to_nearest_only
        facts = recipes.FORMATS[self.format]
        self.nvfp4, self.data = not facts.is_mx, facts.element
        self.block_size, self.scale = facts.block, facts.scale
        sizes, _, self.arithmetic = transform.partition(" ")
        self.unrounded = self.arithmetic == "unrounded"
        self.arithmetic = "" if self.unrounded else self.arithmetic
        self.sizes = [0, 0] if sizes == "none" else [int(size) for size in sizes.split(",")]
        self.sides = [side for side, name in enumerate(("rowwise", "columnwise"))
                      if self.outputs in (name, "both")]
        self.tiled = [self.layout != "linear", self.layout == "tiled"]
        # Rows may be dynamic, but not of groups or for the transform on the tensor core.
        self.tcgen05 = self.arithmetic and tables.has(self.target, "hasTcgen05")
        dynamic = self.columns % 3 and not self.tcgen05 and not self.groups and not self.offsets
        self.m = "?" if dynamic else str(self.rows)

    def axis(self, side):
        """Elements along the blocks of a side."""
        return self.rows if side else self.columns

    def valid(self):
        if self.block == "square" and (not self.nvfp4 or any(self.sizes)
                                       or self.rounding == "transformer_engine"):
            return False
        if self.rounding != "nearest_even" and self.nearest_only:
            return False
        if self.rounding == "transformer_engine" and not self.nvfp4:
            return False
        if self.per_row and (self.block == "square" or any(self.sizes)
                             or not self.has_tensor_scale):
            return False
        if any(self.sizes) and self.element != "bf16":
            return False
        if not self.nvfp4 and any(self.axis(side) % self.block_size for side in self.sides):
            return False
        for side, size in enumerate(self.sizes):
            if size and (side not in self.sides or self.axis(side) % size):
                return False
        if self.groups and (self.tcgen05 or self.rounding == "transformer_engine"):
            return False
        step = max(self.sizes[1], self.block_size)
        if self.groups and (1 in self.sides or self.block == "square") and any(
                rows % step for rows in self.groups):
            return False
        if self.offsets and (1 in self.sides or self.block == "square" or any(self.sizes)
                             or self.rounding == "transformer_engine"):
            return False
        if self.arithmetic and (not self.nvfp4 or self.tcgen05 and self.outputs == "both"
                                and self.rounding == "transformer_engine"):
            return False
        return self.layout != "mixed" or self.outputs == "both"

    def scales_type(self, side):
        rows = self.columns if side else self.m
        block, element = self.block_size, self.scale
        encoding = ", #fp4.scale_layout<tiled_128x4>" if self.tiled[side] else ""
        blocks = "?" if side and self.m == "?" else (self.axis(side) + block - 1) // block
        if self.groups and self.tiled[side]:  # a list of tiles
            shapes = [(self.columns, group) if side else (group, self.columns)
                      for group in self.groups]
            rows, blocks = 128 * sum((r + 127) // 128 * ((c + 4 * block - 1) // (4 * block))
                                     for r, c in shapes), 4
        if self.offsets and self.tiled[side]:  # a list with room for any groups
            rows = 128 * (self.rows // 128 + self.num_groups()) * ((blocks + 3) // 4)
            blocks = 4
        return f"tensor<{rows}x{blocks}x{element}{encoding}>"

    def num_groups(self):
        is_list = self.offsets and not isinstance(self.offsets[0], list)
        return len(self.groups or self.offsets) - (1 if is_list else 0)

    def offsets_type(self):
        sizes = f"{len(self.offsets)}x2" if isinstance(self.offsets[0], list) else len(self.offsets)
        return f"tensor<{sizes}xi64>"

    def data_type(self, side):
        rows, columns = (self.columns, self.m) if side else (self.m, self.columns)
        return f"tensor<{rows}x{columns}x{self.data}>"

    def input_type(self):
        return f"tensor<{self.m}x{self.columns}x{self.element}>"

    def amax_type(self, side):
        if self.per_row:
            return f"tensor<{self.columns if side else self.m}xf32>"
        return f"tensor<{self.num_groups()}xf32>" if self.groups or self.offsets else "tensor<f32>"

    def group_attribute(self):
        if self.per_row:
            return ["per_row"]
        return [f"groups = array<i64: {', '.join(map(str, self.groups))}>"] if self.groups else []

    def amax(self, side):
        """Lines that define %a<side>."""
        x, amax = self.input_type(), self.amax_type(side)
        attributes = ["per_column"] if self.per_row and side else self.group_attribute()
        if self.offsets:
            return [f"  %a{side} = fp4.amax %x offsets %o : {x}, {self.offsets_type()} -> {amax}"]
        if not self.sizes[side]:
            return [f"  %a{side} = fp4.amax %x {{{', '.join(attributes)}}} : {x} -> {amax}"]
        attributes += [f"size = {self.sizes[side]} : i64", f"dimension = {1 - side} : i64"]
        return [f"  %b{side}, %a{side} = fp4.hadamard_amax %x {{{', '.join(attributes)}}}",
                f"    : {x} -> {amax}, {amax}"]

    def attributes(self):
        out = [f"format = #fp4.format<{self.format}>", f"recipe = #fp4.recipe<{self.recipe}>",
               f"outputs = #fp4.outputs<{self.outputs}>"]
        if self.block == "square":
            out.append("block = array<i64: 16, 16>")
        for size, name in zip(self.sizes, ("hadamard", "columnwise_hadamard")):
            if size:
                arithmetic = f", arithmetic = {self.arithmetic}" if self.arithmetic else ""
                arithmetic += ", rounding = none" if self.unrounded else ""
                out.append(f"{name} = #fp4.hadamard<size = {size}{arithmetic}>")
        if self.rounding != "nearest_even":
            out += ["rounding = #fp4.rounding<stochastic>",
                    f"philox = #fp4.philox<{self.rounding}>"]
        return ", ".join(out + self.group_attribute())

    def program(self):
        x = self.input_type()
        arguments, operands, types, lines = [f"%x: {x}{self.strided}"], "%x", [x], []
        results = []
        if self.offsets:
            lines.append(f"  %o = arith.constant dense<{self.offsets}> : {self.offsets_type()}")
        if self.has_tensor_scale:
            distinct = self.sides if any(self.sizes) or self.per_row else self.sides[:1]
            for word, side in zip(("amax", "columnwise_amax"), distinct):
                lines += self.amax(side)
                operands += f" {word} %a{side}"
                types.append(self.amax_type(side))
                results.append((f"%a{side}", self.amax_type(side)))
        if self.rounding != "nearest_even":
            arguments.append("%rng: tensor<2xi64>")
            operands += " rng %rng"
            types.append("tensor<2xi64>")
        if self.offsets:
            operands += " offsets %o"
            types.append(self.offsets_type())
        outputs = [pair for side in self.sides for pair in ((f"%q{side}", self.data_type(side)),
                                                            (f"%s{side}", self.scales_type(side)))]
        lines += [f"  {', '.join(name for name, _ in outputs)} = fp4.quantize {operands}",
                  f"    {{{self.attributes()}}}",
                  f"    : ({', '.join(types)}) -> ({', '.join(kind for _, kind in outputs)})"]
        results += outputs
        if self.sides[0] == 0 and not self.tiled[0] and not self.groups and not self.offsets:
            amax = " amax %a0" if self.has_tensor_scale else ""
            more = f", {self.amax_type(0)}" if self.has_tensor_scale else ""
            rows = ", per_row" if self.per_row else ""
            lines += [f"  %y = fp4.dequantize %q0 scaled %s0{amax} {{format = #fp4.format<{self.format}>,"
                      f" recipe = #fp4.recipe<{self.recipe}>{rows}}}",
                      f"    : ({self.data_type(0)}, {self.scales_type(0)}{more}) -> {x}"]
            results.append(("%y", x))
        names, kinds = (", ".join(words) for words in zip(*results))
        return "\n".join([f"func.func @f({', '.join(arguments)}) -> ({kinds}) {{", *lines,
                          f"  return {names} : {kinds}", "}", ""])


def wanted(i, j):
    """Pairs that count: a recipe is only paired with what its code may meet."""
    return not ({i, j} & {1} and {i, j} & {5, 7, 8, 9, 10}) and {i, j} != {8, 9}


def same(pair):
    """Returns the pair that stands for one of a target and a recipe: to a recipe targets differ by
    their conversion to fp4 alone."""
    i, j, target, recipe = pair
    if (i, j) != (0, 1):
        return pair
    converts = tables.has(target, "hasFp4Convert")
    return i, j, next(x for x in TARGET if tables.has(x, "hasFp4Convert") == converts), recipe


def cross_product():
    """Every recipe and kernel; layouts, groups and shapes of whole and of broken tiles in turn."""
    shapes = [("one", 320, 272), ("one", 128, 128), ("blocks", 0, 416), ("any", 0, 80),
              ("offsets", 0, 80), ("ranges", 0, 416)]
    rest = itertools.cycle(itertools.product(LAYOUT, shapes))
    for kernel in itertools.product(*PARAMETERS[:7]):
        for layout, shape in itertools.islice(rest, len(LAYOUT) * len(shapes)):
            if Case(case := (*kernel, layout, *shape)).valid():
                yield case
                break


# --- The other kernels of the family -----------------------------------------


def function(name, arguments, lines, results):
    kinds = ", ".join(kind for _, kind in results)
    return "\n".join([f"func.func @{name}({arguments}) -> ({kinds}) {{", *lines,
                      f"  return {', '.join(value for value, _ in results)} : {kinds}", "}", ""])


def amaxes():
    for element, policy, (rows, columns) in itertools.product(
            ELEMENT, tables.words("NanPolicy"), [("?", 1), ("?", 48), ("300", 37), ("?", 1024)]):
        x, per_row = f"tensor<{rows}x{columns}x{element}>", f"tensor<{rows}xf32>"
        per_column = f"tensor<{columns}xf32>"
        nan = f"nan = #fp4.nan_policy<{policy}>"
        yield function(f"amax_{element}_{policy}_{columns}", f"%x: {x}",
                       [f"  %a = fp4.amax %x {{{nan}}} : {x} -> tensor<f32>",
                        f"  %b = fp4.amax %x {{{nan}, per_row}} : {x} -> {per_row}",
                        f"  %c = fp4.amax %x {{{nan}, per_column}} : {x} -> {per_column}"],
                       [("%a", "tensor<f32>"), ("%b", per_row), ("%c", per_column)])
        x = f"tensor<300x{columns}x{element}>"
        yield function(f"groups_{element}_{policy}_{columns}", f"%x: {x}",
                       ["  %o = arith.constant dense<[0, 0, 7, 200, 299]> : tensor<5xi64>",
                        f"  %a = fp4.amax %x offsets %o {{{nan}}} : {x}, tensor<5xi64>"
                        " -> tensor<4xf32>"], [("%a", "tensor<4xf32>")])


def transforms():
    for size, dimension, mask in itertools.product((16, 32, 64, 128), (0, 1), (0xD7E8, 0x1234)):
        x = "tensor<128x384xbf16>"
        attributes = f"size = {size} : i64, dimension = {dimension} : i64, sign_mask = {mask} : i64"
        yield function(f"hadamard_{size}_{dimension}_{mask}", f"%x: {x}",
                       [f"  %y = fp4.hadamard %x {{{attributes}}} : {x} -> {x}",
                        f"  %a, %b = fp4.hadamard_amax %x {{{attributes}, nan = "
                        f"#fp4.nan_policy<{'propagate' if mask & 8 else 'drop'}>}}"
                        f" : {x} -> tensor<f32>, tensor<f32>"],
                       [("%y", x), ("%a", "tensor<f32>"), ("%b", "tensor<f32>")])


def layouts():
    for element, (rows, blocks) in itertools.product(
            ("f8E4M3FN", "f8E8M0FNU"), [(1, 1), (128, 4), (130, 6), (257, 17)]):
        linear = f"tensor<{rows}x{blocks}x{element}>"
        tiled = linear[:-1] + ", #fp4.scale_layout<tiled_128x4>>"
        yield function(f"scales_{element}_{rows}", f"%s: {linear}, %t: {tiled}",
                       [f"  %0 = fp4.swizzle_scales %s : {linear} -> {tiled}",
                        f"  %1 = fp4.unswizzle_scales %t : {tiled} -> {linear}"],
                       [("%0", tiled), ("%1", linear)])
        tiles = 128 * (rows // 128 + 2) * ((blocks + 3) // 4)
        listed = f"tensor<{tiles}x4x{element}, #fp4.scale_layout<tiled_128x4>>"
        yield function(f"groups_{element}_{rows}", f"%s: {linear}",
                       [f"  %o = arith.constant dense<[0, {rows // 3}, {rows}]> : tensor<3xi64>",
                        f"  %0 = fp4.swizzle_scales %s offsets %o : {linear}, tensor<3xi64>"
                        f" -> {listed}"],
                       [("%0", listed)])


def others():
    """(target, what, functions): programs of several functions."""
    for target in TARGET:
        yield target, "amax", list(amaxes())
        yield target, "layouts", list(layouts())
        yield target, "hadamard", list(transforms())


# --- Running -----------------------------------------------------------------


def run_library(tools, stem, name, text, target, runs, options):
    """Compiles a program and runs fp4-run on it with each of the lists of options `runs`."""
    library, _, built = sweeping.compile_library(tools, stem, text, f"--target={target}",
                                                 cubins=options.cubins)
    outcome = sweeping.Outcome()
    if options.empty:
        runs = sweeping.without_rows(text, runs)
    if built.returncode and any(words in built.stderr for words in NO_KERNEL):
        message = built.stderr.split("error: ", 1)[1].splitlines()[0]
        outcome.unsupported += [] if options.partial else [f"{name}: {message}"]
    elif built.returncode:
        outcome.failures.append(built.stderr)
    elif options.pack:
        outcome = sweeping.pack(options.pack, library, runs)
    else:
        for arguments in runs:
            outcome.run([tools / "fp4-run", library, "--device=sim", "--threads=1",
                         "--check=strict", *arguments])
        library.unlink()
    outcome.failures = [f"{name}\n{text}{failure}" for failure in outcome.failures]
    return outcome


def check(tools, scratch, index, values, options):
    case = Case(values)
    inputs = [("bf16", index), ("adversarial", index % PEAKS)]
    if case.arithmetic:  # blocks of any exponents are not what docs/reference/numerics.md promises of it
        inputs = inputs[:1]
    if case.element == "f32" or case.arithmetic:
        inputs.append(("gaussian", index))
    runs = [[f"--shape={case.rows}", f"--dist={distribution}", f"--seed={seed}"]
            for distribution, seed in inputs]
    return run_library(tools, scratch / f"case{index}", values, case.program(), case.target, runs,
                       options)


def check_others(tools, scratch, index, other, options):
    target, what, functions = other
    runs = [[f"--function={text.split('@')[1].split('(')[0]}", f"--dist={distribution}",
             f"--seed={seed}", *(["--shape=77"] if "?" in text else [])]
            for seed, text in enumerate(functions) for distribution in ("bf16", "adversarial")]
    return run_library(tools, scratch / f"other{index}", (target, what), "".join(functions), target,
                       runs, options)


def main():
    parser = sweeping.option_parser(__doc__)
    parser.add_argument("--partial", action="store_true",
                        help="combinations without a kernel are no failures")
    parser.add_argument("--strided", action="store_true", help="rows of inputs have gaps between them")
    parser.add_argument("--cubins", action="store_true", help="assemble every kernel too")
    parser.add_argument("--match", default="", help="only cases whose values, as --list prints "
                                                    "them, contain this")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="every Nth library, from the Ith")
    options = parser.parse_args()
    if options.strided:
        Case.strided = " {fp4.strided}"
    if options.pack:
        options.pack.mkdir(parents=True, exist_ok=True)
    cases = sweeping.sampled_covering(PARAMETERS, lambda case: Case(case).valid(), wanted, same=same)
    if options.full:
        cases += cross_product()
    work = [(check, case) for case in dict.fromkeys(cases)]
    work += [(check_others, other) for other in others()]
    first, step = map(int, options.part.split("/"))
    work = list(enumerate(item for item in work if options.match in str(item[1])))[first - 1::step]
    if options.list:
        for _, (_, what) in work:
            print(what if isinstance(what[-1], int) else what[:2])
        print(f"{len(work)} libraries")
        return 0
    return sweeping.run_all(options, lambda tools, scratch, function, *rest:
                            function(tools, scratch, *rest),
                            [(function, index, what, options) for index, (function, what) in work])


if __name__ == "__main__":
    sys.exit(main())
