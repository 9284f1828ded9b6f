//===- InputFile.h - Reading files whole ----------------------------------===//
//
// Tools read files that a user names with these functions. Directories, devices and pipes are
// refused, because reading them would fail late, never end or never begin. Files that are larger
// than the limit or than the memory of this machine are refused as well.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fp4 {

/// The limit for text that a person or a compiler wrote.
inline constexpr uint64_t kTextLimit = uint64_t(1) << 30;
/// The limit for programs, libraries and arrays.
inline constexpr uint64_t kBinaryLimit = uint64_t(1) << 36;

Expected<std::vector<std::byte>> readBytes(const std::string &path, uint64_t limit = kBinaryLimit);
Expected<std::string> readText(const std::string &path, uint64_t limit = kTextLimit);

/// Reads the standard input to its end; it may be a pipe.
Expected<std::string> readStandardInput(uint64_t limit = kTextLimit);

/// "a directory", "a device", "a pipe", "a socket" for something that exists and is not a regular
/// file; otherwise null.
const char *kindOfSpecial(const std::string &path);

} // namespace fp4
