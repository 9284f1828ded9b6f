//===- PtxFolder.h - PTX files by the kernels that they have --------------===//
#pragma once

#include "fp4/Support/Error.h"
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fp4::simcuda {

/// The .ptx files of a folder, for kernels that a program has as machine code alone.
class PtxFolder {
public:
  explicit PtxFolder(std::string path) : path(std::move(path)) {}

  /// The file whose PTX a driver for `chip` would compile for `kernel`; of several the first by
  /// name. The error says what there is instead. A kernel that is not known is looked for in the
  /// files that are there now: compilers write them while the program runs.
  Expected<std::string> fileOf(std::string_view kernel, std::string_view chip);

private:
  struct File {
    std::string path, target;
  };
  void read();

  std::string path;
  std::map<std::string, std::vector<File>, std::less<>> files; ///< files of each kernel, by name
};

/// The names after `.entry`.
std::vector<std::string> kernelNames(std::string_view ptx);

} // namespace fp4::simcuda
