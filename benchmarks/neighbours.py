#!/usr/bin/env python3
"""Gates, rotations, caches, gathers, sums, gradients and losses, beside a copy and torch.compile.

  benchmarks/neighbours.py pack BUILD FOLDER [--kinds=... --columns=...]     compiles for sm_90a
  benchmarks/neighbours.py run FOLDER [--json=FILE] [--kinds=... --cells=ROWSxCOLUMNS,...]
      [--compiled=ROWSxCOLUMNS]

Kinds are the names of KINDS (neighbour_chains.py). `pack` needs PyTorch, and `run` also a Hopper
GPU. Each program equals the reference with 200 rows, and with more those of 1280, before it is
timed with a cold L2 beside its twin without arithmetic and a copy of as many bytes; and
neighbour_peers.py times kernels of other libraries beside it. A line of JSON for each cell has
microseconds.
"""
import concurrent.futures
import functools
import os
import statistics
import subprocess
import sys

import kit
import neighbour_chains
import neighbour_peers
import norms

#: Bytes that are more than an L2 cache has.
FLUSHED = 120 << 20
#: What a folder needs to run this module.
FILES = (__file__, neighbour_peers.__file__, *norms.FILES)


def pack(build, folder, kinds, columns_of):
    kit.begin(folder, os.path.join(build, "bin", "fp4-run"), *FILES)
    kit.copy_package(build, folder)
    norms.save_amax(folder)
    kit.write_revision(folder)
    chains = [(f"{kind}_{columns}", neighbour_chains.KINDS[kind], columns) for kind in kinds for columns in columns_of]
    kit.compile_programs(build, folder, [(name, chain.text(columns)) for name, chain, columns in chains])
    kit.compile_programs(build, folder, [(f"{name}_twin", chain.text(columns)) for name, chain, columns in chains],
                         ["--no-arithmetic"])
    kit.compile_programs(build, folder, [(f"{name}_few", chain.few(columns)) for name, chain, columns in chains if chain.few])


def run_few(folder, kind, rows, columns, *options):
    """Has fp4-run compare the results of a program with the reference."""
    chain = neighbour_chains.KINDS[kind]
    return norms.run_library(folder, f"{kind}_{columns}" + ("_few" if chain.few else ""), rows, *options_of(folder, kind),
                             *options)


def options_of(folder, kind):
    """The sizes and the amax that fp4-run cannot guess."""
    options = [f"--dim={size}" for size in neighbour_chains.KINDS[kind].sizes]
    if "nvfp4" in kind:
        options.append(f"--input=amax={os.path.join(folder, 'amax.npy')}")
    return options


def verify(folder, kinds, cells):
    """Has fp4-run compare the results of the programs with the reference, with few rows or with
    norms.VERIFIED; returns the kinds whose results are equal, and names others."""
    found = {}
    shapes = {(rows if rows <= norms.FEW else norms.VERIFIED, columns) for rows, columns in cells}
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        tasks = {(kind, shape): pool.submit(run_few, folder, kind, *shape) for kind in kinds for shape in shapes}
        for (kind, shape), task in tasks.items():
            error = task.exception()
            if error:
                print(error, file=sys.stderr, flush=True)
                found[kind] = error
    return [kind for kind in kinds if kind not in found]


def expect_equal(ours, again, what, torch):
    if not torch.equal(ours.contiguous().view(torch.uint8), again.contiguous().view(torch.uint8)):
        raise ValueError(f"{what} are not those of a matrix of {norms.AGAIN}")


def part_of(result, part, rows, torch):
    """Rows of a result that has some for each row of the argument. Scales may be tiles."""
    return result.view(torch.uint8).reshape(rows, -1)[part].reshape(-1)


def compare_again(program, chain, arguments, results, rows, what, torch):
    """Compares the first and last rows of results with those of a program of AGAIN rows, whose plan
    was verified: that for more rows may be another. Caches hold the rows that slots name."""
    parts = [slice(0, norms.AGAIN), slice(rows - norms.AGAIN, rows)]
    for part in parts[:1] if "random" in what else parts: # random words depend on the row
        given = [value[part].contiguous() if has_rows else value for value, has_rows in arguments]
        again = norms.listed(program(*given))
        for mine, whole in zip(again, norms.listed(results)):
            if chain.few:
                slots = given[1]
                expect_equal(whole.view(torch.uint8)[slots], mine.view(torch.uint8)[slots], f"{what}: rows {part}", torch)
            else:
                expect_equal(part_of(whole, part, rows, torch), mine.view(torch.uint8).reshape(-1), f"{what}: rows {part}", torch)


def load(folder, name):
    import fp4
    return fp4.load(os.path.join(folder, f"{name}.so"))


def copied(kind, rows, columns, torch):
    """Two tensors, which have as many bytes together as the program moves."""
    half = torch.empty(int(neighbour_chains.KINDS[kind].bytes(columns) * rows) // 2, dtype=torch.uint8, device="cuda")
    return half, torch.empty_like(half)


def time_graph(calls):
    """Microseconds of a call in a graph of these calls, the median of 20."""
    graph = kit.captured(lambda: [call() for call in calls], warm=1)
    return statistics.median(kit.microseconds_of(graph.replay) for _ in range(20)) / len(calls)


def time_few(folder, kind, rows, columns, torch):
    """Times calls on so many sets of tensors that none is in the L2 cache, as nodes of a graph."""
    program, chain = load(folder, f"{kind}_{columns}"), neighbour_chains.KINDS[kind]
    sets = range(max(10, FLUSHED // int(chain.bytes(columns) * rows) + 1))
    given = [[value for value, _ in chain.arguments(rows, columns, torch)] for _ in sets]
    results = [program(*given[0])] * len(sets) if chain.few else [program(*values) for values in given]
    copies = [copied(kind, rows, columns, torch) for _ in sets]
    return {"ours": time_graph([functools.partial(program, *values, out=out) for values, out in zip(given, results)]),
            "copy": time_graph([functools.partial(other.copy_, half) for half, other in copies])}


def time_many(folder, flush, kind, rows, columns, torch):
    """Times a program on tensors of torch, and a copy of as many bytes."""
    program, chain = load(folder, f"{kind}_{columns}"), neighbour_chains.KINDS[kind]
    arguments = chain.arguments(rows, columns, torch)
    values = [value for value, _ in arguments]
    results = program(*values)
    compare_again(program, chain, arguments, results, rows, f"{kind} of {rows} x {columns}", torch)
    half, other = copied(kind, rows, columns, torch)
    twin = load(folder, f"{kind}_{columns}_twin")
    return {"ours": norms.time_torch(lambda: program(*values, out=results), [()], flush, torch),
            "twin": norms.time_torch(lambda: twin(*values, out=results), [()], flush, torch),
            "copy": norms.time_torch(lambda: other.copy_(half), [()], flush, torch)}


def measure(folder, kinds, cells, compiled, processes):
    children = compile_together(folder, kinds, compiled, processes) if processes else []
    equal = verify(folder, kinds, cells)
    for child in children:
        child.wait()
    torch = kit.open_package(folder)
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for rows, columns in cells:
        for kind in equal:
            time = functools.partial(time_few, folder) if rows <= norms.FEW else functools.partial(time_many, folder, flush)
            try:
                yield {"kind": kind, "rows": rows, "columns": columns, **time(kind, rows, columns, torch)}
            except Exception as error:
                yield {"kind": kind, "rows": rows, "columns": columns, "error": str(error)[:500]}
            torch.cuda.empty_cache()
    for rows, columns in compiled:
        for kind in kinds:
            if neighbour_chains.KINDS[kind].function:
                yield {"kind": kind, "rows": rows, "columns": columns,
                       "compiled": time_compiled(kind, rows, columns, flush, torch)}
    if equal != list(kinds):
        sys.exit("error: kinds differ from the reference")


def time_compiled(kind, rows, columns, flush, torch):
    chain = neighbour_chains.KINDS[kind]
    torch._dynamo.reset()
    function = torch.compile(chain.function(kind.rpartition("-")[2], torch), dynamic=False)
    arguments = [value for value, _ in chain.arguments(rows, columns, torch)]
    return norms.time_torch(function, [arguments], flush, torch)


def compile_together(folder, kinds, compiled, processes):
    """Starts processes that fill the cache of torch.compile: times follow when all have ended."""
    named = [kind for kind in kinds if neighbour_chains.KINDS[kind].function]
    cells = ",".join(f"{rows}x{columns}" for rows, columns in compiled)
    return [subprocess.Popen([sys.executable, __file__, "run", folder, "--cells=", f"--compiled={cells}", "--processes=0",
                              f"--kinds={','.join(named[first::processes])}"], stdout=subprocess.DEVNULL)
            for first in range(min(processes, len(named)) if compiled else 0)]


def main():
    """--processes compile for torch.compile before anything is timed."""
    options = kit.options_of(__doc__, kinds=(kit.names, list(neighbour_chains.KINDS)), columns=(kit.numbers, neighbour_chains.COLUMNS),
                             cells=(kit.shapes, neighbour_chains.CELLS), compiled=(kit.shapes, [neighbour_chains.COMPILED]),
                             processes=(int, 8))
    if options.command == "pack":
        pack(*options.folders, options.kinds, options.columns)
    else:
        norms.report(measure(options.folders[0], options.kinds, options.cells, options.compiled, options.processes), options.json)


if __name__ == "__main__":
    main()
