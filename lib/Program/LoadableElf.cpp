//===- LoadableElf.cpp - Checks of a file before dlopen -------------------===//
//
// Checks go from the outside in: segments, parts that other program headers describe, the entries
// of the dynamic section, the tables that these name (strings, symbols through their hash table,
// versions), and places that are written to and called (relocations, initialisers).
//
//===----------------------------------------------------------------------===//
#include "LoadableElf.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <elf.h> // law: names of fields of a file, and no call
#include <fmt/format.h>
#include <map>
#include <optional>
#include <vector>

namespace fp4 {
namespace {

using Bytes = std::span<const std::byte>;
constexpr uint64_t kPage = 4096, kMaxImage = uint64_t(1) << 32;

tl::unexpected<Error> damaged(std::string_view what) {
  return makeError(ErrorKind::Usage, std::string(what));
}

class Image {
public:
  explicit Image(Bytes file) : file(file) {}
  Status check();

private:
  Status readSegments(const Elf64_Ehdr &header);
  Status checkLoads() const;
  Status checkHeader(const Elf64_Phdr &header) const;
  Status readDynamic(uint64_t address);
  Status checkSizes() const;
  Status checkStrings() const;
  Status countByGnuHash(uint64_t address);
  Status countByHash(uint64_t address);
  Status checkSymbols();
  Status checkVersions();
  Status checkNeeded(uint64_t address);
  Status checkDefined(uint64_t address);
  Status checkRelocation(const Elf64_Rela &entry);
  Status checkRelocations(int64_t table, int64_t bytes);
  Status checkPackedRelocations();
  Status checkCalls() const;

  /// The bytes that the file gives the addresses [address, address + size).
  std::optional<Bytes> memory(uint64_t address, uint64_t size) const;
  template <typename T> std::optional<T> at(uint64_t address) const {
    auto bytes = memory(address, sizeof(T));
    T value;
    if (bytes)
      std::memcpy(&value, bytes->data(), sizeof(T));
    return bytes ? std::optional<T>(value) : std::nullopt;
  }
  /// Returns true when one segment with these flags has all of [address, address + size).
  bool mapped(uint64_t address, uint64_t size, uint32_t flags) const;
  std::optional<uint64_t> tag(int64_t which) const {
    auto found = dynamic.find(which);
    return found == dynamic.end() ? std::nullopt : std::optional<uint64_t>(found->second);
  }
  bool isString(uint64_t offset) const { return offset < tag(DT_STRSZ).value_or(0); }
  bool isCode(uint64_t address) const { return mapped(address, 1, PF_X) && memory(address, 1); }

  Bytes file;
  std::vector<Elf64_Phdr> headers, loads;
  std::map<int64_t, uint64_t> dynamic; ///< the last entry of each tag, as the loader keeps it
  std::vector<uint64_t> names;         ///< names of libraries: offsets of strings
  uint64_t symbols = 0;
  uint16_t machine = 0;
  uint16_t versions = 1;                  ///< the highest index of a version
  std::map<uint64_t, Elf64_Rela> written; ///< relocations by the address they write to
};

bool inside(uint64_t begin, uint64_t size, uint64_t outerBegin, uint64_t outerSize) {
  return begin >= outerBegin && size <= outerSize && begin - outerBegin <= outerSize - size;
}

std::optional<Bytes> Image::memory(uint64_t address, uint64_t size) const {
  for (const Elf64_Phdr &load : loads)
    if (inside(address, size, load.p_vaddr, load.p_filesz))
      return file.subspan(load.p_offset + (address - load.p_vaddr), size);
  return std::nullopt;
}

bool Image::mapped(uint64_t address, uint64_t size, uint32_t flags) const {
  return std::any_of(loads.begin(), loads.end(), [&](const Elf64_Phdr &load) {
    return (load.p_flags & flags) == flags && inside(address, size, load.p_vaddr, load.p_memsz);
  });
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

Status Image::readSegments(const Elf64_Ehdr &header) {
  const uint64_t bytes = uint64_t(header.e_phnum) * sizeof(Elf64_Phdr);
  if (!inside(header.e_phoff, bytes, 0, file.size()))
    return damaged("its program headers lie outside the file");
  headers.resize(header.e_phnum);
  if (bytes)
    std::memcpy(headers.data(), file.data() + header.e_phoff, bytes);
  for (const Elf64_Phdr &segment : headers)
    if (segment.p_type == PT_LOAD)
      loads.push_back(segment);
  return checkLoads();
}

/// Checks that segments come in ascending order, each on pages of its own, with all its bytes.
Status Image::checkLoads() const {
  uint64_t end = 0;
  for (const Elf64_Phdr &load : loads) {
    if (!inside(load.p_offset, load.p_filesz, 0, file.size()))
      return damaged("a segment lies outside the file");
    if (load.p_filesz > load.p_memsz || !(load.p_flags & PF_R) ||
        !std::has_single_bit(load.p_align) || load.p_align > kMaxImage)
      return damaged("a segment has an impossible size, alignment or access");
    if (load.p_vaddr / kPage * kPage < end || !inside(load.p_vaddr, load.p_memsz, 0, kMaxImage))
      return damaged("its segments overlap, or are not in order");
    end = (load.p_vaddr + load.p_memsz + kPage - 1) / kPage * kPage;
  }
  return {};
}

Status Image::checkHeader(const Elf64_Phdr &header) const {
  if (header.p_type == PT_LOAD || header.p_type == PT_GNU_STACK || header.p_memsz == 0)
    return {};
  const bool isTls = header.p_type == PT_TLS;
  if (!mapped(header.p_vaddr, isTls ? header.p_filesz : header.p_memsz, PF_R) ||
      (isTls && !std::has_single_bit(header.p_align)))
    return damaged("a program header describes what no segment has");
  if (header.p_type == PT_GNU_RELRO && !mapped(header.p_vaddr, header.p_memsz, PF_W))
    return damaged("a part that becomes read-only after relocation was not writable before");
  return {};
}

//===----------------------------------------------------------------------===//
// The dynamic section and the tables it names
//===----------------------------------------------------------------------===//

Status Image::readDynamic(uint64_t address) {
  for (;; address += sizeof(Elf64_Dyn)) {
    auto entry = at<Elf64_Dyn>(address);
    if (!entry || !mapped(address, sizeof(Elf64_Dyn), PF_W))
      return damaged("its dynamic section does not end in a writable segment");
    if (entry->d_tag == DT_NULL)
      return {};
    dynamic[entry->d_tag] = entry->d_un.d_val;
    for (int64_t names : {DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_AUXILIARY, DT_FILTER})
      if (entry->d_tag == names)
        this->names.push_back(entry->d_un.d_val);
  }
}

/// Checks sizes that the loader asserts.
Status Image::checkSizes() const {
  const std::pair<int64_t, uint64_t> fixed[] = {{DT_SYMENT, sizeof(Elf64_Sym)},
                                                {DT_RELAENT, sizeof(Elf64_Rela)},
                                                {DT_PLTREL, DT_RELA},
                                                {DT_RELRENT, sizeof(Elf64_Relr)}};
  for (auto [which, value] : fixed)
    if (tag(which).value_or(value) != value)
      return damaged("a table of its dynamic section has entries of a wrong size");
  const std::pair<int64_t, int64_t> together[] = {{DT_RELA, DT_RELASZ},
                                                  {DT_JMPREL, DT_PLTRELSZ},
                                                  {DT_RELR, DT_RELRSZ},
                                                  {DT_INIT_ARRAY, DT_INIT_ARRAYSZ},
                                                  {DT_FINI_ARRAY, DT_FINI_ARRAYSZ}};
  for (auto [table, bytes] : together)
    if (tag(table).has_value() != tag(bytes).has_value())
      return damaged("a table of its dynamic section has no size, or a size no table");
  const std::pair<int64_t, int64_t> needs[] = {{DT_RELA, DT_RELAENT},
                                               {DT_JMPREL, DT_PLTREL},
                                               {DT_RELR, DT_RELRENT},
                                               {DT_VERNEED, DT_VERSYM},
                                               {DT_VERDEF, DT_VERSYM}};
  for (auto [table, other] : needs)
    if (tag(table) && !tag(other))
      return damaged("a table of its dynamic section lacks the entry that says how to read it");
  for (int64_t unused : {DT_REL, DT_RELSZ, DT_PREINIT_ARRAY, DT_TEXTREL})
    if (tag(unused))
      return damaged("its dynamic section has an entry that libraries of this machine do not have");
  return {};
}

Status Image::checkStrings() const {
  auto table = tag(DT_STRTAB);
  const uint64_t bytes = tag(DT_STRSZ).value_or(0);
  auto text = table && bytes ? memory(*table, bytes) : std::nullopt;
  if (!text || text->back() != std::byte(0))
    return damaged("its string table lies outside its segments, or does not end");
  for (uint64_t name : names)
    if (!isString(name))
      return damaged("the name of a library lies outside the string table");
  return {};
}

/// Walks every chain to its end, as a search for a name does.
Status Image::countByGnuHash(uint64_t address) {
  const auto bad = damaged("its hash table is damaged");
  auto count = at<uint32_t>(address), first = at<uint32_t>(address + 4),
       words = at<uint32_t>(address + 8), shift = at<uint32_t>(address + 12);
  if (!count || !first || !words || !shift || *count == 0 || !std::has_single_bit(*words) ||
      *shift > 31 || !memory(address, 16 + uint64_t(*words) * 8 + uint64_t(*count) * 4))
    return bad;
  const uint64_t buckets = address + 16 + uint64_t(*words) * 8;
  const uint64_t chains = buckets + uint64_t(*count) * 4;
  symbols = *first;
  for (uint64_t i = 0; i < *count; ++i) {
    uint64_t symbol = *at<uint32_t>(buckets + i * 4);
    if (symbol == 0)
      continue;
    if (symbol < *first)
      return bad;
    // Chains are stored one behind the other: a chain that is known to end is not walked again.
    for (bool more = symbol >= symbols; more; ++symbol) {
      auto link = at<uint32_t>(chains + (symbol - *first) * 4);
      if (!link)
        return bad;
      more = !(*link & 1);
      symbols = symbol + 1;
    }
  }
  return {};
}

Status Image::countByHash(uint64_t address) {
  const auto bad = damaged("its hash table is damaged");
  auto buckets = at<uint32_t>(address), count = at<uint32_t>(address + 4);
  if (!buckets || !count || *buckets == 0 ||
      !memory(address, 8 + (uint64_t(*buckets) + *count) * 4))
    return bad;
  symbols = *count;
  std::vector<bool> seen(symbols);
  for (uint64_t i = 0; i < *buckets; ++i)
    for (uint32_t symbol = *at<uint32_t>(address + 8 + i * 4); symbol != 0;
         symbol = *at<uint32_t>(address + 8 + (uint64_t(*buckets) + symbol) * 4)) {
      if (symbol >= symbols || seen[symbol]) // chains share nothing and do not go in circles
        return bad;
      seen[symbol] = true;
    }
  return {};
}

Status Image::checkSymbols() {
  auto table = tag(DT_SYMTAB), gnu = tag(DT_GNU_HASH), hash = tag(DT_HASH);
  if (gnu)
    FP4_TRY(countByGnuHash(*gnu));
  else if (hash)
    FP4_TRY(countByHash(*hash));
  else
    return damaged("it has no hash table of its symbols");
  if (!table || !memory(*table, symbols * sizeof(Elf64_Sym)))
    return damaged("its symbol table lies outside its segments");
  for (uint64_t i = 0; i < symbols; ++i) {
    const auto symbol = *at<Elf64_Sym>(*table + i * sizeof(Elf64_Sym));
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if (!isString(symbol.st_name))
      return damaged("the name of a symbol lies outside the string table");
    // The loader looks for a hidden symbol in the library itself.
    if (symbol.st_shndx == SHN_UNDEF && ELF64_ST_VISIBILITY(symbol.st_other) == STV_DEFAULT)
      continue;
    const bool located = symbol.st_shndx != SHN_ABS && type != STT_TLS;
    const bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
    if ((symbol.st_value == 0 && type != STT_TLS) ||
        (located &&
         !(function ? isCode(symbol.st_value) : mapped(symbol.st_value, symbol.st_size, PF_R))))
      return damaged("a symbol lies outside its segments");
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Versions
//===----------------------------------------------------------------------===//

Status Image::checkVersions() {
  if (auto needed = tag(DT_VERNEED))
    FP4_TRY(checkNeeded(*needed));
  if (auto defined = tag(DT_VERDEF))
    FP4_TRY(checkDefined(*defined));
  auto table = tag(DT_VERSYM);
  if (!table)
    return {};
  if (!memory(*table, symbols * 2))
    return damaged("the versions of its symbols lie outside its segments");
  for (uint64_t i = 0; i < symbols; ++i)
    if ((*at<uint16_t>(*table + i * 2) & 0x7FFF) > versions)
      return damaged("a symbol has a version that is not defined");
  return {};
}

Status Image::checkNeeded(uint64_t address) {
  const auto bad = damaged("the versions that it needs are damaged");
  for (uint64_t next = 1; next != 0; address += next) { // forwards only: it ends
    auto need = at<Elf64_Verneed>(address);
    if (!need || !isString(need->vn_file) || need->vn_cnt == 0)
      return bad;
    uint64_t at = address + need->vn_aux;
    for (uint64_t step = 1; step != 0; at += step) {
      auto version = this->at<Elf64_Vernaux>(at);
      if (!version || !isString(version->vna_name))
        return bad;
      versions = std::max<uint16_t>(versions, version->vna_other & 0x7FFF);
      step = version->vna_next;
    }
    next = need->vn_next;
  }
  return {};
}

Status Image::checkDefined(uint64_t address) {
  for (uint64_t next = 1; next != 0; address += next) {
    auto definition = at<Elf64_Verdef>(address);
    auto name = definition ? at<Elf64_Verdaux>(address + definition->vd_aux) : std::nullopt;
    if (!name || !isString(name->vda_name))
      return damaged("the versions that it defines are damaged");
    versions = std::max<uint16_t>(versions, definition->vd_ndx & 0x7FFF);
    next = definition->vd_next;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Relocations and calls
//===----------------------------------------------------------------------===//

Status Image::checkRelocation(const Elf64_Rela &entry) {
  const bool x86 = machine == EM_X86_64;
  const uint64_t kind = ELF64_R_TYPE(entry.r_info), addend = static_cast<uint64_t>(entry.r_addend);
  if (ELF64_R_SYM(entry.r_info) >= std::max<uint64_t>(symbols, 1))
    return damaged("a relocation names a symbol that is not there");
  if (kind == 0)
    return {};
  if (!mapped(entry.r_offset, 8, PF_W))
    return damaged("a relocation writes outside its writable segments");
  if (kind == (x86 ? R_X86_64_COPY : R_AARCH64_COPY) ||
      (kind == (x86 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE) && !mapped(addend, 0, PF_R)) ||
      (kind == (x86 ? R_X86_64_IRELATIVE : R_AARCH64_IRELATIVE) && !isCode(addend)))
    return damaged("a relocation points outside its segments");
  written[entry.r_offset] = entry;
  return {};
}

Status Image::checkRelocations(int64_t table, int64_t bytes) {
  const uint64_t address = tag(table).value_or(0), size = tag(bytes).value_or(0);
  if (size && (size % sizeof(Elf64_Rela) || !memory(address, size)))
    return damaged("its relocations lie outside its segments");
  const uint64_t relative = table == DT_RELA ? tag(DT_RELACOUNT).value_or(0) : 0;
  for (uint64_t i = 0; i < size / sizeof(Elf64_Rela); ++i) {
    const auto entry = *at<Elf64_Rela>(address + i * sizeof(Elf64_Rela));
    if (i < relative && ELF64_R_TYPE(entry.r_info) !=
                            (machine == EM_X86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE))
      return damaged("it has fewer relative relocations than its dynamic section says");
    FP4_TRY(checkRelocation(entry));
  }
  return {};
}

/// Checks relative relocations, stored as addresses and bit maps of the words behind an address.
Status Image::checkPackedRelocations() {
  const uint64_t table = tag(DT_RELR).value_or(0), size = tag(DT_RELRSZ).value_or(0);
  if (size && (size % sizeof(Elf64_Relr) || !memory(table, size)))
    return damaged("its packed relocations lie outside its segments");
  const uint64_t kind = machine == EM_X86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE;
  auto relocate = [&](uint64_t slot) {
    const auto addend = static_cast<int64_t>(at<uint64_t>(slot).value_or(0));
    return checkRelocation({slot, kind, addend});
  };
  uint64_t next = 0;
  for (uint64_t offset = 0; offset < size; offset += sizeof(Elf64_Relr)) {
    const auto word = *at<Elf64_Relr>(table + offset);
    if (word & 1) {
      for (uint64_t bit = 1; bit < 64; ++bit)
        if (word >> bit & 1)
          FP4_TRY(relocate(next + (bit - 1) * 8));
      next += 63 * 8;
    } else {
      FP4_TRY(relocate(word));
      next = word + 8;
    }
  }
  return {};
}

/// Checks initialisers and finalisers: functions, and tables of relocated pointers to functions.
Status Image::checkCalls() const {
  for (int64_t function : {DT_INIT, DT_FINI})
    if (auto address = tag(function); address && !isCode(*address))
      return damaged("its initialiser lies outside its code");
  const std::pair<int64_t, int64_t> arrays[] = {{DT_INIT_ARRAY, DT_INIT_ARRAYSZ},
                                                {DT_FINI_ARRAY, DT_FINI_ARRAYSZ}};
  for (auto [table, bytes] : arrays) {
    const uint64_t begin = tag(table).value_or(0), size = tag(bytes).value_or(0);
    if (size % 8 || (size && !mapped(begin, size, PF_R)))
      return damaged("its initialisers lie outside its segments");
    for (uint64_t slot = begin; slot < begin + size; slot += 8) {
      auto pointer = written.find(slot);
      if (pointer == written.end() || (ELF64_R_SYM(pointer->second.r_info) == 0 &&
                                       !isCode(static_cast<uint64_t>(pointer->second.r_addend))))
        return damaged("an initialiser lies outside its code");
    }
  }
  return {};
}

Status Image::check() {
  Elf64_Ehdr header;
  if (file.size() < sizeof(header))
    return {};
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_phentsize != sizeof(Elf64_Phdr) ||
      header.e_type != ET_DYN)
    return {};
  machine = header.e_machine;
  FP4_TRY(readSegments(header));
  std::optional<uint64_t> dynamicAddress;
  for (const Elf64_Phdr &segment : headers) {
    FP4_TRY(checkHeader(segment));
    if (segment.p_type == PT_DYNAMIC)
      dynamicAddress = segment.p_vaddr;
  }
  if (!dynamicAddress)
    return {};
  FP4_TRY(readDynamic(*dynamicAddress));
  FP4_TRY(checkSizes());
  FP4_TRY(checkStrings());
  FP4_TRY(checkSymbols());
  FP4_TRY(checkVersions());
  FP4_TRY(checkRelocations(DT_RELA, DT_RELASZ));
  FP4_TRY(checkRelocations(DT_JMPREL, DT_PLTRELSZ));
  FP4_TRY(checkPackedRelocations());
  return checkCalls();
}

} // namespace

Status checkLoadable(std::span<const std::byte> file) { return Image(file).check(); }

} // namespace fp4
