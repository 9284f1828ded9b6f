//===- OutputFile.cpp - Files that appear whole or not at all -------------===//
#include "fp4/Support/OutputFile.h"

#include "RemoveOnSignal.h"
#include "fp4/Support/InputFile.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <iostream>
#include <streambuf>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fp4 {
namespace {

constexpr const char *kFolderNote = "name a file in a folder that exists and may be written to";

tl::unexpected<Error> cannotWrite(const std::string &path, int error, std::string note) {
  return makeError(ErrorKind::Usage,
                   fmt::format("cannot write '{}': {}", path, std::strerror(error)),
                   std::move(note));
}

/// Keeps SIGXFSZ away from this thread: a file that grows beyond RLIMIT_FSIZE is an error of
/// write() like a full disk, and not the end of the process.
class WithoutFileSizeSignal {
public:
  WithoutFileSizeSignal() {
    sigemptyset(&signal);
    sigaddset(&signal, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal, &before);
  }
  ~WithoutFileSizeSignal() {
    const int error = errno;
    const timespec now = {};
    if (!sigismember(&before, SIGXFSZ))
      sigtimedwait(&signal, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = error;
  }

private:
  sigset_t signal, before;
};

/// Writes all of `bytes` and returns the errno, or 0.
int writeAll(int file, std::string_view bytes) {
  WithoutFileSizeSignal without;
  while (!bytes.empty()) {
    ssize_t wrote = write(file, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote < 0)
      return errno;
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return 0;
}

/// A buffer in front of a file descriptor that keeps the first error.
class DescriptorBuffer : public std::streambuf {
public:
  DescriptorBuffer() { setp(buffer.data(), buffer.data() + buffer.size()); }
  int file = -1;
  int error = 0;

protected:
  int sync() override {
    if (!error)
      error = writeAll(file, {pbase(), static_cast<size_t>(pptr() - pbase())});
    setp(buffer.data(), buffer.data() + buffer.size());
    return error ? -1 : 0;
  }
  int overflow(int c) override {
    if (sync() != 0)
      return traits_type::eof();
    if (c != traits_type::eof())
      sputc(static_cast<char>(c));
    return 0;
  }
  std::streamsize xsputn(const char *text, std::streamsize count) override {
    if (count < epptr() - pptr())
      return std::streambuf::xsputn(text, count);
    if (sync() != 0)
      return 0;
    error = writeAll(file, {text, static_cast<size_t>(count)});
    return error ? 0 : count;
  }

private:
  std::array<char, 1 << 16> buffer;
};

/// The target of a symbolic link, so that the link stays one.
std::string resolve(const std::string &path) {
  std::error_code failed;
  auto target = std::filesystem::canonical(path, failed);
  return failed ? path : target.string();
}

/// Creates a new file, of the first name of `nameOf` that no file has. Returns its descriptor, its
/// name in `path` and its `slot` of removeOnSignal, which has the name before the file is there. A
/// negative result is an errno.
int createNew(const std::function<std::string(unsigned)> &nameOf, mode_t mode, std::string &path,
              int &slot) {
  for (unsigned attempt = 0; attempt < 100; ++attempt) {
    path = nameOf(attempt);
    slot = removeOnSignal(path);
    int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0) {
      if (hasComeFor(slot)) // in another thread, before the file was there
        unlink(path.c_str());
      return file;
    }
    const int error = errno;
    keepOnSignal(std::exchange(slot, -1));
    errno = error;
    if (error != EEXIST)
      return file;
  }
  return -1;
}

/// Creates a new file beside `path`.
int createBeside(const std::filesystem::path &path, std::string &temporary, int &slot) {
  constexpr size_t kLongest = 200; // of the 255 that a name may have
  const std::string name = path.filename().string().substr(0, kLongest);
  auto nameOf = [&](unsigned attempt) -> std::string {
    return path.parent_path() / fmt::format("{}.tmp.{}.{}", name, getpid(), attempt);
  };
  return createNew(nameOf, 0666, temporary, slot);
}

} // namespace

struct OutputFile::Impl {
  std::string path;      ///< path that the user gave
  std::string target;    ///< the file that will be replaced
  std::string temporary; ///< empty: the file is a device or a pipe
  int slot = -1;         ///< slot of removeOnSignal
  DescriptorBuffer buffer;
  std::ostream stream{&buffer};

  Status openSpecial();
  Status openBeside();
  Status commit();
  void discard();
};

Status OutputFile::Impl::openSpecial() {
  buffer.file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  return buffer.file >= 0 ? Status() : cannotWrite(path, errno, "");
}

Status OutputFile::Impl::openBeside() {
  target = resolve(path);
  struct stat old = {};
  const bool replaces = stat(target.c_str(), &old) == 0;
  if (replaces && access(target.c_str(), W_OK) != 0)
    return cannotWrite(path, errno, "the file is there and may not be changed");
  buffer.file = createBeside(target, temporary, slot);
  if (buffer.file < 0) {
    temporary.clear();
    return cannotWrite(path, errno, kFolderNote);
  }
  if (replaces)
    (void)fchmod(buffer.file, old.st_mode & 07777);
  return {};
}

Status OutputFile::Impl::commit() {
  stream.flush();
  if (buffer.file < 0)
    return makeError(ErrorKind::Internal, fmt::format("'{}' is committed twice", path));
  if (!buffer.error && !temporary.empty() && fsync(buffer.file) != 0)
    buffer.error = errno;
  if (close(buffer.file) != 0 && !buffer.error)
    buffer.error = errno;
  buffer.file = -1;
  if (buffer.error)
    return cannotWrite(path, buffer.error,
                       temporary.empty() ? "its device or pipe takes no more"
                                         : "nothing was written: what had this name still has it");
  if (temporary.empty())
    return {};
  if (std::rename(temporary.c_str(), target.c_str()) != 0)
    return cannotWrite(path, errno, "nothing was written: what had this name still has it");
  temporary.clear();
  return {};
}

void OutputFile::Impl::discard() {
  if (buffer.file >= 0)
    close(buffer.file);
  if (!temporary.empty())
    unlink(temporary.c_str());
  keepOnSignal(slot);
}

OutputFile::OutputFile(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
OutputFile::~OutputFile() { impl->discard(); }

std::ostream &OutputFile::stream() { return impl->stream; }
const std::string &OutputFile::path() const { return impl->path; }
const std::string &OutputFile::temporary() const { return impl->temporary; }
Status OutputFile::commit() { return impl->commit(); }

Expected<std::unique_ptr<OutputFile>> OutputFile::open(const std::string &path) {
  const char *special = kindOfSpecial(path);
  if (special && std::filesystem::is_directory(path))
    return makeError(ErrorKind::Usage, fmt::format("cannot write '{}': it is a directory", path),
                     kFolderNote);
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  FP4_TRY(special ? impl->openSpecial() : impl->openBeside());
  return std::unique_ptr<OutputFile>(new OutputFile(std::move(impl)));
}

Status writeFile(const std::string &path, std::string_view bytes) {
  if (path == "-")
    return writeStandardOutput(bytes, "output");
  FP4_ASSIGN(auto file, OutputFile::open(path));
  file->stream().write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return file->commit();
}

Status writeStandardOutput(std::string_view text, std::string_view what) {
  errno = EIO; // an earlier print had failed already
  const bool flushed = std::cout.flush().good() && std::fflush(stdout) == 0 && !std::ferror(stdout);
  const int error = flushed ? writeAll(STDOUT_FILENO, text) : errno;
  if (!error)
    return {};
  return makeError(
      ErrorKind::Usage,
      fmt::format("cannot write the {} to standard output: {}", what, std::strerror(error)),
      "its device or pipe takes no more");
}

Status checkDestination(const std::string &path) {
  if (path == "-" || (kindOfSpecial(path) && !std::filesystem::is_directory(path)))
    return {};
  auto file = OutputFile::open(path);
  return file ? Status() : tl::unexpected<Error>(std::move(file.error()));
}

//===----------------------------------------------------------------------===//
// Files for other programs
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<TemporaryFile>> TemporaryFile::create(std::string_view suffix) {
  static std::atomic<unsigned> number = 0;
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  auto nameOf = [&](unsigned) -> std::string {
    return folder / fmt::format("fp4-{}-{}.{}", getpid(), number++, suffix);
  };
  std::string path;
  int slot = -1, file = failed ? -1 : createNew(nameOf, 0600, path, slot);
  if (file < 0)
    return makeError(ErrorKind::Usage,
                     fmt::format("cannot create a temporary file: {}",
                                 failed ? failed.message() : std::strerror(errno)),
                     "check that $TMPDIR is a folder that may be written to");
  close(file);
  return std::unique_ptr<TemporaryFile>(new TemporaryFile(std::move(path), slot));
}

TemporaryFile::~TemporaryFile() {
  unlink(path_.c_str());
  keepOnSignal(slot_);
}

} // namespace fp4
