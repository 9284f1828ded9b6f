//===- Tensor.h - A tensor value on the host ------------------------------===//
//
// A static type and its dense boundary buffer (Type::bufferShape). The runner uploads, downloads,
// loads and saves such values and passes them to the reference interpreter.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Reference/Manifest.h"

#include <cstddef>
#include <cstring>
#include <span>

namespace fp4::harness {

struct Tensor {
  Type type;
  std::vector<std::byte> bytes;

  explicit Tensor(Type type) : type(std::move(type)), bytes(this->type.bufferBytes()) {}
  Tensor() = default;

  template <typename T> std::span<T> as() {
    return {reinterpret_cast<T *>(bytes.data()), bytes.size() / sizeof(T)};
  }
  template <typename T> std::span<const T> as() const {
    return {reinterpret_cast<const T *>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

} // namespace fp4::harness
