#!/usr/bin/env python3
"""Norms and what follows them, by rows, beside a copy and torch.compile.

  benchmarks/norms.py pack BUILD FOLDER [--kinds=... --columns=...]     compiles for sm_90a
  benchmarks/norms.py run FOLDER [--json=FILE] [--kinds=... --columns=... --rows=... --compiled=...]

`run` needs a Hopper GPU and PyTorch. Each program is verified with a plan for few rows and one for
many, and timed with a cold L2 beside its twin without arithmetic and a copy of as many bytes, and
then what torch.compile makes of the same function. A line of JSON for each program and shape has
microseconds; FILE has each line as soon as it is measured.
"""
import concurrent.futures
import json
import os
import statistics
import struct
import subprocess
import sys

import kit
import neighbour_chains
import norm_peers

#: What a folder needs to run this module.
FILES = (__file__, neighbour_chains.__file__, norm_peers.__file__)
#: Rows up to which fp4-run times kernels, which it also verifies: more take the reference long.
FEW = 132
#: Rows with which fp4-run verifies a plan for more than few.
VERIFIED = 200
#: First and last rows of a matrix, whole tiles of scales, that are computed again by that plan.
AGAIN = 1280
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
    """The MLIR of a kind: [add_]rms, layer or none, and what follows: bf16, nvfp4, mxfp4, mxfp8,
    fp8_row, fp8_block (a scale for 128 elements), or nvfp4 behind the amax of each row (token) or
    of all rows (amax). A kind that ends with "_apart" has a kernel for the amax of rows."""
    norm, after = kind.rsplit("-", 1)
    x = f"tensor<?x{columns}xbf16>"
    named = '{fp4.dims = ["M", ""]}'
    arguments = [f"%x: {x} {named}"] + [f"%w: tensor<{columns}xbf16>"] * (norm != "none")
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
        arguments.append(f"%r: {x} {named}")
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
    elif after in F32_SCALES:
        codes, scales = f"tensor<?x{columns}xf8E4M3FN>", f"tensor<?x{1 if after == 'fp8_row' else columns // 128}xf32>"
        block = f", block = array<i64: 1, {columns}>" if after == "fp8_row" else ""
        body += f"""  %q, %s = fp4.quantize {y} {{format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>{block}}}
      : ({x}) -> ({codes}, {scales})
"""
        results, returned = [*results, codes, scales], [*returned, "%q", "%s"]
    elif after in MICROSCALED:
        format, recipe, element = MICROSCALED[after]
        codes, scales = f"tensor<?x{columns}x{element}>", f"tensor<?x{columns // 32}xf8E8M0FNU>"
        tiled = scales.replace(">", ", #fp4.scale_layout<tiled_128x4>>")
        body += f"""  %q, %s = fp4.quantize {y} {{format = #fp4.format<{format}>, recipe = #fp4.recipe<{recipe}>}} : ({x}) -> ({codes}, {scales})
  %t = fp4.swizzle_scales %s : {scales} -> {tiled}
"""
        results, returned = [*results, codes, tiled], [*returned, "%q", "%t"]
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


#: Formats whose scales are fp32, and those with a scale for 32 elements: format, recipe, element.
F32_SCALES = ("fp8_row", "fp8_block")
MICROSCALED = {"mxfp4": ("mxfp4", "ocp_floor", "f4E2M1FN"), "mxfp8": ("mxfp8_e4m3", "mxfp8_e4m3_floor", "f8E4M3FN")}
AFTER = ("bf16", "nvfp4", "mxfp4", "mxfp8", *F32_SCALES)
KINDS = tuple(f"{norm}-{after}" for norm in ("rms", "layer", "add_rms") for after in AFTER)
#: Kinds with amaxes that are not given.
OF_AMAXES = ("rms-amax", "rms-token", "none-token", "none-token_apart")


def bytes_of(kind, rows, columns):
    """Bytes that the program reads and writes."""
    norm, after = kind.rsplit("-", 1)
    elements = rows * columns
    written = {"bf16": 2 * elements, "fp8_row": elements + 4 * rows, "fp8_block": elements + elements // 32,
               "mxfp8": elements + elements // 32, "mxfp4": elements // 2 + elements // 32}
    return (2 * elements + (4 * elements if norm == "add_rms" else 0) +
            written.get(after, elements // 2 + elements // 16))


#: An amax that the results of norms of Gaussian numbers hardly exceed: elements of a block that
#: does saturate, and are quantized by a slower path.
AMAX = norm_peers.AMAX


def save_amax(folder):
    """Writes the amax that programs of kind nvfp4 have as their last argument."""
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (), }".ljust(117) + "\n"
    with open(os.path.join(folder, "amax.npy"), "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<f", AMAX))


def pack(build, folder, kinds, columns_of):
    kit.begin(folder, os.path.join(build, "bin", "fp4-run"), *FILES)
    kit.copy_package(build, folder)
    save_amax(folder)
    kit.write_revision(folder)
    programs = [(f"{kind}_{columns}", program(kind, columns)) for kind in kinds for columns in columns_of]
    kit.compile_programs(build, folder, programs)
    kit.compile_programs(build, folder, [(f"{name}_twin", text) for name, text in programs], ["--no-arithmetic"])


def fp4_run(folder, kind, rows, columns, *options):
    if "nvfp4" in kind:
        number = 3 if kind.startswith("add_rms") else 2
        options = (*options, f"--input=a{number}={os.path.join(folder, 'amax.npy')}")
    return run_library(folder, f"{kind}_{columns}", rows, *options)


def run_library(folder, name, rows, *options):
    library = os.path.join(folder, f"{name}.so")
    done = subprocess.run([os.path.join(folder, "fp4-run"), library, "--device=cuda", f"--shape={rows}", "--json",
                           *options], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {library} with {rows} rows: {done.stderr or done.stdout}")
    return json.loads(done.stdout)


def time_kernels(folder, kind, rows, columns, *options):
    """Microseconds of the kernels of the program, whose results were verified, of a copy of as many
    bytes as the first one moves, None where it has none, and the number of kernels."""
    return timed(fp4_run(folder, kind, rows, columns, "--benchmark", *options))


def timed(report):
    entries = report["benchmark"]["entries"]
    kernels = [entry for entry in entries if entry["name"] != "program"]
    return {"ours": 1e3 * sum(kernel["timing"]["median_ms"] for kernel in kernels),
            "copy": 1e3 * kernels[0]["copy"]["median_ms"] if "copy" in kernels[0] else None, "kernels": len(kernels)}


def time_torch(function, sets, flush, torch):
    """Median microseconds with a cold L2."""
    for arguments in sets[:1]:
        for _ in range(3):
            function(*arguments)
    times = []
    for i in range(20):
        flush.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        function(*sets[i % len(sets)])
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times)


def report(rows, path):
    """Prints each row as it is measured, and writes it to `path` if there is one."""
    with open(path or os.devnull, "w") as file:
        for row in rows:
            print(json.dumps(row), flush=True)
            print(json.dumps(row), file=file, flush=True)


def run_by_tokens(documentation, pack, measure, tokens):
    """The command line of a benchmark whose sizes are numbers of tokens: pack BUILD FOLDER, or run
    FOLDER, which reports what measure(folder, tokens) yields."""
    options = kit.options_of(documentation, tokens=(kit.numbers, tokens))
    if options.command == "pack":
        pack(*options.folders)
    else:
        report(measure(options.folders[0], options.tokens), options.json)


def verify(folder, kinds, columns_of):
    """Has fp4-run compare the results of the programs with the reference, with many rows."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(fp4_run, folder, kind, VERIFIED, columns) for kind in kinds for columns in columns_of]:
            done.result()


def time_few(folder, kind, rows, columns):
    found = time_kernels(folder, kind, rows, columns)
    return {"ours": found["ours"], **({"copy": found["copy"]} if found["kernels"] == 1 else {})}


def compare_again(program, arguments, results, rows, torch):
    """Compares the first and last rows of results with those of a program of AGAIN rows, whose plan
    was verified: that for more rows may be another."""
    bytes_of_rows = lambda result, part: result.view(torch.uint8).reshape(-1).view(rows, -1)[part].reshape(-1)
    for part in (slice(0, AGAIN), slice(rows - AGAIN, rows)):
        again = program(*(a[part] if a.dim() == 2 else a for a in arguments))
        for mine, whole in zip(listed(again), listed(results)):
            if not torch.equal(mine.view(torch.uint8).reshape(-1), bytes_of_rows(whole, part)):
                sys.exit(f"error: rows {part} of {rows} are not those of a matrix of {AGAIN}")


def listed(results):
    return results if isinstance(results, (tuple, list)) else [results]


def time_many(program, twin, kind, rows, columns, flush, torch):
    """Times a program on tensors of torch, its twin without arithmetic, and a copy of as many
    bytes."""
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    arguments = [x, *([x[0].contiguous()] if not kind.startswith("none") else [])]
    arguments += [x.flip(0)] if kind.startswith("add_rms") else []
    arguments += [torch.tensor(AMAX, device="cuda")] if kind.endswith("nvfp4") else []
    results = program(*arguments)
    compare_again(program, arguments, results, rows, torch)
    half = torch.empty(bytes_of(kind, rows, columns) // 2, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(half)
    return {"ours": time_torch(lambda: program(*arguments, out=results), [()], flush, torch),
            "twin": time_torch(lambda: twin(*arguments, out=results), [()], flush, torch),
            "copy": time_torch(lambda: other.copy_(half), [()], flush, torch)}


def measure(folder, kinds, columns_of, rows_of, compiled_columns):
    if any(rows > FEW for rows in rows_of):
        verify(folder, kinds, columns_of)
    torch = kit.open_package(folder)
    import fp4
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for rows in rows_of:
        for kind in kinds:
            for columns in columns_of:
                row = {"kind": kind, "rows": rows, "columns": columns, "bytes": bytes_of(kind, rows, columns)}
                if rows <= FEW:
                    row.update(time_few(folder, kind, rows, columns))
                else:
                    library, twin = (fp4.load(os.path.join(folder, f"{kind}_{columns}{end}.so")) for end in ("", "_twin"))
                    row.update(time_many(library, twin, kind, rows, columns, flush, torch))
                    torch.cuda.empty_cache()
                yield row
    for columns in compiled_columns:
        for kind in kinds:
            if kind in OF_AMAXES:
                continue
            function = norm_peers.compiled(kind, torch)
            for rows in rows_of:
                arguments = norm_peers.arguments(kind, rows, columns, torch)
                yield {"kind": kind, "rows": rows, "columns": columns,
                       "compiled": time_torch(function, [arguments], flush, torch)}


def main():
    """--compiled has the columns that torch.compile is timed with."""
    options = kit.options_of(__doc__, kinds=(kit.names, KINDS), rows=(kit.numbers, neighbour_chains.ROWS),
                             columns=(kit.numbers, neighbour_chains.COLUMNS),
                             compiled=(kit.numbers, neighbour_chains.COMPILED[1:]))
    if options.command == "pack":
        pack(*options.folders, options.kinds, options.columns)
    else:
        report(measure(options.folders[0], options.kinds, options.columns, options.rows, options.compiled), options.json)


if __name__ == "__main__":
    main()
