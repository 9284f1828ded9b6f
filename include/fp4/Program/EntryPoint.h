//===- EntryPoint.h - One call of compiled host code ----------------------===//
#pragma once

#include "fp4/Reference/Manifest.h"
#include "fp4/Runtime/Session.h"

namespace fp4 {

/// Calls the entry point of `function` in `session` with the descriptors of its arguments, and
/// writes those of its results, one after the other. Errors of the host code stay in the session.
Status callEntry(rt::Session &session, fp4_entry_function entry, const harness::Function &function,
                 std::span<std::vector<uint64_t>> arguments, std::vector<uint64_t> &results);

} // namespace fp4
