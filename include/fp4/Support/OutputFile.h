//===- OutputFile.h - Files that appear whole or not at all ---------------===//
//
// Writes files for tools and libraries. A file is written next to its final name, flushed to the
// disk and renamed at the end, so readers see the old or the new file, complete. A full disk, a
// limit or a signal that ends the process leaves the old file and nothing else.
//
//   auto file = OutputFile::open("trace.json");
//   (*file)->stream() << ...;
//   FP4_TRY((*file)->commit());
//
// Devices and pipes cannot be replaced; they are written directly. Every error is of
// ErrorKind::Usage and has the path and the words of the system.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"

#include <cstddef>
#include <memory>
#include <ostream>
#include <span>
#include <string_view>

namespace fp4 {

class OutputFile {
public:
  static Expected<std::unique_ptr<OutputFile>> open(const std::string &path);
  /// Leaves the file unwritten without a commit.
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  /// commit() returns the errors of this stream.
  std::ostream &stream();
  /// Gives the file its name. Call it once.
  Status commit();

  const std::string &path() const;
  /// The temporary name until then; empty for a device or a pipe.
  const std::string &temporary() const;

private:
  struct Impl;
  explicit OutputFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// Opens, writes and commits; "-" is the standard output.
Status writeFile(const std::string &path, std::string_view bytes);
inline Status writeFile(const std::string &path, std::span<const std::byte> bytes) {
  return writeFile(path,
                   std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
}

/// Writes after the earlier output of the process; `what` names it in the message.
Status writeStandardOutput(std::string_view text, std::string_view what);

/// Checks that writeFile can begin. Call this before work that takes long.
Status checkDestination(const std::string &path);

/// A file in the system's temporary folder that other programs write and read. The file is removed
/// with this object, and by a signal that ends the process.
class TemporaryFile {
public:
  static Expected<std::unique_ptr<TemporaryFile>> create(std::string_view suffix);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;

  const std::string &path() const { return path_; }

private:
  TemporaryFile(std::string path, int slot) : path_(std::move(path)), slot_(slot) {}
  std::string path_;
  int slot_;
};

} // namespace fp4
