//===- SourcePlace.h - Places in the source of a program ------------------===//
#pragma once

#include "Sim/Decode/ProgramImpl.h"
#include <string>

namespace fp4::sim {

/// "tcgen05_bugs.cu:32:20, inlined at tcgen05_bugs.cu:86:7": the place that .loc gives an
/// instruction, and the outermost call through which inlining brought it there. Empty when it is
/// not known.
std::string sourcePlace(const ProgramImpl &program, const Insn &insn);

} // namespace fp4::sim
