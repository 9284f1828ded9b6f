//===- Tensor.h - A tensor value on the host ------------------------------===//
//
// A static type and its dense boundary buffer (Type::bufferShape): what the engine uploads,
// downloads, loads, saves and hands to the reference interpreter.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Tools/Manifest.h"
#include "fp4/Tools/Npy.h"

#include <cstddef>
#include <cstring>
#include <span>

namespace fp4::tools {

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

/// Seeded inputs. The same (distribution, seed, index, type) gives the same bytes on every machine.
///   gaussian  normal(0, 1)
///   uniform   [-1, 1)
///   bf16      normal, of 8 significant bits whatever the type, blocks over nine binades, the first
///             element the largest and no power of two: what tells quantizers apart
///   adversarial  the blocks N01-N42 and M01-M28 of docs/Numerics.md in random places, along rows
///             and columns, under a largest magnitude that the seed chooses of 11 (the last two
///             infinity and NaN); block scales any byte
///   exact     E2M1 values with a 6 in every block of 16, so that quantization is exact and every
///             partial sum of a block-scaled GEMM fits 24 bits
///   ones, zeros
///   arange    0, 1, 2, .. modulo 256, in row-major order
/// Block scales are powers of two from 1/8 to 8 (gaussian, uniform, bf16) or 1; scalars are 1 (or
/// 0). i64 tensors are states of a random number generator: the seed, then `index`, its offset.
/// `index` is the number of the argument: it separates the streams of two arguments.
Expected<Tensor> makeInput(const Type &type, std::string_view distribution, uint64_t seed,
                           unsigned index);
/// The distributions, for messages and --help.
extern const std::vector<std::string> kDistributions;

/// An array from a file as a value of `type`, whose dynamic dimension it fixes. Floating-point
/// files are rounded once, to nearest even; docs/Diagnostics.md lists what is accepted. `name` is
/// the argument's, for messages.
Expected<Tensor> fromNpy(const NpyArray &array, const Type &type, const std::string &name);

/// The elements of a file as fp32, without a type of an argument: '<f8' is rounded to nearest even,
/// others are exact. `type` ("f8E4M3FN", "bf16", ...) says what the bytes of '|u1', '<V1' and '<u2'
/// are; empty: fp32.
Expected<std::vector<float>> valuesOf(const NpyArray &array, const std::string &type,
                                      const std::string &name);

/// The reverse; bf16 becomes '<f4', which holds it exactly and needs no extension to read.
NpyArray toNpy(const Tensor &tensor);

} // namespace fp4::tools
