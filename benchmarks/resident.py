#!/usr/bin/env python3
"""Row kernels whose rows the L2 cache has: what their arithmetic takes without device memory.

  benchmarks/resident.py run FOLDER [--json=FILE] [--kinds=... --cells=ROWSxCOLUMNS,...]

FOLDER is one of norms.py or neighbours.py, whose programs run as they are. Tensors are mapped so
that their addresses differ and their memory repeats after PERIOD bytes. A line of JSON for each
cell has microseconds, of a kernel that is queued behind another.
"""
import ctypes
import os
import statistics
import sys

import kit
import neighbour_chains
import norms

PERIOD = 4 << 20
KINDS = [f"{norm}-{after}" for norm in ("rms", "layer") for after in norms.AFTER if after != "bf16"]
CELLS = [(rows, columns) for columns in (2048, 8192) for rows in (4096, 16384, 65536)]


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
            sys.exit(f"error: {function} gave CUresult {code}")

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


def time_resident(program, arguments, memories, torch):
    """The median of 12 calls, each behind a kernel that waits while the host queues it."""
    results = program(*arguments)
    mine = [repeated(value, memories, torch) for value in arguments]
    out = [repeated(value, memories, torch) for value in norms.listed(results)]
    out = tuple(out) if isinstance(results, (tuple, list)) else out[0]
    times = []
    for _ in range(14):
        torch.cuda._sleep(150000)
        times.append(kit.microseconds_of(lambda: program(*mine, out=out)))
    return statistics.median(times[2:])


def measure(folder, kinds, cells):
    torch = kit.open_package(folder)
    import fp4
    for rows, columns in cells:
        for kind in kinds:
            memories = []
            program = fp4.load(os.path.join(folder, f"{kind}_{columns}.so"))
            found = time_resident(program, arguments_of(kind, rows, columns, torch), memories, torch)
            torch.cuda.synchronize()
            for memory in memories:
                memory.free()
            torch.cuda.empty_cache()
            yield {"kind": kind, "rows": rows, "columns": columns, "resident": found}


def main():
    options = kit.options_of(__doc__, kinds=(kit.names, KINDS), cells=(kit.shapes, CELLS))
    if options.command == "pack":
        sys.exit("error: norms.py and neighbours.py pack")
    norms.report(measure(os.path.abspath(options.folders[0]), options.kinds, options.cells), options.json)


if __name__ == "__main__":
    main()
