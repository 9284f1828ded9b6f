//===- LaunchAttributes.h - Attributes of launches for host code ----------===//
#pragma once

#include "llvm/ADT/StringRef.h"

namespace fp4 {

/// On a launch: its CTAs wait for each other (fp4rt_launch_cooperative).
inline constexpr llvm::StringLiteral kCooperativeAttr = "fp4.cooperative";

/// On a launch of an amax, and on that of a quantizer that reads one: where the second comes next,
/// it begins while the first ends (fp4-pdl-launches).
inline constexpr llvm::StringLiteral kLeadsAttr = "fp4.leads", kFollowsAttr = "fp4.follows";

/// On a launch: its kernel gains by beginning while whatever is before it ends, and lets the next
/// one begin where its #fp4.launch_dependents says (fp4-pdl-launches).
inline constexpr llvm::StringLiteral kPdlAttr = "fp4.pdl";

} // namespace fp4
