//===- TemporaryFolder.h - A folder for files of other programs -----------===//
#pragma once

#include "fp4/Support/Error.h"
#include <memory>
#include <string>
#include <string_view>

namespace fp4 {

/// A folder in the system's temporary folder, removed with all that it holds when the object
/// goes, and with its files by a signal that ends the process.
class TemporaryFolder {
public:
  /// A usage error where the system's temporary folder cannot be written to.
  static Expected<std::unique_ptr<TemporaryFolder>> create(std::string_view prefix);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  const std::string &path() const { return path_; }

private:
  TemporaryFolder(std::string path, int slot) : path_(std::move(path)), slot_(slot) {}
  std::string path_;
  int slot_; ///< slot of removeOnSignal
};

} // namespace fp4
