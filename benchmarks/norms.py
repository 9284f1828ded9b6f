#!/usr/bin/env python3
"""Norms and what follows them, by rows, beside a copy and torch.compile.

  benchmarks/norms.py pack BUILD FOLDER     compiles the programs for sm_90a into FOLDER
  benchmarks/norms.py run FOLDER [--json=FILE]

`run` needs a Hopper GPU and PyTorch, verifies each program, times it with a cold L2
beside a copy of as many bytes, and times the code that torch.compile makes of the same function. A
line of JSON for each program and shape has microseconds.
"""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys

import kit

COLUMNS = (2048, 4096, 7168, 8192, 16384)
ROWS = (64, 4096, 16384)
MAPS = "#mm = affine_map<(i, j) -> (i, j)>\n#row = affine_map<(i, j) -> (i)>\n#column = affine_map<(i, j) -> (j)>\n"


def sum_of(name, inputs, columns, element):
    """A reduction of rows by sums of `element`, MLIR that defines %e from the arguments."""
    maps = ", ".join("#row" if "?xf32>" == t[-6:] else "#mm" for _, t, _ in inputs)
    arguments = ", ".join(f"%{a}: {t.split('x')[-1][:-1]}" for _, t, a in inputs)
    return f"""  %{name} = linalg.generic {{indexing_maps = [{maps}, #row], iterator_types = ["parallel", "reduction"]}}
      ins({', '.join(v for v, _, _ in inputs)} : {', '.join(t for _, t, _ in inputs)}) outs(%init : tensor<?xf32>) {{
  ^bb0({arguments}, %acc: f32):
{element}    %n = arith.addf %acc, %e : f32
    linalg.yield %n : f32
  }} -> tensor<?xf32>
"""


def program(kind, columns):
    """The MLIR of a kind: [add_]rms, layer or none, and what follows: bf16, nvfp4, fp8_row, or
    nvfp4 behind the amax of each row (token) or of all rows (amax). A kind that ends with "_apart"
    has a kernel for the amax of rows."""
    norm, after = kind.rsplit("-", 1)
    x = f"tensor<?x{columns}xbf16>"
    arguments = [f"%x: {x}"] + [f"%w: tensor<{columns}xbf16>"] * (norm != "none")
    results, returned = [], []
    body = """  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : X
  %zero = arith.constant 0.0 : f32
  %numbers = tensor.empty(%rows) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%numbers : tensor<?xf32>) -> tensor<?xf32>
  %m = tensor.empty(%rows) : X
""".replace("X", x)
    h = "%x"
    if norm == "add_rms":
        arguments.append(f"%r: {x}")
        body += f"  %h = arith.addf %x, %r : {x}\n"
        h = "%h"
        results.append(x)
        returned.append("%h")
    square = "    %f = arith.extf %v : bf16 to f32\n"
    if norm == "none":
        return ending(body.replace("%m =", "%unused ="), after, "%x", x, columns, arguments, results, returned)
    if norm == "layer":
        body += sum_of("sum", [(h, x, "v")], columns, "    %e = arith.extf %v : bf16 to f32\n")
        square += f"    %c = arith.constant {1 / columns!r} : f32\n    %mean = arith.mulf %s, %c : f32\n    %d = arith.subf %f, %mean : f32\n"
        body += sum_of("square", [(h, x, "v"), ("%sum", "tensor<?xf32>", "s")], columns,
                       square + "    %e = arith.mulf %d, %d : f32\n")
    else:
        body += sum_of("square", [(h, x, "v")], columns, square + "    %e = arith.mulf %f, %f : f32\n")
    sums = ", %sum" if norm == "layer" else ""
    body += f"""  %y = linalg.generic {{indexing_maps = [#mm, #row{', #row' if sums else ''}, #column, #mm], iterator_types = ["parallel", "parallel"]}}
      ins({h}, %square{sums}, %w : {x}, tensor<?xf32>{', tensor<?xf32>' if sums else ''}, tensor<{columns}xbf16>) outs(%m : {x}) {{
  ^bb0(%v: bf16, %q: f32{', %s: f32' if sums else ''}, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %c = arith.constant {1 / columns!r} : f32
    %eps = arith.constant 1.0e-5 : f32
    %ms = arith.mulf %q, %c : f32
    %shifted = arith.addf %ms, %eps : f32
    %rs = math.rsqrt %shifted : f32
"""
    if sums:
        body += "    %mean = arith.mulf %s, %c : f32\n    %d = arith.subf %f, %mean : f32\n    %n = arith.mulf %d, %rs : f32\n"
    else:
        body += "    %n = arith.mulf %f, %rs : f32\n"
    body += f"""    %gw = arith.extf %g : bf16 to f32
    %scaled = arith.mulf %n, %gw : f32
    %b = arith.truncf %scaled : f32 to bf16
    linalg.yield %b : bf16
  }} -> {x}
"""
    return ending(body, after, "%y", x, columns, arguments, results, returned)


def ending(body, after, y, x, columns, arguments, results, returned):
    """The function of `body` and of what follows its matrix `y`, of type `x`."""
    codes, scales = f"tensor<?x{columns}xf4E2M1FN>", f"tensor<?x{columns // 16}xf8E4M3FN>"
    tiled = scales.replace(">", ", #fp4.scale_layout<tiled_128x4>>")
    amax, attributes = "tensor<f32>", "format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>"
    if after == "bf16":
        results, returned = [*results, x], [*returned, y]
    elif after == "fp8_row":
        codes, scales = f"tensor<?x{columns}xf8E4M3FN>", "tensor<?x1xf32>"
        body += f"""  %q, %s = fp4.quantize {y} {{format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, {columns}>}}
      : ({x}) -> ({codes}, {scales})
"""
        results, returned = [*results, codes, scales], [*returned, "%q", "%s"]
    else:
        if after == "nvfp4":
            arguments.append("%a: tensor<f32>")
        else:
            per_row, amax = ("", amax) if after == "amax" else (" {per_row}", "tensor<?xf32>")
            body += f"  %a = fp4.amax {y}{per_row} : {x} -> {amax}\n"
            attributes += ", per_row" if per_row else ""
            attributes += ", fp4.plan = #fp4.plan<stream_blocks>" if after == "token_apart" else ""
        body += f"""  %q, %s = fp4.quantize {y} amax %a {{{attributes}}} : ({x}, {amax}) -> ({codes}, {scales})
  %t = fp4.swizzle_scales %s : {scales} -> {tiled}
"""
        results, returned = [*results, codes, tiled], [*returned, "%q", "%t"]
    types = ", ".join(results)
    return (f"{MAPS}func.func @norm({', '.join(arguments)}) -> ({types}) {{\n{body}"
            f"  return {', '.join(returned)} : {types}\n}}\n")


KINDS = ("rms-bf16", "layer-bf16", "rms-nvfp4", "add_rms-nvfp4", "rms-fp8_row", "add_rms-fp8_row", "rms-amax", "rms-token",
         "none-token", "none-token_apart")


def bytes_of(kind, rows, columns):
    """Bytes that the program reads and writes."""
    norm, after = kind.rsplit("-", 1)
    elements = rows * columns
    written = {"bf16": 2 * elements, "fp8_row": elements + 4 * rows}.get(after, elements // 2 + elements // 16)
    return 2 * elements + (4 * elements if norm == "add_rms" else 0) + written


#: An amax that the results of norms of Gaussian numbers hardly exceed: elements of a block that
#: does saturate, and are quantized by a slower path.
AMAX = 16.0


def save_amax(folder):
    """Writes the amax that programs of kind nvfp4 have as their last argument."""
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (), }".ljust(117) + "\n"
    with open(os.path.join(folder, "amax.npy"), "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<f", AMAX))


def pack(build, folder):
    kit.begin(folder, os.path.join(build, "bin", "fp4-run"), __file__)
    save_amax(folder)
    kit.compile_programs(build, folder, [(f"{kind}_{columns}", program(kind, columns))
                                         for kind in KINDS for columns in COLUMNS])


def fp4_run(folder, kind, rows, columns, *options):
    library = os.path.join(folder, f"{kind}_{columns}.so")
    if "nvfp4" in kind:
        number = 3 if kind.startswith("add_rms") else 2
        options = (*options, f"--input=a{number}={os.path.join(folder, 'amax.npy')}")
    done = subprocess.run([os.path.join(folder, "fp4-run"), library, "--device=cuda", f"--shape={rows}", "--json",
                           *options], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {library} with {rows} rows: {done.stderr or done.stdout}")
    return json.loads(done.stdout)


def time_kernels(folder, kind, rows, columns, *options):
    """Microseconds of the kernels of the program, whose results were verified, of a copy of as many
    bytes as the first one moves, None where it has none, and the number of kernels."""
    entries = fp4_run(folder, kind, rows, columns, "--benchmark", *options)["benchmark"]["entries"]
    kernels = [entry for entry in entries if entry["name"] != "program"]
    return {"ours": 1e3 * sum(kernel["timing"]["median_ms"] for kernel in kernels),
            "copy": 1e3 * kernels[0]["copy"]["median_ms"] if "copy" in kernels[0] else None, "kernels": len(kernels)}


def time_ours(folder, kind, rows, columns):
    found = time_kernels(folder, kind, rows, columns)
    return {"ours": found["ours"], **({"copy": found["copy"]} if found["kernels"] == 1 else {})}


def time_torch(function, sets, flush, torch):
    """Median microseconds with a cold L2."""
    for arguments in sets[:1]:
        for _ in range(3):
            function(*arguments)
    times = []
    for i in range(30):
        flush.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        function(*sets[i % len(sets)])
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times)


def compiled_norm(kind, torch):
    norm, after = kind.rsplit("-", 1)

    def function(x, w, r):
        h = x + r if norm == "add_rms" else x
        f = h.float()
        if norm == "layer":
            f = f - f.mean(-1, keepdim=True)
        y = (f * torch.rsqrt(f.square().mean(-1, keepdim=True) + 1e-5) * w.float()).bfloat16()
        if after == "fp8_row":
            scale = y.float().abs().amax(-1, keepdim=True) / 448
            y = (y.float() / scale).to(torch.float8_e4m3fn), scale
        return (h, y) if norm == "add_rms" else y

    torch._dynamo.reset()
    return torch.compile(function, dynamic=False)


def report(rows, path):
    """Prints each row as it is measured, and writes all of them to `path` if there is one."""
    table = []
    for row in rows:
        table.append(row)
        print(json.dumps(row), flush=True)
    if path:
        with open(path, "w") as file:
            json.dump(table, file)


def run_by_tokens(documentation, pack, measure, tokens):
    """The command line of a benchmark whose sizes are numbers of tokens: pack BUILD FOLDER, or run
    FOLDER, which reports what measure(folder, tokens) yields."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("pack", "run"))
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--json")
    parser.add_argument("--tokens", type=lambda text: [int(number) for number in text.split(",")], default=tokens)
    options = parser.parse_args()
    if options.command == "pack":
        pack(*options.folders)
    else:
        report(measure(options.folders[0], options.tokens), options.json)


def measure(folder, columns_of, rows_of, compiled_columns):
    import torch
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for kind in KINDS:
        for columns in columns_of:
            for rows in rows_of:
                row = {"kind": kind, "rows": rows, "columns": columns, "bytes": bytes_of(kind, rows, columns)}
                row.update(time_ours(folder, kind, rows, columns))
                if kind.endswith(("bf16", "fp8_row")) and columns in compiled_columns:
                    x = torch.randn(rows, columns, device="cuda").bfloat16()
                    row["compiled"] = time_torch(compiled_norm(kind, torch), [(x, x[0].contiguous(), x.clone())], flush,
                                                 torch)
                yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("pack", "run"))
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--json")
    numbers = lambda text: [int(number) for number in text.split(",") if number]
    parser.add_argument("--rows", type=numbers, default=ROWS)
    parser.add_argument("--columns", type=numbers, default=COLUMNS)
    parser.add_argument("--compiled", type=numbers, default=(4096, 16384), help="columns that torch.compile is timed with")
    options = parser.parse_args()
    if options.command == "pack":
        pack(*options.folders)
    else:
        report(measure(options.folders[0], options.columns, options.rows, options.compiled), options.json)


if __name__ == "__main__":
    main()
