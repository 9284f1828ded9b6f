//===- EntryCall.h - Calling compiled host code ---------------------------===//
//
// Tensors to memref descriptors (Descriptor.h) in device memory and back.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Reference/Tensor.h"
#include "fp4/Runtime/Session.h"

#include <map>

namespace fp4::harness {

/// `fp4_entry_<func>` of fp4-c/Runtime.h.
using EntryFunction = fp4_entry_function;

class EntryCall {
public:
  EntryCall(rt::Session &session, const Function &function)
      : session_(session), function_(function) {}

  /// Copies the arguments to the device. Strided ones have gaps between their rows.
  Status upload(std::span<const Tensor> arguments);
  /// Calls the entry and waits for the device. The first error of the session comes back. Strided
  /// results have memory with gaps between their rows.
  Status call(EntryFunction entry);
  /// Copies the results to the host, after checking what the entry said about them, and that nobody
  /// wrote to gaps.
  Expected<std::vector<Tensor>> download();

private:
  Status uploadRows(const Tensor &tensor);
  Status uploadDense(const Tensor &tensor);
  Status placeResults();
  Status placeResult(size_t i, const Type &type);
  Status checkGaps(size_t i, const Type &type) const;
  /// The static type of result i: what the program makes of the arguments' sizes; without a
  /// program, what the descriptor says.
  Expected<Type> resolveResult(size_t i, const uint64_t *descriptor) const;
  Expected<Tensor> downloadOne(size_t i, const uint64_t *descriptor);

  rt::Session &session_;
  const Function &function_;
  std::vector<std::vector<uint64_t>> arguments_; ///< one descriptor each
  std::vector<uint64_t> results_;                ///< descriptors, one after the other
  int64_t dynamicSize_ = 0;                      ///< size of the first dynamic argument
  std::map<std::string, Type> types_;            ///< types of the program's values
  std::vector<rt::ResultBuffer> places_;         ///< places of strided results
};

} // namespace fp4::harness
