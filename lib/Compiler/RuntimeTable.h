//===- RuntimeTable.h - An emitted library calls the runtime through a table ----*- C++ -*-===//
#pragma once

namespace llvm {
class Module;
}

namespace fp4 {

/// Host code calls the functions of fp4-c/Runtime.h by name. After this the calls of `module` go
/// through an fp4rt_api of its own, and it defines `fp4_bind`, which fills that table. The table
/// begins with what the process exports under the names, or with null; entry functions return 1
/// while it has no functions.
void bindThroughTable(llvm::Module &module);

} // namespace fp4
