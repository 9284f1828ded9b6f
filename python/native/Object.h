//===- Object.h - References to Python objects ----------------------------===//
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <new>
#include <utility>

namespace fp4::python {

/// Owns one reference. Needs the lock of Python wherever it is copied or destroyed.
class Object {
public:
  Object() = default;
  /// Takes a new reference, as most functions of Python return it; null is allowed.
  static Object owned(PyObject *object) { return Object(object); }
  static Object borrowed(PyObject *object) {
    Py_XINCREF(object);
    return Object(object);
  }
  Object(const Object &other) : object_(other.object_) { Py_XINCREF(object_); }
  Object(Object &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object &operator=(Object other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Object() { Py_XDECREF(object_); }

  PyObject *get() const { return object_; }
  PyObject *release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

private:
  explicit Object(PyObject *object) : object_(object) {}
  PyObject *object_ = nullptr;
};

/// A new object of `type`, whose C++ member `value` begins to live.
template <typename T> PyObject *construct(PyTypeObject *type, PyObject *, PyObject *) {
  auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  auto *self = reinterpret_cast<T *>(allocate(type, 0));
  if (self)
    new (&self->value) decltype(T::value)();
  return reinterpret_cast<PyObject *>(self);
}

template <typename T> void destroy(PyObject *self) {
  using Value = decltype(T::value);
  reinterpret_cast<T *>(self)->value.~Value();
  PyTypeObject *type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

} // namespace fp4::python
