"""Arrays on the device that libcuda finds: what Triton needs of a tensor, without PyTorch.

Triton asks an argument for `data_ptr()` and `dtype`, a tensor descriptor also for `shape` and `stride()`.
The types that numpy lacks (bfloat16, float8_e4m3fn, ...) are those of ml_dtypes.
"""
import ctypes

import numpy

cuda = ctypes.CDLL("libcuda.so.1")


def check(code):
    if code:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"CUDA error {code}: {text.value.decode() if text.value else '?'}")


class Array:
    """A copy of `host` in device memory; `numpy()` brings it back."""

    def __init__(self, host):
        self.host = numpy.ascontiguousarray(host)
        self.dtype, self.shape = self.host.dtype, list(self.host.shape)
        self.pointer = ctypes.c_uint64()
        check(cuda.cuMemAlloc_v2(ctypes.byref(self.pointer), ctypes.c_size_t(max(1, self.host.nbytes))))
        check(cuda.cuMemcpyHtoD_v2(self.pointer, ctypes.c_void_p(self.host.ctypes.data),
                                   ctypes.c_size_t(self.host.nbytes)))

    def __del__(self):
        cuda.cuMemFree_v2(self.pointer)

    def data_ptr(self):
        return self.pointer.value

    def stride(self, axis=None):
        strides = [s // self.dtype.itemsize for s in self.host.strides]
        return strides if axis is None else strides[axis]

    def numpy(self):
        result = numpy.empty_like(self.host)
        check(cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(result.ctypes.data), self.pointer,
                                   ctypes.c_size_t(result.nbytes)))
        return result


def zeros(shape, dtype):
    return Array(numpy.zeros(shape, dtype))


class Scratch:
    """Memory that triton.set_allocator hands to kernels that make tensor maps on the device."""

    def __init__(self, bytes):
        self.array = zeros(bytes, numpy.int8)

    def data_ptr(self):
        return self.array.data_ptr()


def set_allocator():
    import triton
    triton.set_allocator(lambda size, alignment, stream: Scratch(size))
