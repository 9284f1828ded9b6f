"""What a call through the Python package costs on the host, without the work of the device.

    PYTHONPATH=python python3 benchmarks/python/call.py

Prints the best of several repetitions in microseconds: a bare call of the C library through
ctypes; what precedes the launch of a function of two arguments and two results (reading the
arrays, comparing them with the manifest, describing and allocating results); and the time to
import the package.
"""

import subprocess
import sys
import timeit

import fp4
import numpy as np
from fp4._library import library
from fp4.program import _arguments, _Call
from fp4.tensors import view

PROGRAM = """
func.func @f(%x: tensor<?x64xbf16>, %a: tensor<f32>)
    -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x64xbf16>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
  return %q, %s : tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>
}
"""
IMPORT = "import time; t = time.perf_counter(); import fp4; print(time.perf_counter() - t)"


def best(work, number=2000):
    """Microseconds of the fastest of seven repetitions."""
    return min(timeit.repeat(work, number=number, repeat=7)) / number * 1e6


def main():
    device = fp4.Device("sim")
    program = fp4.compile(PROGRAM).program(device)
    arrays = [np.zeros((128, 64), np.uint16), np.zeros((), np.float32)]
    function = program.manifest.find("f")
    executable = program._code.on(device)

    def prepare():
        views = [view(array, "x") for array in arrays]
        _Call(executable, function, _arguments(function, views), views,
              "numpy").allocate_results()

    times = [float(subprocess.check_output([sys.executable, "-c", IMPORT])) for _ in range(5)]
    is_hardware = library().fp4_device_is_hardware
    print(f"bare call          {best(lambda: is_hardware(device.handle)):8.2f} us")
    print(f"before the launch  {best(prepare):8.2f} us")
    print(f"import fp4         {min(times) * 1e6:8.0f} us")


if __name__ == "__main__":
    main()
