//===- PipeBytecode.h - Versions of bytecode of the pipe dialect -----------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace fp4::pipe {

/// Lets the dialect write its version to bytecode, and read those of earlier releases.
void addBytecode(PipeDialect *dialect);

} // namespace fp4::pipe
