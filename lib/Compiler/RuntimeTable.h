//===- RuntimeTable.h - An emitted library calls the runtime through a table ----*- C++ -*-===//
#pragma once

namespace llvm {
class Module;
}

namespace fp4 {

/// Redirects calls of functions of fp4-c/Runtime.h. Host code calls them by name; afterwards the
/// calls of `module` go through an fp4rt_api of its own, and `module` defines `fp4_bind`, which
/// fills that table. The table begins with the functions that the process exports under the names,
/// or with null; entry functions return 1 while the table has no functions.
void bindThroughTable(llvm::Module &module);

} // namespace fp4
