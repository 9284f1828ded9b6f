//===- ElfFile.h - Sections and needed libraries of an ELF file -----------===//
#pragma once

#include "fp4/Support/Error.h"
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fp4::simcuda {

/// A view of a 64-bit little-endian ELF file; `bytes` must outlive it. An access outside of the
/// file is an error, never a read.
class ElfFile {
public:
  static bool isElf(std::span<const std::byte> bytes);
  static Expected<ElfFile> open(std::span<const std::byte> bytes);

  /// The bytes of a section, or nothing when the file has none of that name.
  std::optional<std::span<const std::byte>> section(std::string_view name) const;
  /// DT_NEEDED: "libcudart.so.13", ...
  std::vector<std::string> neededLibraries() const;

private:
  struct Section {
    std::string_view name;
    uint32_t type = 0, link = 0;
    std::span<const std::byte> bytes;
  };
  std::vector<Section> sections;
};

} // namespace fp4::simcuda
