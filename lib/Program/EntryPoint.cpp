//===- EntryPoint.cpp - One call of compiled host code --------------------===//

#include "fp4/Program/EntryPoint.h"

#include "fp4/Reference/Descriptor.h"

#include <fmt/format.h>

namespace fp4 {

Status callEntry(rt::Session &session, fp4_entry_function entry, const harness::Function &function,
                 std::span<std::vector<uint64_t>> arguments, std::vector<uint64_t> &results) {
  size_t words = 0;
  for (const harness::Operand &result : function.results)
    words += harness::descriptorWords(result.type);
  results.assign(words, 0);
  std::vector<void *> pointers;
  if (words)
    pointers.push_back(results.data());
  for (std::vector<uint64_t> &descriptor : arguments)
    pointers.push_back(descriptor.data());
  rt::Session::Scope scope(session);
  if (entry(pointers.data()) == 0)
    return {};
  return makeError(ErrorKind::Internal,
                   fmt::format("the library of '{}' is bound to no runtime", function.name));
}

} // namespace fp4
