//===- Inputs.cpp - The arguments of a planned function -------------------===//

#include "Planned.h"

#include <algorithm>
#include <cstring>

namespace fp4::python {
namespace {

/// Words that begin what the key has of an argument. Tensors have the bit `Tensor`.
enum Tag : int64_t { None = 1, Bool, Integer, Float, Constant, Tensor = int64_t(1) << 48 };

/// Addresses of kernels' operands are multiples of so many bytes. A function may copy others.
constexpr uint64_t kAlignment = 16;

} // namespace

bool Inputs::read(PyObject *const *objects, size_t count, bool recordsGradients) {
  if (!exchange.api || count > kMostArguments)
    return false;
  count_ = keySize_ = numConstants_ = 0;
  for (size_t i = 0; i < count; ++i)
    if (!(exchange.accepts(objects[i]) ? readTensor(objects[i], recordsGradients)
                                       : readConstant(objects[i])))
      return false;
  return count_ && (deviceType() == dlpack::kCpu || deviceType() == dlpack::kCuda);
}

bool Inputs::readTensor(PyObject *object, bool recordsGradients) {
  if (count_ == kMostOperands)
    return false;
  dlpack::Tensor &tensor = tensors_[count_];
  if (!exchange.read(object, recordsGradients, tensor))
    return false;
  ++count_;
  if (tensor.deviceType != deviceType() || tensor.deviceId != deviceId())
    return false;
  key_[keySize_++] = Tensor | int64_t(tensor.deviceType) << 16 | int64_t(tensor.deviceId) << 1 |
                     int64_t(addressOf(tensor) % kAlignment != 0);
  return appendKey(tensor, key_.data(), keySize_);
}

bool Inputs::readConstant(PyObject *object) {
  auto append = [&](Tag tag, int64_t value) {
    key_[keySize_++] = tag;
    key_[keySize_++] = value;
    return true;
  };
  if (object == Py_None || PyBool_Check(object))
    return append(object == Py_None ? None : Bool, object == Py_True);
  auto *type = reinterpret_cast<PyObject *>(Py_TYPE(object));
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return !overflow && append(Integer, value);
  }
  if (PyFloat_CheckExact(object)) {
    const double value = PyFloat_AsDouble(object);
    int64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return append(Float, bits);
  }
  constants_[numConstants_++] = object;
  if (PyUnicode_CheckExact(object))
    return append(Constant, int64_t(PyObject_Hash(object)));
  return std::ranges::any_of(exchange.constants,
                             [&](const Object &one) { return one.get() == type; }) &&
         append(Constant, reinterpret_cast<int64_t>(object));
}

} // namespace fp4::python
