//===- Call.h - One call of a function of libfp4 --------------------------===//
#pragma once

#include "Library.h"
#include "Route.h"

#include <string>

namespace fp4::python {

/// Temporary memory of a call from torch's caching allocator, which needs no lock of Python. The
/// memory goes back when its last use has been issued: to the next call of the same stream, or to
/// torch while a graph is captured, whose memory nobody else may have.
class Temporary {
public:
  explicit Temporary(int32_t deviceId) : deviceId_(deviceId) {}
  Temporary(const Temporary &) = delete;
  ~Temporary() {
    while (count_)
      drop(count_ - 1);
  }

  fp4_allocator functions() { return {this, allocate, free}; }
  /// "KIND: text" of torch where it had no memory.
  const std::string &failure() const { return failure_; }

private:
  static uint64_t allocate(void *context, uint64_t bytes, uint64_t stream);
  static void free(void *context, uint64_t address, uint64_t stream);
  static void fail(void *context, const char *kind, const char *message) {
    static_cast<Temporary *>(context)->failure_ = std::string(kind) + ": " + message;
  }
  dlpack::ManagedTensor *take(size_t index) {
    return std::exchange(owned_[index], owned_[--count_]);
  }
  void drop(size_t index) {
    dlpack::ManagedTensor *tensor = take(index);
    if (tensor->deleter)
      tensor->deleter(tensor);
  }

  int32_t deviceId_;
  bool isReused_ = false; ///< what was allocated last; the stream captures no graph
  size_t count_ = 0;
  std::array<dlpack::ManagedTensor *, 64> owned_; ///< more than any program has at a time
  std::string failure_;
};

/// A call whose plan is known. Addresses are those of torch's tensors: of CUDA tensors they are
/// used, and CPU tensors are copied to the device and back.
class Call {
public:
  Call(const Route &route, const Plan &plan);

  void setArgument(size_t i, uint64_t address) { arguments_[i].address = address; }
  void setResult(size_t i, uint64_t address) { results_[i].address = address; }

  /// Issues the work to a stream.
  fp4_error *onCuda(uint64_t stream, Temporary &memory);
  /// Rows of results that no scatter writes stay as they are in memory that the caller gives.
  fp4_error *onHost(bool areResultsGiven);

private:
  fp4_error *call(const fp4_call_options *options);
  fp4_error *allocate(fp4_tensor &tensor);
  fp4_error *upload(fp4_tensor &tensor);

  const Route &route_;
  const Plan &plan_;
  std::array<fp4_tensor, kMostOperands> arguments_, results_;
  size_t count_ = 0;
  std::array<uint64_t, 2 * kMostOperands> owned_; ///< device memory
};

/// Sets the exception of the package for `error`; `cause` may be empty. Returns null.
Object raise(fp4_error *error, const std::string &cause);

} // namespace fp4::python
