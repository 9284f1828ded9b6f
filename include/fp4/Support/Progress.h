//===- Progress.h - One line on stderr while something takes long ---------===//
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fp4 {

/// A callback that, from the second second on, shows "ACTIVITY: DONE of TOTAL UNITS" and how long
/// the rest may take; the line is erased when all is done. Calls may not overlap. Null when stderr
/// is no terminal.
std::function<void(uint64_t done, uint64_t total)> makeProgressLine(std::string activity,
                                                                    std::string units);

} // namespace fp4
