//===- FourLanes.h - Words that four neighbouring lanes exchange ----------===//
#pragma once

#include "Int32.h"

#include <array>

namespace fp4 {

/// Parts that a lane has for itself and for the other three of its four.
using PartsOfFour = std::array<llvm::SmallVector<mlir::Value>, 4>;

/// Part i of lane j of the four becomes part j of lane i. `place` is that of the lane among them.
PartsOfFour exchangeOfFour(mlir::ImplicitLocOpBuilder &b, PartsOfFour parts, Int32 place);

} // namespace fp4
