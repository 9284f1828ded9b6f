#!/usr/bin/env python3
"""Recipes against the packages they are named after, byte by byte.

  compare.py --python=VENV/bin/python torchao-0.18.0=FOLDER modelopt-0.45.0=FOLDER ...
  compare.py --list                 the packages and their recipes
  compare.py ... --capture          also writes what the packages gave for the numbered blocks, which
                                    unittests/Numerics/PackageTest.cpp compares in CI

VENV has PyTorch for CPUs; a FOLDER is made by `pip install --no-deps --target FOLDER PACKAGE==VERSION`
or is the sources of a checkout. The blocks are numbered edge cases and --blocks random ones: bf16
values over nine binades. Ours are quantized and dequantized by the kernels that fp4-runner compiles
(for --target), simulated and compared with lib/Numerics. Prints a table of how many scales, codes and
dequantized values differ; ends with 1 where any does."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
GOLDEN = ROOT / "unittests/Numerics/data/packages_golden.json"
DEQUANTIZE_AMAX = 3.7

# package: adapter of packages.py, recipe, what of it is not compared
CASES = [
    *[(f"torchao-{version}", f"torchao_mx:{mode.upper()}", recipe + mode)
      for version, recipe in (("0.18.0", "torchao_0_18_"), ("main", "ocp_"))
      for mode in ("floor", "ceil", "even", "rceil")],
    *[(f"torchao-{version}", f"torchao_nv:{levels}", recipe) for version in ("0.18.0", "main")
      for levels, recipe in ((2, "torchao"), (1, "torchao_1level"))],
    # PyTorch casts to E4M3 saturating from 2.13 on, which is where this runs.
    ("modelopt-0.44.0", "modelopt", "modelopt_0_44, scale_cast = saturating"),
    ("modelopt-0.45.0", "modelopt", "modelopt"),
    ("modelopt-0.47.0", "modelopt", "modelopt"),
    *[("torchao-0.18.0", f"torchao_wide_mx:{format}:{mode.upper()}", f"{format}_{mode}, "
       f"zero_byte = {zero}, non_finite = nan_alone" + nan_byte)
      for format in ("mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2")
      for mode, zero, nan_byte in (("floor", "least_normal", ", nan_byte = zero"),
                                   ("rceil", "one", ""))],
    ("modelopt-0.47.0", "modelopt_static", "modelopt_static"),
    ("modelopt-0.47.0", "modelopt_mx", "mxfp4_modelopt"),
    ("compressed-tensors-0.20.0", "compressed_tensors:nv:bf16", "compressed_tensors"),
    ("compressed-tensors-0.20.0", "compressed_tensors:nv:f32", "compressed_tensors_f32"),
    ("compressed-tensors-0.20.0", "compressed_tensors:mx:bf16", "mxfp4_compressed_tensors"),
    ("compressed-tensors-0.20.0", "compressed_tensors:mx:f32", "mxfp4_compressed_tensors"),
    ("gguf-0.19.0", "gguf_mx", "ggml_mxfp4"),
    ("fouroversix-1.1.0", "fouroversix:mxfp4:static_6", "mxfp4_fouroversix"),
    ("fouroversix-1.1.0", "fouroversix:nvfp4:mse", "fouroversix"),
    ("fouroversix-1.1.0", "fouroversix:nvfp4:mae", "fouroversix_mae"),
    ("fouroversix-1.1.0", "fouroversix:nvfp4:abs_max", "fouroversix_abs_max"),
]


# Adapters whose blocks are bf16 numbers; and those that convert what is no number, or too large or
# small for a byte, to an integer, which means what the machine makes of it: the least and the largest
# amax that are compared.
BF16 = ("compressed_tensors:nv:bf16", "compressed_tensors:mx:bf16")
LIMITS = {"compressed_tensors:mx:bf16": (0, 2.9e38), "compressed_tensors:mx:f32": (0, 2.9e38),
          "modelopt_mx": (0, 3.4e38), "gguf_mx": (2.0**-125, 3.4e38)}


WIDE = {"mxfp6_e2m3": "f6E2M3FN", "mxfp6_e3m2": "f6E3M2FN", "mxfp8_e4m3": "f8E4M3FN",
        "mxfp8_e5m2": "f8E5M2"}


def is_mx(adapter):
    return "mx" in adapter


def bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    even = (bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), x, even).astype(np.float32)


def suitable(adapter, blocks, numbered):
    """The blocks that are compared with this adapter, and how many of them are numbered."""
    blocks = dict(blocks)
    if adapter in BF16:
        blocks["x"], blocks["amax"] = bf16(blocks["x"]), bf16(blocks["amax"])
    if adapter in LIMITS:
        least, most = LIMITS[adapter]
        amax = np.abs(blocks["x"]).max(1)
        kept = (amax == 0) | (amax >= least) & (amax <= most)
        blocks["x"], blocks["amax"] = blocks["x"][kept], blocks["amax"][kept]
        numbered = int(kept[:numbered].sum())
    return blocks, numbered


# --- Blocks -----------------------------------------------------------------


def block(width, *values):
    x = np.zeros(width, np.float32)
    x[:len(values)] = np.array(values, np.float32)
    return x


def after(x, steps):
    """The fp32 number `steps` places behind x."""
    return (np.float32(x).view(np.uint32) + np.uint32(steps)).view(np.float32)


def special_mx():
    inf, nan = np.inf, np.nan
    yield from (block(32, *values) for values in [
        (2.99e-38, 1e-38, -1.1e-38, -5e-39), (1.2e-38, -6e-39), (2.02e-39, -2e-39), (1e-45, -1e-45),
        (3.0e38, 1e38, -5e37), (3.4e38, -3.3e38), (2.9e38, 1), (inf, 1, -1, 3e38), (-inf, inf, -0.0),
        (nan, 1, -1, 0.0), (nan, inf, 2), (6, -0.0, -0.1, 0.1, 5, 2.5, 1.25, 0.25, 3.5, 1.75, 0.75),
        (3.5, -3.5, 1), (7, 1), (1.75, 0.4), (5.9e-39, -5.9e-39, 2e-39), (1.2e-37, -1e-38, 2e-39)])
    # Six times what lies a few places above a power of two: where a logarithm rounds down to it.
    for exponent in (-127, -126, -100, -64, -40, -9, -4, 0, 3, 4, 12, 20, 40, 64, 120):
        for steps in (1, 2, 5, 11, 12, 22, 23):
            x = np.float32(6.0 * 2.0**exponent)
            yield block(32, after(x, steps * 3 // 2 + 1), after(x, steps) / 3, x)
    yield block(32)


def special_nv():
    """(block, amax of its tensor)."""
    inf, nan = np.inf, np.nan
    return [(block(16, *values), np.float32(amax)) for values, amax in [
        ((8, -0.0, -0.1, 3, 1), 4), ((8, 5, 4.2), 1), ((0.003, -0.002), 4), ((1e-3, -1e-4), 2688),
        ((), 4), ((), 0), ((-0.0, 0.0), 1), ((1e-5, 2e-6), 100), ((0.0058, -0.0059, 0.003), 2688),
        ((6, 5.9, -3), 2688), ((448 * 6, 1000), 2688), ((1, nan, 2), 4), ((nan,), nan), ((inf, 1), inf),
        ((1, 2), inf), ((1e-38, 5e-39), 1e-38), ((1e-45, -1e-45), 1e-45), ((3e38, 1e38), 3e38),
        ((3.3e-36, 1e-36), 3.3e-36), ((6, 4, 3, 2, 1.5, 1, 0.5, 0.25, 5, 3.5, 2.5, 1.75, 1.25, 0.75), 6),
        ((4, 3.9, 3.1), 2688 / 448 * 5), ((1, 0.7, -0.3), 1.015625), ((1.09375, 0.5), 1.09375)]]


def random_blocks(width, count, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, width)) * 2.0 ** rng.integers(-8, 1, (count, 1))
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def make_blocks(mx, count):
    """The numbered blocks, then random ones; how many are numbered."""
    width = 32 if mx else 16
    few, many = random_blocks(width, 12, 1), random_blocks(width, count, 2)
    special = [(x, np.float32(1)) for x in special_mx()] if mx else special_nv()
    amaxes = [amax for _, amax in special]
    for x in (few, many):
        amaxes += [np.abs(x).max()] * len(x)
    x = np.concatenate([np.stack([x for x, _ in special]), few, many])
    scale_bytes = [0, 1, 2, 60, 100, 126, 127, 128, 200, 253, 254, 255] if mx else [
        0, 1, 7, 8, 9, 20, 33, 46, 56, 77, 91, 100, 113, 126, 127]
    return dict(x=x, amax=np.array(amaxes, np.float32), bytes=np.array(scale_bytes, np.uint8)), \
        len(special) + len(few)


# --- Both sides -------------------------------------------------------------


def theirs(options, adapter, folder, blocks, scratch):
    np.savez(scratch / "in.npz", **blocks)
    done = subprocess.run([options.python, HERE / "packages.py", adapter, folder, scratch / "in.npz",
                           scratch / "out.npz"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{adapter} of {folder} failed\n{done.stderr}")
    return dict(np.load(scratch / "out.npz"))


def format_of(recipe, mx):
    """The format of a recipe, and the type of its elements."""
    wide = next((name for name in WIDE if recipe.startswith(name)), None)
    return (wide, WIDE[wide]) if wide else ("mxfp4" if mx else "nvfp4", "f4E2M1FN")


def program(recipe, mx, rows, scale_bytes, has_amax):
    """One group per block of NVFP4, so that each has its amax, and a ramp of codes to dequantize."""
    width, scale = (32, "f8E8M0FNU") if mx else (16, "f8E4M3FN")
    name, code = format_of(recipe, mx)
    format = f"format = #fp4.format<{name}>, recipe = #fp4.recipe<{recipe}>"
    groups = "" if mx else f", groups = array<i64: {', '.join(['1'] * rows)}>"
    x, q, s = f"{rows}x{width}xf32", f"{rows}x{width}x{code}", f"{rows}x1x{scale}"
    d, t, y = f"{scale_bytes}x{width}x{code}", f"{scale_bytes}x1x{scale}", f"{scale_bytes}x{width}xf32"
    amax = lambda name: f" amax %{name}" if has_amax else ""
    kind = lambda type: f", tensor<{type}>" if has_amax else ""
    arguments = [f'%{name}: tensor<{type}> {{fp4.name = "{name}"}}' for name, type in [
        ("x", x), ("ramp", d), ("bytes", t), *([("a", f"{rows}xf32"), ("b", "f32")] if has_amax else [])]]
    results = ", ".join(f'tensor<{type}> {{fp4.name = "{name}"}}'
                        for name, type in [("q", q), ("s", s), ("y", y)])
    return f"""func.func @f({", ".join(arguments)}) -> ({results}) {{
  %q, %s = fp4.quantize %x{amax("a")} {{{format}{groups}}}
      : (tensor<{x}>{kind(f"{rows}xf32")}) -> (tensor<{q}>, tensor<{s}>)
  %y = fp4.dequantize %ramp scaled %bytes{amax("b")} {{{format}}}
      : (tensor<{d}>, tensor<{t}>{kind("f32")}) -> tensor<{y}>
  return %q, %s, %y : tensor<{q}>, tensor<{s}>, tensor<{y}>
}}
"""


def ours(options, recipe, mx, blocks, scratch):
    has_amax = not mx and "1level" not in recipe
    rows, width = blocks["x"].shape
    packed = format_of(recipe, mx)[1] == "f4E2M1FN"
    codes = np.arange(16, dtype=np.uint8)
    ramp = np.tile(codes[0::2] | codes[1::2] << 4 if packed else codes,
                   (len(blocks["bytes"]), width // 16))
    inputs = {"x": blocks["x"], "ramp": ramp, "bytes": blocks["bytes"][:, None]}
    if has_amax:
        inputs.update(a=blocks["amax"], b=np.array(DEQUANTIZE_AMAX, np.float32))
    (scratch / "f.mlir").write_text(program(recipe, mx, rows, len(blocks["bytes"]), has_amax))
    command = [options.build / "bin/fp4-runner", scratch / "f.mlir", "--device=sim",
               f"--target={options.target}"]
    for name, value in inputs.items():
        np.save(scratch / f"{name}.npy", value)
        command.append(f"--input={name}={scratch}/{name}.npy")
    command += [f"--output={name}={scratch}/{name}.npy" for name in "qsy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{recipe} failed\n{done.stdout}{done.stderr}")
    q, s, y = (np.load(scratch / f"{name}.npy") for name in "qsy")
    codes = np.stack([q & 15, q >> 4], 2).reshape(rows, width) if packed else q
    return {"scales": s.reshape(-1), "codes": codes, "back": y[:, :16]}


# --- Table and goldens ------------------------------------------------------


def differences(mine, other):
    back = mine["back"][:len(other["back"])]
    nan = np.isnan(back) & np.isnan(other["back"])
    same = back == other["back"]  # ModelOpt's table has 0 for code 8
    return [mine["scales"] != other["scales"],
            (mine["codes"] != other["codes"]) & (other["codes"] != 255), ~(same | nan)]


def words(x):
    return " ".join("%08x" % bits for bits in np.asarray(x, np.float32).reshape(-1).view(np.uint32))


def text(scale, codes):
    return "%02x:" % scale + "".join("N" if code == 255 else "%x" % code for code in codes)


def golden_of(recipe, other, numbered):
    return {"recipe": recipe, "results": [text(*pair) for pair in
                                          zip(other["scales"][:numbered], other["codes"])],
            "dequantized": [words(row) for row in other["back"]]}


def golden_blocks(blocks, numbered):
    return {"x": [words(x) for x in blocks["x"][:numbered]],
            "amax": [words(a) for a in blocks["amax"][:numbered]],
            "bytes": blocks["bytes"].tolist(), "dequantize_amax": words(DEQUANTIZE_AMAX)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE=FOLDER")
    parser.add_argument("--python", default=sys.executable, help="that has PyTorch")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--blocks", type=int, default=2000)
    parser.add_argument("--capture", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    folders = dict(item.split("=", 1) for item in options.packages)
    if options.list or not folders:
        print("\n".join(f"{package:20} {adapter:28} {recipe}" for package, adapter, recipe in CASES))
        return 0
    sets = {mx: make_blocks(mx, options.blocks) for mx in (False, True)}
    golden = {name: golden_blocks(*sets[mx]) for mx, name in ((False, "nvfp4"), (True, "mxfp4"))}
    golden["packages"] = {}
    failed = False
    print(f"{'package':20} {'recipe':40} {'scales':>8} {'codes':>8} {'values':>8}")
    with tempfile.TemporaryDirectory() as scratch:
        for package, adapter, recipe in CASES:
            if package not in folders:
                continue
            blocks, numbered = suitable(adapter, *sets[is_mx(adapter)])
            other = theirs(options, adapter, folders[package], blocks, pathlib.Path(scratch))
            mine = ours(options, recipe, is_mx(adapter), blocks, pathlib.Path(scratch))
            wrong = differences(mine, other)
            failed |= any(w.any() for w in wrong)
            print(f"{package:20} {recipe:40} " + " ".join(f"{w.sum():8}" for w in wrong), flush=True)
            for i in np.flatnonzero(wrong[0] | wrong[1].any(1))[:3]:
                print(f"    block {i}, amax {blocks['amax'][i]:.9g}: theirs "
                      f"{text(other['scales'][i], other['codes'][i])}, ours "
                      f"{text(mine['scales'][i], mine['codes'][i])}")
            if "wide" in adapter:
                continue  # the models of oracles/quantizers have these in CI
            golden["packages"][f"{package} {adapter}"] = golden_of(recipe, other, numbered)
            if adapter in (*BF16, *LIMITS):
                golden["packages"][f"{package} {adapter}"] |= golden_blocks(blocks, numbered)
    print(f"of {len(sets[False][0]['x'])} blocks of 16, {len(sets[True][0]['x'])} of 32")
    if options.capture:
        GOLDEN.write_text(json.dumps(golden, indent=0) + "\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
