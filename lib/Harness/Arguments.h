//===- Arguments.h - From a command line to the tensors a function gets ---===//
//
// Binding of --input, --dim and --shape to the arguments of one function: first files, then named
// sizes, then one common size for the other dynamic dimensions. Remaining arguments are generated.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Harness/Runner.h"

namespace fp4::harness {

struct BoundArguments {
  std::vector<Tensor> values;
  std::vector<std::string> sources; ///< "gaussian, seed 1" or "x.npy"
  std::vector<std::string> notes;   ///< notes for the user: a size that was assumed
};

struct Prepared {
  BoundArguments arguments;
  std::vector<ReferenceValue> expected; ///< empty: nobody asked for it, or there is no program
};

Expected<BoundArguments> bindArguments(const Function &function, const RunOptions &options);

/// Splits "NAME=VALUE"; an Error names the option.
Expected<std::pair<std::string, std::string>> splitAssignment(const std::string &text,
                                                              const char *option);

/// The operand called `name`, or an Error that lists the names there are.
Expected<size_t> findOperand(const std::vector<Operand> &operands, const std::string &name,
                             const char *what);

} // namespace fp4::harness
