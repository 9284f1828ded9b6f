//===- Explore.h - The page that --explore writes -------------------------===//
#pragma once

#include "Options.h"

#include "fp4/Explorer/Explorer.h"

namespace fp4::runner {

/// Compiles and runs the program, and writes one self-contained page about it: the program at every
/// phase, the simulation over time, memory maps, layouts, hazards and the verdict. Returns the exit
/// code; a program that is wrong has a page too.
int exploreProgram(Compiler &compiler, const Options &options);

/// Places of elements and scales, from lib/ISA: tables that the page looks up.
explorer::Json layoutTables();

} // namespace fp4::runner
