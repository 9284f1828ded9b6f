//===- RowReduction.h - One number for each row, in a fixed order ---------===//
//
// The combination of the elements of a row in fp32: their sum, product, maximum or minimum. The
// order is a function of the number of elements alone, so a kernel of any plan has the same bits:
//
//   - 16 consecutive elements are a chunk, and are combined by halves: element i with element
//     i + 8, then i + 4, i + 2 and i + 1;
//   - 512 consecutive elements, which are 32 chunks, are a segment, and their chunks are combined
//     by halves too: chunk i with chunk i + 16, then i + 8, i + 4, i + 2 and i + 1;
//   - the initial number is combined with the first segment, the result with the second, and so on,
//     where a row has up to 32 segments. Each of the 32 lanes of a warp has several segments of a
//     longer row: lane i has segment i, combined with segments i + 32, i + 64 and so on. Lanes are
//     combined by halves, and the initial number with the result.
//
// Elements behind the end of the row are the identity of the combination.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/Elementwise.h"
#include <cstddef>
#include <span>

namespace fp4::numerics {

inline constexpr size_t kReductionChunk = 16, kReductionSegment = 512;
/// Segments that are combined one after the other: those of 16384 elements.
inline constexpr size_t kReductionSequence = 32;

/// Returns true for the steps that combine the elements of a row: Add, Multiply, Maximum, Minimum,
/// MaximumNumber and MinimumNumber.
bool isCombination(ElementOp op);

/// The number that leaves every other as it is: -0 for sums, 1 for products, an infinity for
/// maximum and minimum, and NaN, with the bits that PTX gives it, where NaN stands for no number.
float identityOf(ElementOp combination);

/// `initial` combined with all elements; `initial` itself where there are none.
float reduceRow(std::span<const float> elements, ElementOp combination, float initial);

} // namespace fp4::numerics
