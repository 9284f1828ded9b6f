//===- OutputFile.h - Files that appear whole or not at all ---------------===//
//
// The one way in which tools and libraries write files. A file is written beside its name, brought
// to the disk and renamed at the end: who opens it sees the old one or the new one, whole. A full
// disk, a limit or a signal that ends the process leaves the old one, and nothing beside it.
//
//   auto file = OutputFile::open("trace.json");
//   (*file)->stream() << ...;
//   FP4_TRY((*file)->commit());
//
// Devices and pipes cannot be replaced and are written to as they are. Every error is of
// ErrorKind::Usage and has the path and what the system says of it.
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
  /// Without a commit before, nothing has been written.
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  /// What fails here is told by commit().
  std::ostream &stream();
  /// The file gets its name. Once.
  Status commit();

  const std::string &path() const;
  /// The name it has until then; empty for a device or a pipe.
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

/// Behind whatever the process printed; `what` names it in the message.
Status writeStandardOutput(std::string_view text, std::string_view what);

/// Whether writeFile could begin: for what takes long to make.
Status checkDestination(const std::string &path);

/// A file of the system's temporary folder that other programs write and read. Removed with this
/// object, and by a signal that ends the process.
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
