//===- Progress.h - One line on stderr while a simulation is long ---------===//
#pragma once

#include <cstdint>
#include <functional>

namespace fp4::rt {

/// A callback that, from the second second of a launch on, shows how many blocks are done and how
/// long the rest may take; the line is erased at the end. Null when stderr is no terminal.
std::function<void(uint64_t done, uint64_t total)> makeProgressLine();

} // namespace fp4::rt
