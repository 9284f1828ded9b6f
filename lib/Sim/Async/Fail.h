//===- Fail.h - An error of the simulated program ---------------*- C++ -*-===//
#pragma once

#include "fp4/Support/Error.h"
#include <string>

namespace fp4::sim {

/// Returns an error of kind Simulation: the program that is executed is wrong.
inline tl::unexpected<Error> fail(std::string message, std::string note = "") {
  return makeError(ErrorKind::Simulation, std::move(message), std::move(note));
}

} // namespace fp4::sim
