//===- Emit.cpp - What --emit writes --------------------------------------===//
//
// Every file appears whole or not at all: it is written under another name and renamed.
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace fp4::runner {
namespace {

/// Standard output is flushed here, so that a full disk is the user's error and not LLVM's end.
Status writeToStream(llvm::raw_fd_ostream &stream, llvm::StringRef name, llvm::StringRef bytes) {
  stream << bytes;
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error();
  if (!error)
    return {};
  return makeError(ErrorKind::Usage, "cannot write " + name.str() + ": " + error.message(),
                   "its device or pipe takes no more");
}

/// Devices and pipes, which must never be replaced by a file of their name.
bool isSpecial(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  return !llvm::sys::fs::status(path, status) && llvm::sys::fs::is_other(status);
}

Status writeWhole(llvm::StringRef path, llvm::StringRef bytes) {
  if (path == "-")
    return writeToStream(llvm::outs(), "standard output", bytes);
  if (isSpecial(path)) {
    std::error_code code;
    llvm::raw_fd_ostream stream(path, code);
    if (!code)
      return writeToStream(stream, ("'" + path + "'").str(), bytes);
    return makeError(ErrorKind::Usage, "cannot open '" + path.str() + "': " + code.message());
  }
  llvm::Error error = llvm::writeToOutput(path, [&](llvm::raw_ostream &stream) {
    stream << bytes;
    return llvm::Error::success();
  });
  if (!error)
    return {};
  return makeError(ErrorKind::Usage,
                   "cannot write '" + path.str() + "': " + llvm::toString(std::move(error)),
                   "name a file in a directory that exists and is writable");
}

bool isDirectory(llvm::StringRef path) {
  return path.ends_with("/") || llvm::sys::fs::is_directory(path);
}

std::string moduleNames(const std::vector<KernelCode> &kernels) {
  std::string names;
  for (const KernelCode &kernel : kernels)
    names += (names.empty() ? "" : ", ") + kernel.module;
  return names;
}

/// The kernels that --kernel selects.
Expected<std::vector<KernelCode>> selectKernels(const Compiler &compiler, const Options &options) {
  std::vector<KernelCode> kernels = compiler.kernels();
  if (options.kernel.empty())
    return kernels;
  for (KernelCode &kernel : kernels)
    if (kernel.module == options.kernel)
      return std::vector<KernelCode>{std::move(kernel)};
  return makeError(ErrorKind::Usage, "the program has no kernel module '" + options.kernel + "'",
                   "it has: " + moduleNames(kernels));
}

Status writeToDirectory(const std::vector<KernelCode> &kernels, const Options &options) {
  if (std::error_code error = llvm::sys::fs::create_directories(options.output))
    return makeError(ErrorKind::Usage,
                     "cannot create '" + options.output + "': " + error.message());
  for (const KernelCode &kernel : kernels) {
    llvm::SmallString<128> path(options.output);
    std::string name = kernel.module + "." + options.emit; // MLIR's names may have any character
    std::replace(name.begin(), name.end(), '/', '_');
    llvm::sys::path::append(path, name);
    FP4_TRY(writeWhole(path, options.emit == "ptx" ? kernel.ptx : kernel.cubin));
  }
  return {};
}

Status emitKernels(const Compiler &compiler, const Options &options) {
  auto kernels = selectKernels(compiler, options);
  if (!kernels)
    return tl::unexpected<Error>(kernels.error());
  if (isDirectory(options.output))
    return writeToDirectory(*kernels, options);
  bool isText = options.emit == "ptx";
  if (options.output.empty() && isText) { // for reading: each module under its name
    std::string text;
    for (const KernelCode &kernel : *kernels)
      text += "// ---- " + kernel.module + "\n" + kernel.ptx + "\n";
    return writeWhole("-", text);
  }
  if (kernels->size() != 1)
    return makeError(ErrorKind::Usage,
                     "a file holds one kernel module, but the program has " +
                         std::to_string(kernels->size()),
                     "name a directory (-o DIRECTORY/), or choose with --kernel one of " +
                         moduleNames(*kernels));
  if (options.output.empty())
    return makeError(ErrorKind::Usage, "--emit=cubin must be given a file",
                     "add -o FILE.cubin; -o - writes to standard output");
  return writeWhole(options.output, isText ? kernels->front().ptx : kernels->front().cubin);
}

} // namespace

Status emitProgram(Compiler &compiler, const Options &options) {
  if (options.emit == "mlir") {
    FP4_TRY(compiler.compileTo(*parsePhase(options.phase)));
    return writeWhole(options.output.empty() ? "-" : options.output, compiler.ir());
  }
  if (options.emit == "ptx") {
    FP4_TRY(compiler.compileTo(Phase::Ptx));
    return emitKernels(compiler, options);
  }
  if (options.emit == "cubin") {
    FP4_TRY(compiler.checkAssembler());
    FP4_TRY(compiler.compileTo(Phase::Cubin));
    return emitKernels(compiler, options);
  }
  if (options.output.empty())
    return makeError(ErrorKind::Usage, "--emit=so must be given a file", "add -o FILE.so");
  if (isSpecial(options.output))
    return makeError(ErrorKind::Usage,
                     "'" + options.output + "' must be a regular file, but it is a device or pipe",
                     "a library is linked as a file: name another");
  Status assembler = compiler.checkAssembler();
  if (!assembler)
    llvm::errs() << "warning: the library holds PTX only: " << assembler.error().message << "\n";
  FP4_TRY(compiler.compileTo(assembler ? Phase::Cubin : Phase::Ptx));
  return compiler.writeLibrary(options.output);
}

} // namespace fp4::runner
