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
/// one do so too (fp4-pdl-launches).
inline constexpr llvm::StringLiteral kPdlAttr = "fp4.pdl";

/// On a launch: the same, but the next one may begin when this one has waited, so that launches
/// take turns and no third one has CTAs; where threads meet, when it has issued its loads.
inline constexpr llvm::StringLiteral kPdlInTurnAttr = "fp4.pdl_in_turn";
/// On a launch: the same, but the next one may begin when this one has issued its loads.
inline constexpr llvm::StringLiteral kPdlBehindLoadsAttr = "fp4.pdl_behind_loads";

/// On a launch: its kernel begins in the same way, but the next one begins when it has ended.
inline constexpr llvm::StringLiteral kWaitsAttr = "fp4.waits";

} // namespace fp4
