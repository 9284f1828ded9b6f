// Tensors of TVM FFI as kernels take them.
#pragma once
#include <tvm/ffi/container/tensor.h>

template <typename T>
static T *at(tvm::ffi::TensorView tensor) {
  return static_cast<T *>(tensor.data_ptr());
}
