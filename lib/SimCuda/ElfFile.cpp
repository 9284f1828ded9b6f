//===- ElfFile.cpp - Sections and needed libraries of an ELF file ---------===//
#include "fp4/SimCuda/ElfFile.h"
#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::simcuda;

using Bytes = std::span<const std::byte>;

/// [offset, offset + size) of `bytes`, or nothing.
static std::optional<Bytes> part(Bytes bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset)
    return std::nullopt;
  return bytes.subspan(offset, size);
}

template <typename T> static std::optional<T> read(Bytes bytes, uint64_t offset) {
  auto found = part(bytes, offset, sizeof(T));
  if (!found)
    return std::nullopt;
  T value;
  std::memcpy(&value, found->data(), sizeof(T));
  return value;
}

/// The zero-terminated string at `offset` of a string table. Names are short; without a bound a
/// damaged file could make each of many as long as itself.
static std::string_view text(Bytes table, uint64_t offset) {
  constexpr size_t kLongest = 4096;
  if (offset >= table.size())
    return {};
  const auto *begin = reinterpret_cast<const char *>(table.data() + offset);
  return {begin, strnlen(begin, std::min(table.size() - offset, kLongest))};
}

bool ElfFile::isElf(Bytes bytes) {
  return bytes.size() >= SELFMAG && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0;
}

Expected<ElfFile> ElfFile::open(Bytes bytes) {
  auto broken = [](std::string_view what) {
    return makeError(ErrorKind::Usage, fmt::format("a malformed ELF file: {}", what));
  };
  auto header = read<Elf64_Ehdr>(bytes, 0);
  if (!header || !isElf(bytes) || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB)
    return broken("must be 64-bit and little-endian");
  if (header->e_shoff > bytes.size())
    return broken("its section headers lie outside the file");
  ElfFile file;
  std::vector<Elf64_Shdr> headers;
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    auto section = read<Elf64_Shdr>(bytes, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section)
      return broken("its section headers lie outside the file");
    headers.push_back(*section);
  }
  for (const Elf64_Shdr &section : headers) {
    auto contents =
        section.sh_type == SHT_NOBITS ? Bytes{} : part(bytes, section.sh_offset, section.sh_size);
    if (!contents)
      return broken("a section lies outside the file");
    file.sections.push_back({"", section.sh_type, section.sh_link, *contents});
  }
  if (header->e_shstrndx < file.sections.size())
    for (size_t i = 0; i < headers.size(); ++i)
      file.sections[i].name = text(file.sections[header->e_shstrndx].bytes, headers[i].sh_name);
  return file;
}

std::optional<Bytes> ElfFile::section(std::string_view name) const {
  for (const Section &section : sections)
    if (section.name == name)
      return section.bytes;
  return std::nullopt;
}

std::vector<std::string> ElfFile::neededLibraries() const {
  std::vector<std::string> names;
  for (const Section &section : sections) {
    if (section.type != SHT_DYNAMIC || section.link >= sections.size())
      continue;
    for (uint64_t offset = 0; auto entry = read<Elf64_Dyn>(section.bytes, offset);
         offset += sizeof(Elf64_Dyn))
      if (entry->d_tag == DT_NEEDED)
        names.emplace_back(text(sections[section.link].bytes, entry->d_un.d_val));
    break; // a file has one
  }
  return names;
}
