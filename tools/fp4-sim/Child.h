//===- Child.h - The program that fp4-sim runs ----------------------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace fp4::harness {

/// Starts `program` with the words of `command`, `prepare` called before in its process, and waits
/// for its end. Signals that ask this process to stop go to the program, and to what it started
/// unless the program shares the terminal; the program dies with this process. Returns the status
/// of waitpid(). `beside`, if there is one, is called with the process' number once it runs; then
/// the program does not share the terminal.
Expected<int> runChild(const std::string &program, const std::vector<std::string> &command,
                       const std::function<void()> &prepare,
                       const std::function<void(pid_t)> &beside = {});

/// A duplicate of a descriptor for the program, under a number that the program has no use for, or
/// any number where the limit of descriptors is low; -1 when there is none left.
int handDown(int file);

} // namespace fp4::harness
