//===- DenseKernels.h - What processors multiply rows with ----------------===//
#pragma once

#include "fp4/Numerics/DenseRow.h"

namespace fp4::numerics {

/// Whether the processor has what denseRows512 takes.
bool hasAVX512Products();

/// denseRows with AVX-512, and what it leaves to the definition: one element of `row`, which has
/// factors of this row of A and had C.
void denseRows512(const DenseRows &a, const DenseColumns &b, std::span<const DenseRow> rows,
                  const DenseRowOptions &options);
uint32_t denseByDefinition(const DenseRows &a, const DenseColumns &b, const DenseRow &row,
                           unsigned index, unsigned column, uint32_t c,
                           const DenseRowOptions &options);

} // namespace fp4::numerics
