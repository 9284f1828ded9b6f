#!/usr/bin/env python3
"""Row kernels whose rows the L2 cache has: what their arithmetic takes without device memory.

  benchmarks/resident.py run FOLDER [--json=FILE] [--of=FILE | --kinds=... --cells=ROWSxCOLUMNS,...]

FOLDER is one of norms.py or neighbours.py, whose programs and twins run as they are. FILE has
lines of one of them, whose cells below AT % of a copy run here. Tensors are mapped so that their
addresses differ and their memory repeats after PERIOD bytes. A line of JSON for each cell has
microseconds, of a kernel that is queued behind another, and the rows of a wave: those of SHORT
that all SMs have at once. Lines of SHORT rows follow, also with a cold L2 (`ours` and `twin`).
"""
import ctypes
import json
import os
import pathlib
import re
import statistics
import sys

import kit
import neighbour_chains
import norms

PERIOD = 4 << 20
AT = 95
SHORT = (132, 264, 528, 1056, 2112)
#: SMs, and elements of a thread whose CTA has no row of its own.
SMS, ELEMENTS = 132, 16
KINDS = [f"{norm}-{after}" for norm in ("rms", "layer") for after in norms.AFTER if after != "bf16"]
CELLS = [(rows, columns) for columns in (2048, 8192) for rows in neighbour_chains.ROWS[1:]]


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Flags(ctypes.Structure):
    _fields_ = [("compression", ctypes.c_ubyte), ("rdma", ctypes.c_ubyte), ("usage", ctypes.c_ushort),
                ("reserved", ctypes.c_ubyte * 4)]


class Property(ctypes.Structure):
    """CUmemAllocationProp of pinned memory of device 0."""

    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location), ("win32", ctypes.c_void_p),
                ("flags", Flags)]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


class Repeated:
    """Device memory of `bytes` addresses that repeats after PERIOD."""

    def __init__(self, bytes):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.size = ctypes.c_size_t(-(-bytes // PERIOD) * PERIOD)
        self.handle, self.address = ctypes.c_uint64(), ctypes.c_uint64()
        none, period = ctypes.c_uint64(0), ctypes.c_size_t(PERIOD)
        pinned = Property(1, 0, Location(1, 0), None, Flags())
        self.call("cuMemCreate", ctypes.byref(self.handle), period, ctypes.byref(pinned), none)
        self.call("cuMemAddressReserve", ctypes.byref(self.address), self.size, ctypes.c_size_t(0), none, none)
        for at in range(0, self.size.value, PERIOD):
            self.call("cuMemMap", ctypes.c_uint64(self.address.value + at), period, ctypes.c_size_t(0), self.handle, none)
        both = Access(Location(1, 0), 3)
        self.call("cuMemSetAccess", self.address, self.size, ctypes.byref(both), ctypes.c_size_t(1))
        self.__cuda_array_interface__ = {"shape": (bytes,), "typestr": "|u1", "data": (self.address.value, False), "version": 3}

    def call(self, function, *arguments):
        code = getattr(self.cuda, function)(*arguments)
        if code:
            raise RuntimeError(f"{function} gave CUresult {code}")

    def free(self):
        self.call("cuMemUnmap", self.address, self.size)
        self.call("cuMemAddressFree", self.address, self.size)
        self.call("cuMemRelease", self.handle)


def repeated(tensor, memories, torch):
    """A tensor of the same shape, with the first elements of `tensor` again and again."""
    bytes = tensor.numel() * tensor.element_size()
    if bytes <= 2 * PERIOD:
        return tensor
    memories.append(Repeated(bytes))
    flat = torch.as_tensor(memories[-1], device="cuda")
    flat[:PERIOD].copy_(tensor.contiguous().view(torch.uint8).reshape(-1)[:PERIOD])
    return flat.view(tensor.dtype).view(tensor.shape)


def arguments_of(kind, rows, columns, torch):
    if kind in neighbour_chains.KINDS and kind not in norms.KINDS:
        return [value for value, _ in neighbour_chains.KINDS[kind].arguments(rows, columns, torch)]
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    residual = [x.flip(0)] if kind.startswith("add_rms") else []
    amax = [torch.tensor(norms.AMAX, device="cuda")] if kind.endswith("nvfp4") else []
    return [x, x[0].contiguous(), *residual, *amax]


def median_of(program, arguments, out):
    """The median of 12 calls, each behind a kernel that waits while the host queues it."""
    import torch
    times = []
    for _ in range(14):
        torch.cuda._sleep(150000)
        times.append(kit.microseconds_of(lambda: program(*arguments, out=out)))
    return statistics.median(times[2:])


def time_resident(program, twin, arguments, memories, flush, torch):
    """Microseconds of a program and of its twin without arithmetic, also with a cold L2 if there is
    something to flush it with."""
    results = program(*arguments)
    cold = {} if flush is None else {
        name: norms.time_torch(lambda: run(*arguments, out=results), [()], flush, torch)
        for name, run in (("ours", program), ("twin", twin))}
    mine = [repeated(value, memories, torch) for value in arguments]
    out = [repeated(value, memories, torch) for value in norms.listed(results)]
    out = tuple(out) if isinstance(results, (tuple, list)) else out[0]
    return {**cold, "resident": median_of(program, mine, out), "resident_twin": median_of(twin, mine, out)}


def cell_of(folder, kind, rows, columns, flush, torch):
    import fp4
    memories = []
    programs = (fp4.load(os.path.join(folder, f"{kind}_{columns}{end}.so")) for end in ("", "_twin"))
    try:
        return time_resident(*programs, arguments_of(kind, rows, columns, torch), memories, flush, torch)
    except Exception as error:
        return {"error": str(error)[:500]}
    finally:
        torch.cuda.synchronize()
        for memory in memories:
            memory.free()
        torch.cuda.empty_cache()


def ctas_of(threads, registers, shared):
    """CTAs that an SM has at once."""
    return min(2048 // threads, 65536 // (-(-registers // 8) * 8 * threads), 233472 // (shared + 1024), 32)


def wave_of(folder, kind, columns):
    """The most rows of SHORT that all SMs have at once. The second kernel of a program is that of
    rows up to norms.FEW, and a third one has rows between these and the first one's."""
    library = pathlib.Path(folder, f"{kind}_{columns}.so").read_bytes()
    kernels = json.loads(re.search(rb'"kernels":(\[.*?\]),"schema"', library)[1])
    threads = [int(number) for number in re.findall(rb"\.reqntid (\d+)", library)]
    ctas = [ctas_of(number, kernel["registers"], kernel["shared_bytes"]) for number, kernel in zip(threads, kernels)]
    has_rows = ("row" in kernels[0]["module"] or kind.endswith("fp8_row")) and "rope" not in kind
    rows = SMS * min(ctas[0], ctas[2] if len(ctas) > 2 else ctas[0])
    return max(number for number in SHORT if number <= max(SMS, rows if has_rows else rows * threads[0] * ELEMENTS // columns))


def below(path):
    """Cells of a file of norms.py or neighbours.py: kind, rows, columns."""
    lines = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    return [(line["kind"], line["rows"], line["columns"]) for line in lines
            if line["rows"] > norms.FEW and "ours" in line and 100 * line["copy"] < AT * line["ours"]]


def measure(folder, cells):
    torch = kit.open_package(folder)
    short = dict.fromkeys((kind, rows, columns) for kind, _, columns in cells for rows in SHORT)
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for cell, cold in [*((cell, None) for cell in cells), *((cell, flush) for cell in short)]:
        kind, _, columns = cell
        yield {**dict(zip(("kind", "rows", "columns"), cell)), "wave": wave_of(folder, kind, columns),
               **cell_of(folder, *cell, cold, torch)}


def main():
    options = kit.options_of(__doc__, kinds=(kit.names, KINDS), cells=(kit.shapes, CELLS), of=(below, None))
    if options.command == "pack":
        sys.exit("error: norms.py and neighbours.py pack")
    cells = options.of or [(kind, *cell) for cell in options.cells for kind in options.kinds]
    norms.report(measure(os.path.abspath(options.folders[0]), cells), options.json)


if __name__ == "__main__":
    main()
