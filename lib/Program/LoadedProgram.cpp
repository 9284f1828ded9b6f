//===- LoadedProgram.cpp - The functions of a program on a device ---------===//

#include "fp4/Program/Program.h"

namespace fp4 {
using namespace harness;

Expected<LoadedFunction *> LoadedProgram::function(std::string_view name) {
  FP4_ASSIGN(const Function *function, program_->manifest().find(name));
  std::scoped_lock lock(mutex_);
  if (auto it = functions_.find(function); it != functions_.end())
    return &it->second;
  FP4_ASSIGN(void *address, program_->resolve(function->symbol));
  auto entry = reinterpret_cast<fp4_entry_function>(address);
  return &functions_.try_emplace(function, *this, *function, entry).first->second;
}

Expected<std::vector<Type>> LoadedProgram::resultTypes(const Function &function,
                                                       std::span<const Type> arguments) const {
  FP4_ASSIGN(auto plan, LoadedFunction::planOf(function, arguments));
  return std::move(plan.results);
}

Status LoadedProgram::call(const Function &function, std::span<const Buffer> arguments,
                           std::span<Buffer> results, const CallOptions &options) {
  std::vector<Type> types;
  std::vector<Strides> strides;
  std::vector<Memory> in, out;
  for (const Buffer &argument : arguments) {
    types.push_back(argument.type);
    strides.push_back(argument.strides);
    in.push_back({argument.address, argument.bytes});
  }
  FP4_ASSIGN(auto plan, LoadedFunction::planOf(function, types, strides));
  out.resize(results.size());
  for (size_t i = 0; i < std::min(results.size(), plan.results.size()); ++i)
    if (results[i].address) {
      FP4_ASSIGN(out[i], LoadedFunction::placeOf(function, plan, i, results[i]));
    }
  FP4_ASSIGN(LoadedFunction * loaded, this->function(function.name));
  FP4_TRY(loaded->call(plan, in, out, options));
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = {plan.results[i], out[i].address, out[i].bytes,
                  out[i].pitch ? std::move(results[i].strides) : Strides()};
  return {};
}

} // namespace fp4
