//===- Object.h - References to Python objects ----------------------------===//
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

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

} // namespace fp4::python
