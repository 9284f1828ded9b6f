"""Calls what cuda.bindings exports to other modules. RunTest.cpp runs it with and without fp4-sim."""
import ctypes

from cuda.bindings._internal import runtime

pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
for name, capsule in runtime.__pyx_capi__.items():
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(pointer_of(capsule, runtime.SIGNATURE))
    value = ctypes.c_int(-1)
    print(name, function(ctypes.byref(value)), value.value)
