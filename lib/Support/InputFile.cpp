//===- InputFile.cpp - Reading files whole --------------------------------===//
#include "fp4/Support/InputFile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <new>
#include <sys/stat.h>
#include <unistd.h>

namespace fp4 {
namespace {

const char *describe(mode_t mode) {
  switch (mode & S_IFMT) {
  case S_IFDIR:
    return "a directory";
  case S_IFCHR:
  case S_IFBLK:
    return "a device";
  case S_IFIFO:
    return "a pipe";
  case S_IFSOCK:
    return "a socket";
  default:
    return nullptr;
  }
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number > STDERR_FILENO)
      close(number);
  }
};

tl::unexpected<Error> unreadable(const std::string &path, const char *why) {
  return makeError(ErrorKind::Usage, fmt::format("cannot read '{}': {}", path, why),
                   "check the path");
}

uint64_t physicalMemory() {
  return uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGE_SIZE));
}

/// Reads all of `file`, up to `limit`. Some regular files (/proc) do not know their size.
template <typename Container>
Expected<Container> drain(int file, const std::string &path, uint64_t size, uint64_t limit) {
  limit = std::min(limit, physicalMemory());
  auto tooLarge = [&] {
    return makeError(ErrorKind::Usage,
                     fmt::format("'{}' must have at most {} bytes, but has more", path, limit));
  };
  if (size > limit)
    return tooLarge();
  Container bytes;
  constexpr size_t kChunk = 1 << 16;
  for (size_t have = 0;;) {
    bytes.resize(std::max<size_t>(have + kChunk, have ? bytes.size() : size + 1));
    ssize_t got = read(file, bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return unreadable(path, std::strerror(errno));
    have += static_cast<size_t>(got);
    if (have > limit)
      return tooLarge();
    if (got == 0) {
      bytes.resize(have);
      return bytes;
    }
  }
}

template <typename Container>
Expected<Container> readWhole(const std::string &path, uint64_t limit) {
  // A pipe that nobody writes to would block the opening.
  Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status;
  if (file.number < 0 || fstat(file.number, &status) != 0)
    return unreadable(path, std::strerror(errno));
  if (const char *special = describe(status.st_mode))
    return makeError(ErrorKind::Usage,
                     fmt::format("'{}' must be a regular file, but it is {}", path, special),
                     "nothing was read; save the content as a file and name that");
  try {
    return drain<Container>(file.number, path, static_cast<uint64_t>(status.st_size), limit);
  } catch (const std::bad_alloc &) {
    return unreadable(path, "this machine has too little memory");
  }
}

} // namespace

Expected<std::vector<std::byte>> readBytes(const std::string &path, uint64_t limit) {
  return readWhole<std::vector<std::byte>>(path, limit);
}

Expected<std::string> readText(const std::string &path, uint64_t limit) {
  return readWhole<std::string>(path, limit);
}

Expected<std::string> readStandardInput(uint64_t limit) {
  return drain<std::string>(STDIN_FILENO, "standard input", 0, limit);
}

const char *kindOfSpecial(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 ? describe(status.st_mode) : nullptr;
}

} // namespace fp4
