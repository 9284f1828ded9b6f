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
                 std::span<uint64_t *const> arguments, std::span<uint64_t> results) {
  std::vector<void *> pointers;
  pointers.reserve(arguments.size() + 1);
  if (!results.empty())
    pointers.push_back(results.data());
  pointers.insert(pointers.end(), arguments.begin(), arguments.end());
  rt::Session::Scope scope(session);
  if (entry(pointers.data()) == 0)
    return {};
  return makeError(ErrorKind::Internal,
                   fmt::format("the library of '{}' is bound to no runtime", function.name));
}

} // namespace fp4
