//===- PromotedColumns.h - Steps of columns of promoted sums ---------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include <numeric>

namespace fp4::pipe {

/// The step of a tile that begins at a multiple of its `columns` columns: it begins in a scale
/// block at a multiple of the step, so that as many columns, from a multiple on, are in one block.
constexpr int64_t promotedStep(int64_t columns) { return std::gcd(columns, kPromotedBlock); }

} // namespace fp4::pipe
