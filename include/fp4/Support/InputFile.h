//===- InputFile.h - Reading files whole ----------------------------------===//
//
// The one way in which tools read files that a user names. Directories, devices and pipes are
// refused: reading them would fail late, never end or never begin. So are files that are larger
// than the limit or than this machine's memory.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fp4 {

/// Of text that a person or a compiler wrote.
inline constexpr uint64_t kTextLimit = uint64_t(1) << 30;
/// Of programs, libraries and arrays.
inline constexpr uint64_t kBinaryLimit = uint64_t(1) << 36;

Expected<std::vector<std::byte>> readBytes(const std::string &path, uint64_t limit = kBinaryLimit);
Expected<std::string> readText(const std::string &path, uint64_t limit = kTextLimit);

/// What the standard input holds, to its end: it may be a pipe, which is what it is for.
Expected<std::string> readStandardInput(uint64_t limit = kTextLimit);

/// "a directory", "a device", "a pipe", "a socket" for what is no regular file and does exist; else
/// null.
const char *kindOfSpecial(const std::string &path);

} // namespace fp4
