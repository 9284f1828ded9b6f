#!/usr/bin/env python3
"""Limits of attention over caches: twins of its kernels that only load, and the kernels with so
few keys that each warp has one step.

  benchmarks/micro/cache_twins.py pack BUILD FOLDER     compiles programs and twins for sm_90a
  benchmarks/micro/cache_twins.py run FOLDER [--json=FILE]

`run` needs a Hopper GPU and PyTorch. A line of JSON for each cell of cached_attention.py that has a
kernel of warps, and for latent caches, has microseconds of the kernel, of the twin with the same
grid and addresses, and of a copy of the cache. `limit` is the time of the loads, and what one step
takes beyond its loads: launch, the latency of a step, and merges. Cells take turns as there.
"""
import ctypes
import dataclasses
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cached_attention  # noqa: E402
import kit  # noqa: E402
import latent_attention  # noqa: E402

SOURCE = "cache_twins.cu"
PLAN = "{{fp4.plan = #fp4.plan<warp_attention, threads = {}, k_slices = {}, ctas_per_sm = {}, strip = {}>}}"
LATENT = tuple(("bf16", heads, *size) for heads in (16, 128) for size in ((1, 131072), (16, 4096), (64, 1024), (64, 4096), (128, 4096))) + (
    ("fp8", 16, 64, 4096), ("fp8", 16, 128, 4096))
RINGS = {"bf16": 2 * 64 * 1152, "fp8": 4 * 64 * 576}  # bytes of all stages
BARRIERS = 64  # bytes behind them
HEADS_OF_KEYS = 8


def planned(build, text, folder):
    """The words of the plan that the compiler gives the first operation of a program."""
    path = os.path.join(folder, "planned.mlir")
    pathlib.Path(path).write_text(text)
    command = [os.path.join(build, "bin", "fp4-runner"), path, "--target=sm_90a", "--emit=mlir", "--compile-to=planned"]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    os.remove(path)
    return re.search(r"#fp4.plan<(.*?)>", found)[1]


def number_in(plan, name):
    found = re.search(rf"\b{name} = (\d+)", plan)
    return int(found[1]) if found else 1


def one_step(cell, shape):
    """The cell with one step of 16 keys for each warp."""
    threads, parts, _, strip = shape
    return dataclasses.replace(cell, keys=16 * parts * (threads // 32 // strip))


def pack(build, folder):
    kit.begin(folder, __file__, cached_attention.__file__, latent_attention.__file__,
              *(os.path.join(kit.ROOT, "benchmarks", name) for name in ("attention.py", "flash_attention_3.py")))
    kit.copy_package(build, folder)
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), SOURCE)
    subprocess.run(["nvcc", "-cubin", "-arch=sm_90a", "-O3", "-std=c++17", source, "-o", os.path.join(folder, "twins.cubin")],
                   check=True)
    programs, shapes = [], {}
    for cell in cached_attention.cells():
        plan = planned(build, cell.text(), folder)
        if not plan.startswith("warp_attention"):
            continue
        shapes[cell.name] = shape = [number_in(plan, x) for x in ("threads", "k_slices", "ctas_per_sm", "strip")]
        programs += [(cell.name, cell.text()), (cell.name + "_one", one_step(cell, shape).text(PLAN.format(*shape)))]
    for cell in LATENT:
        text, name = latent_attention.decode_text(*cell), latent_attention.decode_name(*cell)
        shapes[name] = number_in(planned(build, text, folder), "k_slices")
        programs.append((name, text))
    kit.compile_programs(build, folder, programs)
    pathlib.Path(folder, "shapes.json").write_text(json.dumps(shapes))


class Twins:
    """The kernels of cache_twins.cu."""

    def __init__(self, folder, torch):
        self.torch, self.driver = torch, ctypes.CDLL("libcuda.so.1")
        self.sink = torch.zeros(4, dtype=torch.int32, device="cuda")
        self.module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(self.module), pathlib.Path(folder, "twins.cubin").read_bytes())

    def call(self, name, *arguments):
        if error := getattr(self.driver, name)(*arguments):
            raise RuntimeError(f"{name} has the error {error}")

    def launch(self, name, grid, threads, arguments, shared=0):
        kernel = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(kernel), self.module, name.encode())
        if shared:
            self.call("cuFuncSetAttribute", kernel, 8, shared)  # the most dynamic shared memory
        buffer = ctypes.create_string_buffer(arguments, len(arguments))
        pointers = (ctypes.c_void_p * 1)(ctypes.cast(buffer, ctypes.c_void_p))
        stream = ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream)
        self.call("cuLaunchKernel", kernel, grid, 1, 1, threads, 1, 1, shared, stream, pointers, None)

    def keys(self, cell, operands, shape):
        """A function of the number of a cache that loads its keys and values."""
        threads, parts, ctas, strip = shape
        name, grid = f"{cell.format}_{cell.elements}_{threads // 32}_{ctas}", cell.batches * (HEADS_OF_KEYS // strip) * parts

        def run(number):
            pointers = [x.data_ptr() for x in operands.caches[number]]
            pages = operands.pages.data_ptr() if cell.page else 0
            pointers = [*pointers, 0, 0][:4] + [pages, self.sink.data_ptr()]
            self.launch(name, grid, threads, struct.pack("<6Q5i4x", *pointers, cell.keys, parts, strip, HEADS_OF_KEYS, cell.page))
        return run

    def latent(self, cell, form, size, slices, tiles):
        batches, keys = size
        grid = min(self.torch.cuda.get_device_properties(0).multi_processor_count, batches * slices * tiles)

        def run(number):
            arguments = struct.pack("<2Q4i", cell.caches[number].data_ptr(), cell.pages.data_ptr(), batches,
                                    keys // latent_attention.PAGE, slices, tiles)
            self.launch(f"latent_{form}", grid, 384, arguments, RINGS[form] + BARRIERS)
        return run


def copy_of(caches, torch):
    """A function that copies all tensors of a cache, given its number."""
    copies = [torch.empty_like(x) for x in caches[0]]

    def run(number):
        for to, source in zip(copies, caches[number]):
            to.view(torch.uint8).copy_(source.view(torch.uint8))
    return run


def checked(folder, library, operands, torch):
    """The program `library` as a function of the number of a cache, once its result is right."""
    import fp4
    program, want = fp4.load(os.path.join(folder, library + ".so")), cached_attention.expected(operands, torch)
    error = ((program(*operands.arguments(1))[0].float() - want).abs().max() / want.abs().max()).item()
    if not error < 0.02:
        raise RuntimeError(f"{library} differs by {error} from attention in f32")
    return lambda number: program(*operands.arguments(number))


def measure_keys(folder, cell, shape, twins, torch):
    row = {"cell": cell.name, "bytes": cell.bytes, "shape": shape}
    for name, some, library in (("all", cell, cell.name), ("one", one_step(cell, shape), cell.name + "_one")):
        torch.cuda.empty_cache()
        operands = cached_attention.Operands(some, torch)
        functions = {"ours": checked(folder, library, operands, torch), "loads": twins.keys(some, operands, shape),
                     "copy": copy_of(operands.caches, torch)}
        row[name] = cached_attention.time_all(functions, len(operands.caches), torch)
        del operands, functions
    row["limit"] = row["all"]["loads"] + row["one"]["ours"] - row["one"]["loads"]
    for name, time in (("rate", row["all"]["ours"]), ("limit_rate", row["limit"]), ("loads_rate", row["all"]["loads"])):
        row[name] = row["all"]["copy"] / 2 / time  # a copy reads and writes
    return row


def measure_latent(folder, parts, slices, twins, torch):
    import fp4
    form, heads, *size = parts
    torch.cuda.empty_cache()
    cell = latent_attention.Decode(form, heads, *size, torch)
    program = fp4.load(os.path.join(folder, latent_attention.decode_name(*parts) + ".so"))
    functions = {"ours": lambda number: program(cell.query, cell.caches[number], cell.lengths, cell.pages)}
    error = cell.difference(functions["ours"](1), torch)
    if not error < latent_attention.MOST_DIFFERENCE[form]:
        raise RuntimeError(f"{parts} differs by {error} from attention in f32")
    functions["loads"] = twins.latent(cell, form, size, slices, tiles=-(-heads // 64))
    functions["copy"] = copy_of([(x,) for x in cell.caches], torch)
    times = cached_attention.time_all(functions, len(cell.caches), torch)
    return {"latent": parts, "slices": slices, "all": times, "rate": times["copy"] / 2 / times["ours"],
            "loads_rate": times["copy"] / 2 / times["loads"]}


def measure(folder):
    torch = kit.open_package(folder)
    twins, shapes = Twins(folder, torch), json.loads(pathlib.Path(folder, "shapes.json").read_text())
    for cell in cached_attention.cells():
        if cell.name in shapes:
            yield measure_keys(folder, cell, shapes[cell.name], twins, torch)
    for parts in LATENT:
        yield measure_latent(folder, parts, shapes[latent_attention.decode_name(*parts)], twins, torch)


if __name__ == "__main__":
    kit.main(__doc__, pack, measure)
