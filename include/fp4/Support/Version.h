//===- Version.h - The version of this build --------------------*- C++ -*-===//
#pragma once

#include <string>
#include <string_view>

namespace fp4 {

/// Returns the line that a tool prints for --version: its name, the version of the project and the
/// revision that it was built from, as in "fp4-run 0.1.0 (revision 99d23f97c5b2)".
std::string versionText(std::string_view tool);

} // namespace fp4
