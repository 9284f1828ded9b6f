//===- TemporaryFolder.cpp - A folder for files of other programs ---------===//
#include "fp4/Support/TemporaryFolder.h"

#include "RemoveOnSignal.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>

namespace fp4 {

Expected<std::unique_ptr<TemporaryFolder>> TemporaryFolder::create(std::string_view prefix) {
  std::error_code failed;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(failed);
  std::string path = parent / fmt::format("fp4-{}-XXXXXX", prefix);
  if (failed || !mkdtemp(path.data()))
    return makeError(ErrorKind::Usage,
                     fmt::format("cannot create a temporary folder: {}",
                                 failed ? failed.message() : std::strerror(errno)),
                     "check that $TMPDIR is a folder that may be written to");
  const int slot = removeOnSignal(path);
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(std::move(path), slot));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code failed;
  std::filesystem::remove_all(path_, failed);
  keepOnSignal(slot_);
}

} // namespace fp4
