//===- LinkedRuntime.h - A CUDA runtime inside of a program ---------------===//
#pragma once

#include "fp4/SimCuda/ElfFile.h"

namespace fp4::simcuda {

/// The file that stands for the runtime that nvcc has linked into `program`: libcudart.so.12 or 13;
/// empty where it has none. A linked runtime knows its functions by name, whether the program was
/// stripped or not, but the simulator finds them by the symbol table: an error where that is
/// missing.
Expected<std::string> linkedRuntime(const ElfFile &elf, std::span<const std::byte> file,
                                    const std::string &program);

/// The file of this process, of which only the pages that are looked at are read.
class OwnFile {
public:
  OwnFile();
  ~OwnFile();
  OwnFile(const OwnFile &) = delete;
  std::span<const std::byte> bytes() const { return mapped; }

private:
  std::span<const std::byte> mapped; ///< empty where it cannot be read
};

} // namespace fp4::simcuda
