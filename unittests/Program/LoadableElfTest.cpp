//===- LoadableElfTest.cpp - Damaged libraries do not reach the loader ----===//
#include "../../lib/Program/LoadableElf.h"
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fstream>
#include <gmock/gmock.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace fp4 {
namespace {

using testing::HasSubstr;

/// The hand-written library, its headers, and a file that damaged copies are written to.
class LoadableElf : public testing::Test {
protected:
  void SetUp() override {
    std::ifstream in(FP4_HAND_LIBRARY, std::ios::binary);
    good.assign(std::istreambuf_iterator<char>(in), {});
    std::memcpy(&header, good.data(), sizeof(header));
    for (unsigned i = 0; i < header.e_phnum; ++i)
      if (segment(i).p_type == PT_DYNAMIC)
        dynamic = segment(i);
  }
  Elf64_Phdr segment(unsigned index) const {
    Elf64_Phdr result;
    std::memcpy(&result, good.data() + header.e_phoff + index * sizeof(result), sizeof(result));
    return result;
  }
  /// The error when `value` replaces the bytes at `offset`.
  template <typename T> std::string with(uint64_t offset, T value) const {
    std::string bytes = good;
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
    return check(bytes);
  }
  static std::string check(const std::string &bytes) {
    Status status = checkLoadable(std::as_bytes(std::span(bytes)));
    return status ? "none" : status.error().message;
  }
  /// Returns the place of the dynamic section's entry with this tag.
  uint64_t entry(int64_t tag) const {
    for (uint64_t at = dynamic.p_offset; at < dynamic.p_offset + dynamic.p_filesz;
         at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn found;
      std::memcpy(&found, good.data() + at, sizeof(found));
      if (found.d_tag == tag)
        return at;
    }
    ADD_FAILURE() << "no entry " << tag;
    return 0;
  }
  /// Tables lie in the first segment, whose addresses are offsets.
  uint64_t valueOf(int64_t tag) const {
    uint64_t value;
    std::memcpy(&value, good.data() + entry(tag) + offsetof(Elf64_Dyn, d_un), sizeof(value));
    return value;
  }
  uint64_t headersEnd() const { return header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr); }
  uint64_t fieldOfSegment(uint32_t type, size_t field) const {
    for (unsigned i = 0; i < header.e_phnum; ++i)
      if (segment(i).p_type == type)
        return header.e_phoff + i * sizeof(Elf64_Phdr) + field;
    ADD_FAILURE() << "no segment " << type;
    return 0;
  }

  std::string good;
  Elf64_Ehdr header;
  Elf64_Phdr dynamic{};
};

TEST_F(LoadableElf, EachPartIsChecked) {
  EXPECT_EQ(check(good), "none");
  EXPECT_EQ(check("no ELF file at all"), "none") << "dlopen refuses it by itself";
  EXPECT_EQ(with(EI_CLASS, char(ELFCLASS32)), "none");
  EXPECT_THAT(check(good.substr(0, 3000)), HasSubstr("outside the file"));
  EXPECT_THAT(with(offsetof(Elf64_Ehdr, e_phoff), ~uint64_t(0)),
              HasSubstr("program headers lie outside the file"));
  const uint64_t load = fieldOfSegment(PT_LOAD, 0);
  EXPECT_THAT(with(load + offsetof(Elf64_Phdr, p_filesz), uint64_t(1) << 40),
              HasSubstr("a segment lies outside the file"));
  EXPECT_THAT(with(load + offsetof(Elf64_Phdr, p_align), uint64_t(0)), HasSubstr("alignment"));
  EXPECT_THAT(with(load + offsetof(Elf64_Phdr, p_memsz), uint64_t(1) << 24),
              HasSubstr("its segments overlap"));
  EXPECT_THAT(with(fieldOfSegment(PT_DYNAMIC, offsetof(Elf64_Phdr, p_vaddr)), uint64_t(1) << 30),
              HasSubstr("describes what no segment has"));
}

TEST_F(LoadableElf, TheDynamicSectionIsChecked) {
  const size_t value = offsetof(Elf64_Dyn, d_un);
  EXPECT_THAT(with(entry(DT_STRTAB) + value, uint64_t(1) << 33), HasSubstr("string table"));
  EXPECT_THAT(with(entry(DT_SYMENT) + value, uint64_t(23)), HasSubstr("entries of a wrong size"));
  EXPECT_THAT(with(entry(DT_SYMTAB) + value, uint64_t(1) << 33), HasSubstr("symbol table"));
  EXPECT_THAT(with(entry(DT_GNU_HASH) + value, uint64_t(1) << 33), HasSubstr("hash table"));
  EXPECT_THAT(with(entry(DT_RELA) + value, uint64_t(1) << 33), HasSubstr("relocations"));
  EXPECT_THAT(with(entry(DT_RELA), int64_t(DT_REL)), HasSubstr("a size no table"));
  EXPECT_THAT(with(dynamic.p_offset + dynamic.p_filesz - sizeof(Elf64_Dyn), int64_t(DT_DEBUG)),
              testing::AnyOf("none", HasSubstr("does not end"))); // padding may end it
  EXPECT_THAT(with(entry(DT_INIT_ARRAY) + value, uint64_t(16)), HasSubstr("initialiser"));
}

/// Loads `bytes` in a process of its own; the signal that ended it, or 0.
int signalOfLoading(const std::string &bytes, const std::string &path) {
  std::ofstream(path, std::ios::binary) << bytes;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    if (void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
      (void)dlsym(library, "fp4_manifest");
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

// dlopen survives a file that is accepted: one damaged byte anywhere in the headers, the dynamic
// section and the tables. Nobody can check that an initialiser is the right function.
TEST_F(LoadableElf, WhatIsAcceptedLoads) {
  const std::string path = testing::TempDir() + "fp4-damaged-" + std::to_string(getpid()) + ".so";
  const uint64_t tables = headersEnd(), calls = entry(DT_INIT), last = entry(DT_FINI);
  std::vector<uint64_t> offsets;
  for (uint64_t at = 0; at < tables; ++at)
    offsets.push_back(at);
  for (uint64_t at = dynamic.p_offset; at < dynamic.p_offset + dynamic.p_filesz; ++at)
    if (at / 16 != calls / 16 && at / 16 != last / 16)
      offsets.push_back(at);
  for (uint64_t at = tables; at < valueOf(DT_RELA); at += 3)
    offsets.push_back(at);
  for (uint64_t at = 0; at < valueOf(DT_RELASZ); ++at)
    if (at % sizeof(Elf64_Rela) < offsetof(Elf64_Rela, r_addend))
      offsets.push_back(valueOf(DT_RELA) + at);
  unsigned accepted = 0;
  uint32_t random = 1;
  for (uint64_t at : offsets) {
    random = random * 1664525 + 1013904223;
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random >> 29)));
    if (check(bytes) != "none")
      continue;
    ++accepted;
    EXPECT_EQ(signalOfLoading(bytes, path), 0) << "offset " << at << ", bit " << (random >> 29);
  }
  std::remove(path.c_str());
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(offsets.size() - accepted, 100u);
}

} // namespace
} // namespace fp4
