//===- FatbinTest.cpp - Fat binaries: reading, choosing, refusing ---------===//
#include "fp4/SimCuda/Fatbin.h"
#include "../../lib/SimCuda/Lz4.h"
#include "FatbinWriter.h"
#include "fp4/SimCuda/ElfFile.h"
#include "fp4/Support/InputFile.h"
#include <elf.h>
#include <gmock/gmock.h>

using namespace fp4;
using namespace fp4::simcuda;
using test::Compression;
using test::FatbinWriter;
using ::testing::HasSubstr;

namespace {

std::span<const std::byte> view(const std::string &text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string ptxFor(const std::string &target) {
  return ".version 9.0\n.target " + target + ", debug\n.address_size 64\n.entry k() { ret; }\n";
}

TEST(Fatbin, ReadsWhatWasWritten) {
  for (Compression how : {Compression::None, Compression::Zstd}) {
    FatbinWriter writer;
    writer.addCubin(100);
    writer.addPtx(ptxFor("sm_100a"), 100, how);
    auto entries = readFatbin(view(writer.bytes()));
    ASSERT_TRUE(entries) << entries.error().message;
    ASSERT_EQ(entries->size(), 2u);
    EXPECT_EQ((*entries)[0].kind, EntryKind::Cubin);
    EXPECT_EQ((*entries)[1].kind, EntryKind::Ptx);
    EXPECT_EQ((*entries)[1].target, "sm_100a");
    EXPECT_EQ((*entries)[1].architecture, 100u);
    EXPECT_EQ((*entries)[1].ptx, ptxFor("sm_100a"));
  }
}

TEST(Fatbin, ReadsLz4) {
  // "\n.target sm_90\nabababababab": literals, then a match that overlaps what it writes.
  std::string text = "\n.target sm_90\nabababababab";
  std::string block = std::string("\xF6\x02", 2) + text.substr(0, 17) + std::string("\x02\x00", 2);
  std::string out;
  ASSERT_TRUE(decompressLz4(view(block), text.size(), out));
  EXPECT_EQ(out, text);
  FatbinWriter writer;
  writer.addPtx(text, 90, Compression::Lz4, block);
  auto entries = readFatbin(view(writer.bytes()));
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(entries->front().ptx, text);
  EXPECT_EQ(entries->front().target, "sm_90");
}

TEST(Fatbin, RefusesDamagedLz4) {
  std::string out;
  EXPECT_FALSE(decompressLz4(view(std::string("\x10", 1)), 4, out)) << "literals are cut off";
  EXPECT_FALSE(decompressLz4(view(std::string("\x10z\x05\x00", 4)), 8, out)) << "distance too far";
  EXPECT_FALSE(decompressLz4(view(std::string("\x10z\x00\x00", 4)), 8, out)) << "distance zero";
  EXPECT_FALSE(decompressLz4(view(std::string("\x10z\x02\x00", 4)), 5, out)) << "before the start";
  EXPECT_TRUE(decompressLz4(view(std::string("\x10z\x01\x00", 4)), 5, out)) << "at the start";
  EXPECT_FALSE(decompressLz4(view(std::string("\x1Fz\x01\x00\xFF\xFF", 6)), 8, out)) << "too long";
}

// A few bytes that say they are a gigabyte get no memory for it.
TEST(Fatbin, RefusesMoreTextThanTheFormatCanHold) {
  const auto errorOf = [](size_t textBytes, Compression how) {
    FatbinWriter writer;
    writer.addPtx(std::string(textBytes, 'x'), 90, how, std::string("\x1Fz\x01\x00\xFF\x00", 6));
    auto entries = readFatbin(view(writer.bytes()));
    return entries ? "none" : entries.error().message;
  };
  EXPECT_EQ(errorOf(6 * 255, Compression::Lz4),
            "a malformed fat binary: the LZ4 data of an entry is damaged");
  EXPECT_EQ(errorOf(6 * 255 + 1, Compression::Lz4),
            "a malformed fat binary: an entry has impossible sizes");
  EXPECT_EQ(errorOf(16 << 20, Compression::Zstd), "none") << "the densest there is";
}

// A length of 15 goes on in bytes up to the first that is not 255.
TEST(Fatbin, LongLengthsOfLz4) {
  for (unsigned last : {0u, 1u, 254u}) {
    const std::string text(15 + 255 + last, 'x');
    std::string out;
    EXPECT_TRUE(decompressLz4(view("\xF0\xFF" + std::string(1, char(last)) + text), text.size(), out))
        << last;
    EXPECT_EQ(out, text);
  }
}

TEST(Elf, NeededLibrariesAndSectionsOfAProgram) {
  auto bytes = readBytes(FP4_TEST_PROGRAM);
  ASSERT_TRUE(bytes);
  auto file = ElfFile::open(*bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_THAT(file->neededLibraries(), testing::Contains("libcudart.so.13"));
  EXPECT_TRUE(file->section(".text"));
  // A section may not be longer than the file, nor begin behind it.
  Elf64_Ehdr header;
  std::memcpy(&header, bytes->data(), sizeof header);
  for (uint64_t offset : {uint64_t(64), uint64_t(bytes->size()) + 1}) {
    std::vector<std::byte> damaged = *bytes;
    Elf64_Shdr section;
    std::byte *at = damaged.data() + header.e_shoff + sizeof section;
    std::memcpy(&section, at, sizeof section);
    section.sh_type = SHT_PROGBITS;
    section.sh_offset = offset;
    section.sh_size = bytes->size() - 63;
    std::memcpy(at, &section, sizeof section);
    auto broken = ElfFile::open(damaged);
    ASSERT_FALSE(broken) << offset;
    EXPECT_THAT(broken.error().message, HasSubstr("a section lies outside the file"));
  }
}

TEST(Fatbin, RefusesDamage) {
  FatbinWriter writer;
  writer.addPtx(ptxFor("sm_100a"), 100);
  std::string good = writer.bytes();
  auto messageOf = [](const std::string &bytes) {
    auto entries = readFatbin(view(bytes));
    return entries ? std::string("no error") : entries.error().message;
  };
  EXPECT_EQ(messageOf(good), "no error");
  EXPECT_THAT(messageOf("nothing"), HasSubstr("no magic number"));
  EXPECT_THAT(messageOf(good.substr(0, good.size() - 8)), HasSubstr("no magic number"));
  std::string zstd = good;
  zstd[16 + 64 + 8] = static_cast<char>(zstd[16 + 64 + 8] ^ 0x55);
  EXPECT_THAT(messageOf(zstd), HasSubstr("zstd data of an entry is damaged"));
  std::string length = good;
  length[16 + 8 + 3] = 1; // the payload of the entry reaches behind the container
  EXPECT_THAT(messageOf(length), HasSubstr("an entry is cut off"));
  length = good;
  length[16 + 8] = static_cast<char>(length[16 + 8] + 8); // by eight bytes only
  EXPECT_THAT(messageOf(length), HasSubstr("an entry is cut off"));
  // No damage of one byte makes the reader leave the container.
  for (size_t i = 0; i < good.size(); ++i)
    for (char flip : {'\x01', '\x80', '\xFF'}) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(bytes[i] ^ flip);
      (void)readFatbin(view(bytes));
    }
}

TEST(Fatbin, FindsContainersInAFile) {
  FatbinWriter first, second;
  first.addPtx(ptxFor("sm_90"), 90);
  second.addPtx(ptxFor("sm_100a"), 100);
  auto all = readFatbins(view(first.bytes() + std::string(8, '\0') + second.bytes()));
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[1].front().target, "sm_100a");
  auto none = readFatbins(view(".version 9.0\n"));
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
}

/// An ELF file of `count` sections named by one string table that is all of the file.
std::string elfOf(uint16_t count, uint64_t sectionOffset, size_t padding) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shoff = sectionOffset;
  header.e_shnum = count;
  const size_t size = sizeof(header) + count * sizeof(Elf64_Shdr) + padding;
  Elf64_Shdr section{};
  section.sh_type = SHT_DYNAMIC;
  section.sh_size = size;
  section.sh_name = static_cast<uint32_t>(size - padding);
  std::string text(reinterpret_cast<const char *>(&header), sizeof(header));
  for (uint16_t i = 0; i < count; ++i)
    text.append(reinterpret_cast<const char *>(&section), sizeof(section));
  return text + std::string(padding, 'n');
}

// Every name is as long as the file: what is read stays in proportion to the file.
TEST(Elf, NamesAreBounded) {
  const std::string file = elfOf(65000, sizeof(Elf64_Ehdr), 8 << 20);
  auto elf = ElfFile::open(view(file));
  ASSERT_TRUE(elf) << elf.error().message;
  EXPECT_FALSE(elf->section(".nv_fatbin"));
  EXPECT_FALSE(ElfFile::open(view(elfOf(2, ~uint64_t(63), 0)))) << "the offset wraps";
  EXPECT_TRUE(ElfFile::open(view(elfOf(2, sizeof(Elf64_Ehdr), 0))));
}

TEST(Fatbin, RunsOn) {
  EXPECT_TRUE(runsOn("sm_90", "sm_100a"));
  EXPECT_TRUE(runsOn("sm_100", "sm_100a"));
  EXPECT_TRUE(runsOn("sm_100a", "sm_100a"));
  EXPECT_TRUE(runsOn("sm_100f", "sm_103a"));
  EXPECT_FALSE(runsOn("sm_100f", "sm_120a"));
  EXPECT_FALSE(runsOn("sm_100a", "sm_103a"));
  EXPECT_FALSE(runsOn("sm_90a", "sm_100a"));
  EXPECT_FALSE(runsOn("sm_103", "sm_100a"));
  EXPECT_FALSE(runsOn("", "sm_100a"));
}

TEST(Fatbin, ChoosesTheMostSpecificText) {
  FatbinWriter writer;
  for (const char *target : {"sm_90a", "sm_80", "sm_100", "sm_100a", "sm_100f"})
    writer.addPtx(ptxFor(target), 100);
  auto entries = readFatbin(view(writer.bytes()));
  ASSERT_TRUE(entries);
  auto choice = [&](const char *chip) { return (*choosePtx(*entries, chip))->target; };
  EXPECT_EQ(choice("sm_100a"), "sm_100a");
  EXPECT_EQ(choice("sm_103a"), "sm_100f");
  EXPECT_EQ(choice("sm_120a"), "sm_100");
  EXPECT_EQ(choice("sm_90a"), "sm_90a");
}

TEST(Fatbin, SaysWhatThereIsInstead) {
  FatbinWriter codeOnly, other;
  codeOnly.addCubin(100);
  other.addPtx(ptxFor("sm_90a"), 90);
  auto none = choosePtx(*readFatbin(view(codeOnly.bytes())), "sm_100a");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "has no PTX, but machine code for sm_100");
  EXPECT_THAT(none.error().note, HasSubstr("arch=compute_100a,code=compute_100a"));
  auto wrong = choosePtx(*readFatbin(view(other.bytes())), "sm_100a");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "has PTX for sm_90a, but not for sm_100a");
  EXPECT_EQ(wrong.error().kind, ErrorKind::Device);
}

} // namespace
