//===- Npy.h - NumPy's .npy files -----------------------------------------===//
//
// Reads and writes format versions 1 to 3, C order, little endian. Every malformed file is a Usage
// error that names the file, the byte or field, the value found and the value expected.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fp4::harness {

struct NpyArray {
  std::string descr;           ///< "<f4", "|u1", ...
  std::vector<int64_t> shape;  ///< () for a scalar
  std::vector<std::byte> data; ///< C order
  /// "(256, 1024) of '<f4'"
  std::string str() const;
};

Expected<NpyArray> parseNpy(std::span<const std::byte> bytes, const std::string &name);
Expected<NpyArray> readNpy(const std::string &path);
/// A reader never sees half a file (OutputFile.h).
Status writeNpy(const std::string &path, const NpyArray &array);

} // namespace fp4::harness
