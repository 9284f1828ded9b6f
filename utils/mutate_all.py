#!/usr/bin/env python3
"""Mutates the synchronization of every kind of kernel that the compiler emits (utils/mutate.py).

  utils/mutate_all.py                 all programs for all targets; a table at the end
  utils/mutate_all.py --only=hadamard those whose name contains the text
  utils/mutate_all.py --limit=8       a fixed sample of each

Exit code 1 when a mutant survives that is not equivalent.
"""
import collections
import pathlib
import re
import sys
import tempfile

import mutate
import recipes
from sweep_quantize import Case

ROOT = pathlib.Path(__file__).resolve().parent.parent
Program = collections.namedtuple("Program", "name text shape targets options", defaults=[()])
BLACKWELL, BOTH = ["sm_100a"], ["sm_100a", "sm_90a"]


def gemm(tile, fmt="nvfp4"):
    """A product of fp4 operands, of 6 k tiles."""
    facts = recipes.FORMATS[fmt]
    text = (ROOT / "test/Target/mutations.mlir").read_text()
    text = text[text.index("func.func"):]
    text = text.replace("tile = [128, 64, 256]", f"tile = [128, {tile}, 256]").replace("nvfp4", fmt)
    text = re.sub(r"\b64x(\d+)x", rf"{tile}x\1x", text).replace("x64xbf16", f"x{tile}xbf16")
    return text.replace("x96xf8E4M3FN", f"x{1536 // facts.block}x{facts.scale}")


def lanes(k, tile):
    """A product of FP8 with f32 scales, whose sums are in tensor memory for each block of K."""
    blocks = (k + 127) // 128
    a, sa = f"tensor<?x{k}xf8E4M3FN>", f"tensor<?x{blocks}xf32>"
    b, sb = f"tensor<264x{k}xf8E4M3FN>", f"tensor<3x{blocks}xf32>"
    return (f"func.func @product(%a: {a}, %sa: {sa}, %b: {b}, %sb: {sb}) -> tensor<?x264xbf16> {{\n"
            "  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<fp8_block128>,"
            f" fp4.plan = #fp4.plan<tile_product, tile = [128, {tile}, 128], stages = 2>}} :"
            f" ({a}, {sa}, {b}, {sb}) -> tensor<?x264xbf16>\n  return %y : tensor<?x264xbf16>\n}}\n")


def quantizer(target, *case):
    return Case((target, "transformer_engine", "bf16", *case)).program()


def programs():
    # 9 tiles for 2 blocks, the last tile not whole: every ring wraps around.
    for name, text in {"NVFP4 product, 64 columns": gemm(64),
                       "NVFP4 product, 192 columns (two sets of scales)": gemm(192),
                       "NVFP4 product, 256 columns (overlapped accumulators)": gemm(256),
                       "MXFP4 product, 128 columns": gemm(128, "mxfp4")}.items():
        yield Program(name, text, 1060, BLACKWELL, ["--multiprocessors=2"])
    for name, k, tile in (("FP8 with f32 scales in tiles", 1024, 128), ("FP8 with f32 scales, two warpgroups", 1040, 256)):
        yield Program(name, lanes(k, tile), 300, BLACKWELL, ["--multiprocessors=2"])
    near, whole = "nearest_even", ("one", 320, 272)
    several = ("one", 1280, 1152)  # of which several blocks take the amax
    for name, case in {
            "quantize rows": ("rowwise", "row", "none", near, "tiled", "one", 130, 272),
            "quantize columns": ("columnwise", "row", "none", near, "linear", *whole),
            "quantize both": ("both", "row", "none", near, "mixed", *whole),
            "quantize blocks of 16 x 16": ("both", "square", "none", near, "mixed", *whole),
            "quantize groups of rows": ("both", "row", "none", near, "mixed", "blocks", 0, 272),
            "Hadamard in registers, 16": ("both", "row", "16,16", "element", "mixed", *several),
            "Hadamard across lanes, 128 and 32": ("both", "row", "128,32", near, "mixed", *several)}.items():
        yield Program(name, quantizer("sm_100a", *case), None, BOTH)
    # Two blocks, each with two strips of 19 tiles, the last row and column of tiles not whole.
    for name, rounding, layout in (("", near, "tiled"), (", stochastic", "transformer_engine", "linear")):
        case = ("columnwise", "row", "0,16 tensor_core", rounding, layout, "one", 1200, 392)
        yield Program("Hadamard on the tensor core" + name, quantizer("sm_100a", *case), None, BLACKWELL,
                      ["--multiprocessors=1"])


def judge(program, target, options):
    with tempfile.TemporaryDirectory(prefix="fp4-mutate-") as folder:
        scratch = pathlib.Path(folder)
        source = scratch / "program.mlir"
        source.write_text(program.text)
        shape = [f"--shape={program.shape}"] if program.shape else []
        library = mutate.compile_program(options.build / "bin", scratch, source,
                                         [*shape, *program.options, f"--target={target}"])
        options.arguments = [shape[0].split(",")[0]] if shape else []
        return mutate.tally(library, scratch, options)


def main():
    arguments = mutate.parser(__doc__)
    arguments.add_argument("--only", default="", help="programs whose name contains this text")
    options = arguments.parse_args()
    rows, survived = [], 0
    for program in programs():
        if options.only not in program.name:
            continue
        for target in program.targets:
            print(f"== {program.name}, {target}", flush=True)
            result = judge(program, target, options)
            result.print(options)
            survived += len(result.survivors)
            rows.append((program.name, target, len(result.chosen), result.killed(),
                         len(result.equivalent), len(result.survivors)))
    print("| program | target | mutants | killed | equivalent | survived |\n|---|---|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    return 1 if survived or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
