//===- SharedLibrary.h - Code that is loaded while the program runs -------===//
#pragma once

#include <string>

namespace fp4 {

/// A shared library, which stays loaded until the process ends, and whose symbols no other finds.
class SharedLibrary {
public:
  /// Loads the file, or the library that the system finds under a name without a slash.
  explicit SharedLibrary(const std::string &name);

  explicit operator bool() const { return handle_ != nullptr; }
  /// Reason of the loader where nothing was loaded.
  const std::string &error() const { return error_; }
  /// The address of a symbol; null where the library has none of that name.
  void *find(const char *symbol) const;

private:
  void *handle_;
  std::string error_;
};

} // namespace fp4
