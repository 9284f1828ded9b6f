//===- EntryPoint.h - One call of compiled host code ----------------------===//
#pragma once

#include "fp4/Reference/Manifest.h"
#include "fp4/Runtime/Session.h"

namespace fp4 {

/// The words of the descriptors of all results.
size_t resultWords(const harness::Function &function);

/// Calls the entry point of `function` in `session`. `descriptors` are those of the results, one
/// after the other behind one pointer, if there are any, and then that of each argument. Errors of
/// the host code stay in the session.
Status callEntry(rt::Session &session, fp4_entry_function entry, const harness::Function &function,
                 std::span<void *> descriptors);

} // namespace fp4
