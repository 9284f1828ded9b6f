//===- EntryPoint.cpp - One call of compiled host code --------------------===//

#include "fp4/Program/EntryPoint.h"

#include "fp4/Reference/Descriptor.h"

#include <fmt/format.h>

namespace fp4 {

size_t resultWords(const harness::Function &function) {
  size_t words = 0;
  for (const harness::Operand &result : function.results)
    words += harness::descriptorWords(result.type);
  return words;
}

Status callEntry(rt::Session &session, fp4_entry_function entry, const harness::Function &function,
                 std::span<void *> descriptors) {
  rt::Session::Scope scope(session);
  if (entry(descriptors.data()) == 0)
    return {};
  return makeError(ErrorKind::Internal,
                   fmt::format("the library of '{}' is bound to no runtime", function.name));
}

} // namespace fp4
