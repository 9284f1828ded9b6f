//===- Exchange.cpp - Tensors of torch through DLPack's exchange API ------===//

#include "Exchange.h"

#include <algorithm>

namespace fp4::python {

// Never destroyed: Python has ended when objects of static duration are, and it owns Objects.
Exchange &exchange = *new Exchange;

bool Exchange::accept(PyObject *acceptedTypes, PyObject *capsule, PyObject *negative) {
  auto *table =
      static_cast<dlpack::ExchangeApi *>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  while (table && table->version.major > dlpack::kMajorVersion)
    table = table->previous;
  if (!table || table->version.major != dlpack::kMajorVersion || !table->tensorFromObject) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_BufferError, "the exchange API of torch is no DLPack 1.x");
    return false;
  }
  types.clear();
  for (Py_ssize_t i = 0; i < PyTuple_Size(acceptedTypes); ++i)
    types.push_back(Object::borrowed(PyTuple_GetItem(acceptedTypes, i)));
  isNegative = Object::borrowed(negative);
  api = table;
  return true;
}

bool Exchange::accepts(PyObject *object) const {
  auto *type = reinterpret_cast<PyObject *>(Py_TYPE(object));
  return std::ranges::any_of(types, [&](const Object &one) { return one.get() == type; });
}

namespace {

/// Row-major without gaps. Strides of dimensions of one element do not matter.
bool isDense(const dlpack::Tensor &tensor) {
  int64_t stride = 1;
  for (int32_t i = tensor.ndim; i-- > 0; stride *= tensor.shape[i])
    if (tensor.strides && tensor.shape[i] != 1 && tensor.strides[i] != stride)
      return false;
  return true;
}

/// Returns true if `question`, a Python object, is False. An exception is not False.
bool isFalse(Object question) {
  if (!question)
    PyErr_Clear();
  return question.get() == Py_False;
}

} // namespace

bool Exchange::read(PyObject *object, bool recordsGradients, dlpack::Tensor &tensor) const {
  static PyObject *const requiresGrad = PyUnicode_InternFromString("requires_grad");
  if (!accepts(object))
    return false;
  if (api->tensorFromObject(object, &tensor) != 0) {
    PyErr_Clear();
    return false;
  }
  const bool isInteger = tensor.dtype.code <= dlpack::kUnsigned; // torch negates numbers lazily
  return tensor.data &&
         (!recordsGradients || isFalse(Object::owned(PyObject_GetAttr(object, requiresGrad)))) &&
         (isInteger ||
          isFalse(Object::owned(PyObject_CallFunctionObjArgs(isNegative.get(), object, nullptr))));
}

bool Exchange::isWatched() const {
  const bool quiet = std::ranges::all_of(watchers, [](const Object &watcher) {
    Object answer = Object::owned(PyObject_CallNoArgs(watcher.get()));
    const bool quiet = answer && (answer.get() == Py_False || answer.get() == Py_None ||
                                  (PyLong_Check(answer.get()) && PyLong_AsLong(answer.get()) == 0));
    if (PyErr_Occurred())
      PyErr_Clear();
    return quiet;
  });
  if (quiet)
    return false;
  Object answer = Object::owned(PyObject_CallNoArgs(isQuiet.get()));
  if (!answer)
    PyErr_Clear();
  return answer.get() != Py_True;
}

bool Exchange::isCurrent(int32_t deviceType, int32_t deviceId) const {
  if (deviceType == dlpack::kCpu || !currentDevice)
    return true;
  Object number = Object::owned(PyObject_CallNoArgs(currentDevice.get()));
  const long found = number ? PyLong_AsLong(number.get()) : -1;
  if (PyErr_Occurred())
    PyErr_Clear();
  return found == deviceId;
}

bool Arguments::read(PyObject *tuple) {
  const Py_ssize_t given = PyTuple_Size(tuple);
  if (!exchange.api || given < 1 || size_t(given) > kMostOperands)
    return false;
  count_ = size_t(given), keySize_ = 0;
  for (size_t i = 0; i < count_; ++i) {
    dlpack::Tensor &tensor = tensors_[i];
    if (!exchange.read(PyTuple_GetItem(tuple, Py_ssize_t(i)), true, tensor) ||
        !appendKey(tensor, key_.data(), keySize_) || tensor.deviceType != deviceType() ||
        tensor.deviceId != deviceId())
      return false;
  }
  return deviceType() == dlpack::kCpu || deviceType() == dlpack::kCuda;
}

bool appendKey(const dlpack::Tensor &tensor, int64_t *words, size_t &size) {
  if (tensor.ndim < 0 || size_t(tensor.ndim) > kMostDimensions)
    return false;
  const dlpack::DataType &dtype = tensor.dtype;
  const bool dense = isDense(tensor);
  words[size++] = int64_t(!dense) << 40 | int64_t(tensor.ndim) << 32 | int64_t(dtype.code) << 24 |
                  int64_t(dtype.bits) << 16 | dtype.lanes;
  for (const int64_t *sizes : {tensor.shape, tensor.strides}) {
    if (dense && sizes != tensor.shape)
      break;
    std::copy_n(sizes, tensor.ndim, words + size);
    size += size_t(tensor.ndim);
  }
  return true;
}

uint64_t hashOf(std::span<const int64_t> words) {
  uint64_t value = 0xCBF29CE484222325; // FNV-1a, a word at a time
  for (int64_t word : words)
    value = (value ^ uint64_t(word)) * 0x100000001B3;
  return value;
}

} // namespace fp4::python
