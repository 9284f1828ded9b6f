//===- Child.h - The program that fp4-sim runs ----------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <functional>
#include <string>
#include <vector>

namespace fp4::harness {

/// Starts `program` with the words of `command`, `prepare` called before in its process, and waits
/// for its end. Signals that ask this process to stop go to the program, and to what it started
/// unless the program shares the terminal; the program dies with this process. Returns the status
/// of waitpid().
Expected<int> runChild(const std::string &program, const std::vector<std::string> &command,
                       const std::function<void()> &prepare);

} // namespace fp4::harness
