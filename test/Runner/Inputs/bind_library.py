"""Loads an emitted library into a process without a runtime and binds it to functions of its own."""

import ctypes
import subprocess
import sys

NAMES = ("alloc alloc_result free constant memset memcpy_2d tensor_map multiprocessor_count fail "
         "expect_size launch call launch_dependent counters launch_cooperative "
         "launch_clusters group_report result_pitch").split()

path = sys.argv[1]
symbols = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True, text=True,
                         check=True).stdout
strong = [line for line in symbols.splitlines() if line.split()[0] != "w"]
print("undefined and not weak:", " ".join(strong) or "none")

library = ctypes.CDLL(path)  # RTLD_NOW, RTLD_LOCAL
entry, bind = library.fp4_entry_f, library.fp4_bind
print("entry before fp4_bind:", entry(None))

calls = []


def record(name):
    """A runtime function that notes its name; memory is at an address that nobody reads."""
    def function(*_):
        calls.append(name)
        return 4096
    return ctypes.CFUNCTYPE(ctypes.c_uint64)(function)


functions = [record(name) for name in NAMES]
words = 1 + len(functions)
table = (ctypes.c_uint64 * words)(8 * words,
                                  *(ctypes.cast(f, ctypes.c_void_p).value for f in functions))
short = (ctypes.c_uint64 * words)(8 * (words - 1), *table[1:])
print("fp4_bind with a short table:", bind(short))
print("entry after that:", entry(None))
print("fp4_bind:", bind(table))
result = (ctypes.c_uint64 * 3)()
argument = (ctypes.c_uint64 * 7)(4096, 4096, 0, 16, 16, 16, 1)
arguments = (ctypes.c_void_p * 2)(ctypes.addressof(result), ctypes.addressof(argument))
print("entry:", entry(arguments))
print("calls:", " ".join(calls))
