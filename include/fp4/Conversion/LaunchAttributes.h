//===- LaunchAttributes.h - What launches say to the lowering of host code ----===//
#pragma once

#include "llvm/ADT/StringRef.h"

namespace fp4 {

/// On a launch: its blocks wait for each other (fp4rt_launch_cooperative).
inline constexpr llvm::StringLiteral kCooperativeAttr = "fp4.cooperative";

} // namespace fp4
