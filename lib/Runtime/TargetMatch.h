//===- TargetMatch.h - GPUs that run code of a target ---------------------===//
#pragma once

#include <string_view>

namespace fp4::rt {

/// The ways in which a GPU of compute capability major.minor can run code for a target.
struct TargetMatch {
  bool known = true;  ///< the name has the form sm_<digits> with an optional a or f
  bool cubin = false; ///< runs a cubin of that target
  bool ptx = false;   ///< the driver compiles PTX of that target
};

/// Matches by the rules of the CUDA compatibility model: "a" targets run on their own compute
/// capability only, "f" targets within their family (same major, minor not lower), plain targets
/// forward: cubins within the major, PTX on everything newer.
TargetMatch matchTarget(std::string_view target, int major, int minor);

} // namespace fp4::rt
