//===- Shell.h - Runs commands and keeps what they print ------------------===//
#pragma once

#include <array>
#include <cstdio>
#include <string>
#include <sys/wait.h>

namespace fp4::simcuda::test {

struct Outcome {
  int code = -1;
  std::string output; ///< stdout and stderr
};

inline Outcome shell(const std::string &command) {
  Outcome result;
  FILE *pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe)
    return result;
  std::array<char, 4096> buffer;
  while (size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), got);
  int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

} // namespace fp4::simcuda::test
