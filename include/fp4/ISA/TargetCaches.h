//===- TargetCaches.h - Habits of the L2 cache of a target ----------------===//
#pragma once

#include "fp4/ISA/TargetModel.h"

namespace fp4::hw {

/// Returns true when a kernel that streams ends sooner if what it loads outlasts what it stores in
/// the L2 cache, which then writes lines back in a better order. An H200 does; others were not
/// measured.
inline bool gainsFromLastingLoads(const TargetModel &target) { return target.features.hasWgmma; }

} // namespace fp4::hw
