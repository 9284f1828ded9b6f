//===- Version.cpp - The version of this build ----------------------------===//
#include "fp4/Support/Version.h"
#include "fp4-revision.h"
#include <fmt/format.h>

std::string fp4::versionText(std::string_view tool) {
  return fmt::format("{} {} (revision {})", tool, FP4_VERSION, FP4_REVISION);
}
