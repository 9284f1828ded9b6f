//===- Library.h - An emitted library as a runner -------------------------===//
#pragma once

#include "fp4/Harness/Runner.h"

namespace fp4::harness {

/// Opens a library that fp4-runner --emit=so wrote and reads its manifest. The library stays loaded
/// until the process ends. Opening binds the library to this process' runtime (fp4_bind).
Expected<Runner> openLibrary(const std::string &path);

} // namespace fp4::harness
