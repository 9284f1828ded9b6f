//===- Explore.h - The page that --explore writes -------------------------===//
#pragma once

#include "Options.h"

#include "llvm/Support/JSON.h"

namespace fp4::runner {

/// Compiles and runs the program, and writes one self-contained page about it: the program at every
/// phase, the simulation over time, memory maps, layouts, hazards and the verdict. Returns the exit
/// code; a program that is wrong has a page too.
int exploreProgram(Compiler &compiler, const Options &options);

/// Places of elements and scales, from lib/ISA: tables that the page looks up.
llvm::json::Object layoutTables();

/// The PTX of a kernel, with lines from its .loc directives; SASS of its cubin, or the reason why
/// there is none.
llvm::json::Array codeListings(const KernelCode &kernel, std::string &why);

} // namespace fp4::runner
