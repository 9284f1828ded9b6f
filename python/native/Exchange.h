//===- Exchange.h - Tensors of torch through DLPack's exchange API --------===//
#pragma once

#include "Dlpack.h"
#include "Object.h"

#include <array>
#include <span>
#include <vector>

namespace fp4::python {

constexpr size_t kMostOperands = 16, kMostDimensions = 8;
/// Words of the key of one tensor at most.
constexpr size_t kMostWords = 2 * kMostDimensions + 1;

/// The functions of torch that read tensors, set once, when the package first meets torch.
struct Exchange {
  const dlpack::ExchangeApi *api = nullptr;
  std::vector<Object> types; ///< exactly these: a subclass may be anything
  Object isNegative;         ///< torch.Tensor.is_neg
  Object currentDevice;      ///< number of the current CUDA device; null where there is one only
  Object recordsGradients;   ///< torch.is_grad_enabled
  /// Functions of torch that return False, None or 0 while nothing stands between a call of an
  /// operation and its implementation, such as a mode, a transform, tracing or a profiler.
  std::vector<Object> watchers;
  Object isQuiet; ///< of the package: True if what a watcher told of is only torch's default device
  int numHolds = 0; ///< of the package, while calls depend on more than their arguments
  std::vector<Object> constants; ///< types whose objects are compared by identity, as torch.dtype

  /// False, with a Python exception, where the API of these types is of another major version.
  bool accept(PyObject *acceptedTypes, PyObject *capsule, PyObject *negative);
  bool accepts(PyObject *object) const;
  bool isWatched() const;
  /// Returns true if torch's current device is that of the tensors.
  bool isCurrent(int32_t deviceType, int32_t deviceId) const;

  /// False, and no exception, for an object that is no tensor of torch, that has no values of its
  /// own, or that requires a gradient which is recorded.
  bool read(PyObject *object, bool recordsGradients, dlpack::Tensor &tensor) const;
};

extern Exchange &exchange;

/// Appends what a plan depends on: the type and shape of a tensor, and its strides if it is not
/// dense. False for too many dimensions. `words` has room for kMostWords.
bool appendKey(const dlpack::Tensor &tensor, int64_t *words, size_t &size);

uint64_t hashOf(std::span<const int64_t> words);

/// The tensors of one call, and what a plan depends on: their types and shapes, and the strides of
/// those that are not dense.
class Arguments {
public:
  /// False where a tensor is none of those that a plan may be for: no tensor of torch, no values of
  /// its own, on another device. Sets no exception.
  bool read(PyObject *tuple);

  size_t size() const { return count_; }
  const dlpack::Tensor &operator[](size_t i) const { return tensors_[i]; }
  std::span<const int64_t> key() const { return {key_.data(), keySize_}; }
  uint64_t hash() const { return hashOf(key()); }
  int32_t deviceType() const { return tensors_[0].deviceType; }
  int32_t deviceId() const { return tensors_[0].deviceId; }

private:
  size_t count_ = 0, keySize_ = 0;
  std::array<dlpack::Tensor, kMostOperands> tensors_;
  std::array<int64_t, kMostOperands * kMostWords> key_;
};

inline uint64_t addressOf(const dlpack::Tensor &tensor) {
  return reinterpret_cast<uint64_t>(tensor.data) + tensor.byteOffset;
}

} // namespace fp4::python
