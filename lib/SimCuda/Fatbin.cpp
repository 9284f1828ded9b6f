//===- Fatbin.cpp - The PTX that nvcc embedded in a program ---------------===//
//
// The layout is not documented by NVIDIA; these are the fields that fatbinary of CUDA 12 and 13
// writes, as seen in its output. Container: magic, version, bytes of the header, bytes of all
// entries. Entry: kind, bytes of its header and of its payload, architecture, flags.
//
//===----------------------------------------------------------------------===//
#include "fp4/SimCuda/Fatbin.h"
#include "Lz4.h"
#include "fp4/SimCuda/ElfFile.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <zstd.h>

using namespace fp4;
using namespace fp4::simcuda;

using Bytes = std::span<const std::byte>;

namespace {
constexpr uint32_t kMagic = 0xBA55ED50;
constexpr uint64_t kFlagLz4 = 0x2000, kFlagZstd = 0x8000;
constexpr size_t kMaxText = size_t(1) << 30;

struct ContainerHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t headerBytes;
  uint64_t entryBytes;
};
struct EntryHeader {
  uint16_t kind;
  uint16_t unused0;
  uint32_t headerBytes;
  uint64_t payloadBytes;
  uint32_t compressedBytes; ///< bytes of a compressed payload without its padding
  uint32_t unused1;
  uint16_t minorVersion, majorVersion;
  uint32_t architecture;
  uint64_t unused2;
  uint64_t flags;
  uint64_t unused3;
  uint64_t textBytes; ///< bytes of the text after decompression
};

template <typename T> T at(Bytes bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

tl::unexpected<Error> malformed(std::string_view what) {
  return makeError(ErrorKind::Usage, fmt::format("a malformed fat binary: {}", what));
}

/// The most that the format can make of a byte. LZ4 lengths go on in bytes of 255; a block of zstd
/// has at least 4 bytes and holds at most 128 KiB. Memory is only asked for what can be there.
uint64_t mostTextPerByte(const EntryHeader &header) {
  return header.flags & kFlagZstd ? (128 << 10) / 4 : 255;
}

Expected<std::string> decompress(const EntryHeader &header, Bytes payload) {
  if (!(header.flags & (kFlagLz4 | kFlagZstd)))
    return std::string(reinterpret_cast<const char *>(payload.data()), payload.size());
  if (header.textBytes > kMaxText || header.compressedBytes > payload.size() ||
      header.textBytes > header.compressedBytes * mostTextPerByte(header))
    return malformed("an entry has impossible sizes");
  payload = payload.first(header.compressedBytes);
  std::string text(header.textBytes, '\0');
  if (header.flags & kFlagZstd) {
    size_t got = ZSTD_decompress(text.data(), text.size(), payload.data(), payload.size());
    if (ZSTD_isError(got) || got != text.size())
      return malformed("the zstd data of an entry is damaged");
  } else if (!decompressLz4(payload, header.textBytes, text)) {
    return malformed("the LZ4 data of an entry is damaged");
  }
  return text;
}

Expected<FatbinEntry> readEntry(const EntryHeader &header, Bytes payload) {
  FatbinEntry entry;
  entry.architecture = header.architecture;
  entry.kind = header.kind == 1   ? EntryKind::Ptx
               : header.kind == 2 ? EntryKind::Cubin
                                  : EntryKind::Other;
  if (entry.kind != EntryKind::Ptx)
    return entry;
  FP4_ASSIGN(auto text, decompress(header, payload));
  entry.ptx = std::move(text);
  while (!entry.ptx.empty() && entry.ptx.back() == '\0')
    entry.ptx.pop_back();
  entry.target = targetOf(entry.ptx);
  return entry;
}

/// "sm_100a" as 100 and 'a'.
struct Architecture {
  unsigned number = 0;
  char suffix = 0; ///< 'a', 'f' or 0
};
Architecture architectureOf(std::string_view name) {
  Architecture result;
  if (name.substr(0, 3) != "sm_")
    return result;
  size_t i = 3;
  for (; i < name.size() && name[i] >= '0' && name[i] <= '9' && result.number < 10000; ++i)
    result.number = result.number * 10 + static_cast<unsigned>(name[i] - '0');
  result.suffix = i < name.size() ? name[i] : '\0';
  return result;
}
} // namespace

std::string fp4::simcuda::targetOf(std::string_view ptx) {
  size_t found = ptx.find("\n.target");
  if (found == std::string_view::npos)
    return "";
  std::string_view rest = ptx.substr(found + 8);
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  return std::string(rest.substr(0, rest.find_first_of(" \t,\r\n/")));
}

uint64_t fp4::simcuda::fatbinBytes(Bytes bytes) {
  if (bytes.size() < sizeof(ContainerHeader))
    return 0;
  auto header = at<ContainerHeader>(bytes, 0);
  uint64_t total = header.headerBytes + header.entryBytes;
  bool fits = header.magic == kMagic && header.headerBytes >= sizeof(ContainerHeader) &&
              header.entryBytes <= kMaxText && total <= bytes.size();
  return fits ? total : 0;
}

Expected<std::vector<FatbinEntry>> fp4::simcuda::readFatbin(Bytes container) {
  uint64_t end = fatbinBytes(container);
  if (!end)
    return malformed("its header has no magic number or impossible sizes");
  std::vector<FatbinEntry> entries;
  for (uint64_t offset = at<ContainerHeader>(container, 0).headerBytes; offset < end;) {
    if (end - offset < sizeof(EntryHeader))
      return malformed("an entry is cut off");
    auto header = at<EntryHeader>(container, offset);
    if (header.headerBytes < sizeof(EntryHeader) || header.headerBytes > end - offset ||
        header.payloadBytes > end - offset - header.headerBytes)
      return malformed("an entry is cut off");
    FP4_ASSIGN(auto entry, readEntry(header, container.subspan(offset + header.headerBytes,
                                                               header.payloadBytes)));
    entries.push_back(std::move(entry));
    offset += header.headerBytes + header.payloadBytes;
  }
  return entries;
}

Expected<std::vector<std::vector<FatbinEntry>>> fp4::simcuda::readFatbins(Bytes file) {
  std::vector<std::vector<FatbinEntry>> all;
  Bytes rest = file;
  if (ElfFile::isElf(file)) {
    FP4_ASSIGN(auto elf, ElfFile::open(file));
    rest = elf.section(".nv_fatbin").value_or(Bytes{});
  }
  while (uint64_t bytes = fatbinBytes(rest)) {
    FP4_ASSIGN(auto entries, readFatbin(rest.first(bytes)));
    all.push_back(std::move(entries));
    rest = rest.subspan(bytes);
    while (rest.size() >= 4 && at<uint32_t>(rest, 0) == 0) // padding between containers
      rest = rest.subspan(4);
  }
  return all;
}

bool fp4::simcuda::runsOn(std::string_view target, std::string_view chip) {
  Architecture wanted = architectureOf(target), have = architectureOf(chip);
  if (wanted.number == 0 || wanted.number > have.number)
    return false;
  if (wanted.suffix == 'a')
    return wanted.number == have.number && have.suffix == 'a';
  return wanted.suffix != 'f' || wanted.number / 10 == have.number / 10;
}

Expected<const FatbinEntry *> fp4::simcuda::choosePtx(const std::vector<FatbinEntry> &entries,
                                                      std::string_view chip) {
  const FatbinEntry *best = nullptr;
  auto rank = [](const FatbinEntry &entry) {
    Architecture a = architectureOf(entry.target);
    return std::pair(a.number, a.suffix == 'a' ? 2 : a.suffix == 'f' ? 1 : 0);
  };
  std::string texts, codes;
  for (const FatbinEntry &entry : entries) {
    if (entry.kind == EntryKind::Cubin)
      codes += fmt::format("{}sm_{}", codes.empty() ? "" : ", ", entry.architecture);
    if (entry.kind != EntryKind::Ptx)
      continue;
    texts += (texts.empty() ? "" : ", ") + entry.target;
    if (runsOn(entry.target, chip) && (!best || rank(entry) > rank(*best)))
      best = &entry;
  }
  if (best)
    return best;
  std::string message = texts.empty() ? fmt::format("has no PTX, but machine code for {}",
                                                    codes.empty() ? "nothing" : codes)
                                      : fmt::format("has PTX for {}, but not for {}", texts, chip);
  return makeError(
      ErrorKind::Device, std::move(message),
      fmt::format("the simulator runs PTX: compile with nvcc "
                  "-gencode arch=compute_{0},code=compute_{0}, choose another --device, or "
                  "name a folder that has the PTX of the kernels: --ptx-dir",
                  chip.substr(std::min<size_t>(3, chip.size()))));
}
