//===- DenseKernels.h - Instructions that multiply rows -------------------===//
#pragma once

#include "fp4/Numerics/DenseRow.h"

namespace fp4::numerics {

/// Returns true when the processor has the instructions that denseRows512 needs.
bool hasAVX512Products();

/// denseRows with AVX-512; and one element of `row` by the definition, for elements that AVX-512
/// cannot compute. `row` has factors of this row of A and had C.
void denseRows512(const DenseRows &a, const DenseColumns &b, std::span<const DenseRow> rows,
                  const DenseRowOptions &options);
uint32_t denseByDefinition(const DenseRows &a, const DenseColumns &b, const DenseRow &row,
                           unsigned index, unsigned column, uint32_t c,
                           const DenseRowOptions &options);

} // namespace fp4::numerics
