#!/usr/bin/env python3
"""Times the kernels of amax_twins.cu with cold L2, in graphs of launches that take buffers in turn.

  benchmarks/micro/amax_twins.py amax_twins.cubin

Prints a line of JSON for each kernel and number of rows of 7168 bf16; `good` says whether an amax
is that of the tensor.
"""
from __future__ import annotations

import array
import ctypes
import json
import pathlib
import random
import struct
import sys

from cuda import Device, Kernel

COLUMNS, ROWS, BUFFERS = 7168, (64, 128), 160
#: Threads of a CTA.
KERNELS = {"empty": 512, "loads": 512, "alone": 512, "slots512": 512, "cluster16": 1024, "cluster8": 1024,
           "q_none": 256, "q_two": 512, "q_one": 512, "q_cluster16": 1024}
#: Kernels that leave the amax in the first word, and one that is larger than all other elements.
AMAXES, LARGEST = ("slots512", "cluster16", "cluster8"), 0x4123
NON_PORTABLE_CLUSTER = 14  # an attribute of functions


def tensors(device: Device) -> list[int]:
    generator = random.Random(1)
    words = array.array("H", ((0x3F80 + generator.getrandbits(6)) | generator.getrandbits(1) << 15
                              for _ in range(max(ROWS) * COLUMNS)))
    words[12345] = LARGEST
    return [device.upload(words.tobytes()) for _ in range(BUFFERS)]


def grid_of(name: str, items: int) -> int:
    return int(name.rpartition("cluster")[2]) if "cluster" in name else -(-items // KERNELS[name])


class Case:
    """A kernel on tensors of so many rows."""

    def __init__(self, device: Device, name: str, rows: int, kernel: Kernel) -> None:
        self.device, self.name, self.rows, self.kernel = device, name, rows, kernel
        self.out, self.slots = device.allocate(64 << 20), device.allocate(4 << 20)

    def launch(self, tensor: int, stream: ctypes.c_void_p | None = None) -> None:
        items = self.rows * COLUMNS // 16
        self.kernel(grid_of(self.name, items), KERNELS[self.name], tensor, self.out, ctypes.c_int(items), self.slots,
                    stream=stream)

    def is_good(self, tensor: int) -> bool:
        self.launch(tensor)
        return bool(struct.unpack("<I", self.device.download(self.out, 4))[0] == LARGEST << 16)

    def microseconds(self, inputs: list[int]) -> float:
        replay = self.device.graph(lambda stream: [self.launch(tensor, stream) for tensor in inputs])
        replay()
        self.device.synchronize()
        return sorted(self.device.seconds(replay) for _ in range(15))[7] / len(inputs) * 1e6


def main() -> int:
    device, image = Device(), pathlib.Path(sys.argv[1]).read_bytes()
    inputs = tensors(device)
    for rows in ROWS:
        for name in KERNELS:
            kernel = device.load_image(image, name=name)
            if "16" in name:
                device._call("cuFuncSetAttribute", kernel._function, NON_PORTABLE_CLUSTER, 1)
            case = Case(device, name, rows, kernel)
            good = [case.is_good(tensor) for tensor in inputs[:2]] if name in AMAXES else []
            print(json.dumps({"kernel": name, "rows": rows, "us": round(case.microseconds(inputs), 3), "good": all(good)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
