#!/usr/bin/env python3
"""Runs a kernel of this folder through the CUDA driver, as it is or with one of its bugs.

  fp4-sim run --device h200 -- python3 run.py ring.ptx           the kernel that is right
  fp4-sim run --device h200 -- python3 run.py ring.ptx lapped    with a bug of the file
  python3 run.py ring.ptx --list                                 the bugs

Without fp4-sim it runs on the GPU of the machine, where a kernel with a bug may hang or pass.
"""
import argparse
import ctypes
import re
import sys
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
MARKER = re.compile(r"// bug ([\w-]+): ((?:(?!// bug ).)*)")
RUN = re.compile(r"^// run: grid (\d+) cluster (\d+) block (\d+)(?: entry (\w+))?( dependent)?$", re.M)
CLUSTER, OVERLAP = 4, 6  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, _PROGRAMMATIC_STREAM_SERIALIZATION
BYTES = 1024


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    _fields_ = [("sizes", ctypes.c_uint * 7), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint)]


def bugs(text):
    return list(dict.fromkeys(name for name, _ in MARKER.findall(text)))


def with_bug(text, bug):
    """The text in which each line of the bug is left out, or replaced by what stands behind its =>."""
    lines = []
    for line in text.splitlines():
        mine = [rest for name, rest in MARKER.findall(line) if name == bug]
        lines.append(mine[0].partition("=>")[2].strip() if mine else line)
    return "\n".join(lines) + "\n"


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        if code := getattr(self.library, name)(*arguments):
            sys.exit(f"error: {name} returns {code}")

    def buffer(self, fill):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(BYTES))
        if fill is not None:
            self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(fill), ctypes.c_size_t(BYTES))
        return address

    def checksum(self, address):
        host = ctypes.create_string_buffer(BYTES)
        self.call("cuMemcpyDtoH_v2", host, address, ctypes.c_size_t(BYTES))
        return zlib.crc32(host.raw)

    def launch(self, module, run, buffers):
        grid, cluster, block, entry, dependent = run
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, (entry or "test").encode())
        attributes = [Attribute(CLUSTER, 0, (ctypes.c_uint * 16)(int(cluster), 1, 1))]
        if dependent:
            attributes.append(Attribute(OVERLAP, 0, (ctypes.c_uint * 16)(1)))
        config = Config((ctypes.c_uint * 7)(int(grid), 1, 1, int(block), 1, 1, 0), None,
                        (Attribute * len(attributes))(*attributes), len(attributes))
        values = (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(buffer) for buffer in buffers))
        self.call("cuLaunchKernelEx", ctypes.byref(config), function, values, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a .ptx of this folder")
    parser.add_argument("bug", nargs="?", help="the bug, default: none")
    parser.add_argument("--list", action="store_true", help="list the bugs")
    options = parser.parse_args()
    path = options.file if options.file.exists() else HERE / options.file
    text = path.read_text()
    if options.list:
        return print("\n".join(bugs(text)))
    if options.bug and options.bug not in bugs(text):
        parser.error(f"unknown bug '{options.bug}': choose {', '.join(bugs(text))}")
    driver, module = Driver(), ctypes.c_void_p()
    ptx = with_bug(text, options.bug) if options.bug else text
    driver.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(ptx.encode()))
    filled = "\n// unwritten\n" not in text
    buffers = [driver.buffer(fill if filled else None) for fill in (1, 0)]  # data and out
    for run in RUN.findall(text):
        driver.launch(module, run, buffers)
    driver.call("cuCtxSynchronize")
    print("every launch has ended" + (f", out has checksum {driver.checksum(buffers[1]):08x}" if filled else ""))


if __name__ == "__main__":
    main()
