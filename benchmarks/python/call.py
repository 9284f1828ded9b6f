"""Measures what a call through the Python package costs on the host, without the work of the
device.

    PYTHONPATH=python python3 benchmarks/python/call.py

Prints the best of several repetitions in microseconds, for a quantizer of two arguments and two
results. Stubs in the place of libfp4 and of the CUDA driver (stubs.c, built with cc) tell the parts
of a call apart:

    bare call          a call of the C library through ctypes
    checked call       what precedes the launch of a call that is checked in Python: reading NumPy
                       arrays, comparing them with the manifest, describing and allocating results
    planned call       a call with tensors of torch whose plan is known, all but libfp4; torch makes
                       the results, or the caller has them
    libfp4             a call of the C API for a GPU, all but the driver, in a loop in C (loops.c)
    import fp4
"""

import ctypes
import pathlib
import subprocess
import sys
import tempfile
import timeit

import fp4
import numpy as np
from fp4 import _calls
from fp4 import _library as c
from fp4.program import _Call, arguments_of
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


def best(work, number=200):
    """Microseconds of the fastest of many repetitions, which no other process interrupts."""
    return min(timeit.repeat(work, number=number, repeat=100)) / number * 1e6


def build(folder, name, source, *options):
    path = pathlib.Path(folder) / name
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", *options,
                    str(pathlib.Path(__file__).with_name(source)), "-o", str(path)], check=True)
    return str(path)


def checked():
    """Measures what precedes the launch in the simulator."""
    program = fp4.compile(PROGRAM).program(fp4.Device("sim"))
    arrays = [np.zeros((128, 64), np.uint16), np.zeros((), np.float32)]
    function = program.manifest.find("f")
    executable = program._code.on(program.device)

    def prepare():
        views = [view(array, "x") for array in arrays]
        _Call(executable, function, arguments_of(function, views), views,
              "numpy").allocate_results()

    return best(prepare)


def planned(library):
    """Calls whose plan is known, with a libfp4 that does nothing: new results, given results."""
    try:
        import torch
    except ImportError:
        return None
    program = fp4.compile(PROGRAM).program(fp4.Device("sim"))
    x, a = torch.zeros(128, 64, dtype=torch.bfloat16), torch.zeros(())
    program(x, a)
    if not _calls._accept(torch):
        return None
    _calls.native.load(library, _calls._raise)
    out = program(x, a)
    try:
        return best(lambda: program(x, a)), best(lambda: program(x, a, out=out))
    finally:
        _calls.native.load(str(c.PATH), _calls._raise)


def below(driver, loops):
    """A call of the C API with a driver that does nothing, in a loop in C."""
    loaded = ctypes.CDLL(driver)  # the runtime finds it by its soname
    time_calls = ctypes.CDLL(loops).time_calls
    time_calls.restype = ctypes.c_double
    compiled = fp4.compile(PROGRAM, target="sm_90a")
    text = compiled.kernels[0].ptx
    entry = text[text.index(".entry"):]
    ctypes.c_size_t.in_dll(loaded, "num_parameters").value = \
        entry[:entry.index("{")].count(".param")
    program = compiled.program(fp4.Device("cuda"))
    function = program.manifest.find("f")
    views = [view(array, "x") for array in (np.zeros((128, 64), np.uint16), np.zeros((), "f4"))]
    call = _Call(program._code.on(program.device), function, arguments_of(function, views), views,
                 "numpy")
    for tensor in (*call.arguments, *call.results):
        tensor.address = 1 << 20
    options = c.CallOptions(size=ctypes.sizeof(c.CallOptions), stream=1)
    arguments = (ctypes.cast(call.library.fp4_function_call, ctypes.c_void_p),
                 ctypes.c_void_p(call.function), ctypes.byref(call.arguments),
                 ctypes.c_size_t(len(call.arguments)), ctypes.byref(call.results),
                 ctypes.c_size_t(len(call.results)), ctypes.byref(options))
    return min(time_calls(*arguments, 200) for _ in range(100))


def main():
    times = [float(subprocess.check_output([sys.executable, "-c", IMPORT])) for _ in range(5)]
    device, is_hardware = fp4.Device("sim"), c.library().fp4_device_is_hardware
    bare = best(lambda: is_hardware(device.handle))
    print(f"bare call     {bare:8.2f} us")
    print(f"checked call  {checked():8.2f} us")
    with tempfile.TemporaryDirectory() as folder:
        times_of_plans = planned(build(folder, "libfp4stub.so", "stubs.c", "-DLIBFP4"))
        if times_of_plans is None:
            print("planned call  not here: torch or fp4._native is missing")
        else:
            new, given = times_of_plans
            print(f"planned call  {new:8.2f} us, with out= {given:.2f} us")
        driver = build(folder, "libcuda.so.1", "stubs.c", "-Wl,-soname,libcuda.so.1")
        loops = build(folder, "libloops.so", "loops.c")
        print(f"libfp4        {below(driver, loops):8.2f} us")
    print(f"import fp4    {min(times) * 1e6:8.0f} us")


if __name__ == "__main__":
    main()
