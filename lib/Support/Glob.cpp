//===- Glob.cpp - Names with wildcards ------------------------------------===//
#include "fp4/Support/Glob.h"

#include <fnmatch.h>

bool fp4::matchesGlob(const char *pattern, const std::string &text) {
  return fnmatch(pattern, text.c_str(), 0) == 0;
}
