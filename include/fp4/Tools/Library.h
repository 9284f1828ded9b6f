//===- Library.h - An emitted library as an engine ------------------------===//
#pragma once

#include "fp4/Tools/Engine.h"

namespace fp4::tools {

/// Opens a library that fp4-runner --emit=so wrote and reads its manifest. The library stays loaded
/// until the process ends. The executable must export the fp4rt_ functions.
Expected<Engine> openLibrary(const std::string &path);

} // namespace fp4::tools
