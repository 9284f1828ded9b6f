//===- Reference.h - The program of a manifest, on the host ---------------===//
//
// Executes the fp4 operations of a function with lib/Numerics, one after the other. The values of a
// GEMM come with the plain sum and its bounds, for the verdict (fp4/Harness/Verdict.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/TargetModel.h"
#include "fp4/Numerics/Compare.h"
#include "fp4/Reference/Tensor.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string_view>

namespace fp4::harness {

/// Bytes of a tensor that a program leaves as they are.
struct ByteRange {
  uint64_t begin = 0, size = 0;
};

/// A reference value with, for GEMMs, the plain sum and its bounds.
struct ReferenceValue {
  Tensor value; ///< zeros where it is unspecified
  std::vector<ByteRange> unspecified = {};
  std::string offsets = {}; ///< the value that says whose rows are specified where some are not
  std::string_view model = {}; ///< instruction whose arithmetic a GEMM has, else empty
  std::vector<double> sums = {}, bounds = {};
  std::vector<numerics::Overflow> mayOverflow = {}; ///< numerics::GemmReference
};

/// Zeros in the place of what nobody specified, as a reference value has them.
inline void clearUnspecified(Tensor &tensor, std::span<const ByteRange> unspecified) {
  for (const ByteRange &range : unspecified)
    std::fill_n(tensor.bytes.begin() + ptrdiff_t(range.begin), range.size, std::byte(0));
}

/// Finds the bytes of a constant by the symbol that the manifest gives it.
using DataResolver = std::function<Expected<const void *>(const std::string &symbol)>;

/// One value per result of `function`. Fails (Usage) if the program has an operation that this tool
/// does not know because it is older than the compiler, or computes with what is unspecified. GEMMs
/// have the arithmetic of the tensor core of `target`, or without one, of the default target.
Expected<std::vector<ReferenceValue>> runReference(const Function &function,
                                                   std::span<const Tensor> arguments,
                                                   unsigned threads, const DataResolver &data = {},
                                                   const hw::TargetModel *target = nullptr);

} // namespace fp4::harness
