//===- Check.h - fp4-sim check --------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <string>

namespace fp4::harness {

/// Loads and decodes `path`: PTX text, a fat binary, or a program or library that carries some.
/// Prints its kernels and every instruction that the simulator does not know. `chip` ("sm_100a")
/// chooses among the texts of a fat binary; empty: all are read.
Status checkFile(const std::string &path, const std::string &chip);

} // namespace fp4::harness
