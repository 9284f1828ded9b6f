//===- Glob.h - Names with wildcards --------------------------------------===//
#pragma once

#include <string>

namespace fp4 {

/// Returns true if the text matches a pattern of the shell, in which '*' stands for any characters.
bool matchesGlob(const char *pattern, const std::string &text);

} // namespace fp4
