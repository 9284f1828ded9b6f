//===- Emit.cpp - The output of --emit ------------------------------------===//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "fp4/Support/InputFile.h"
#include "fp4/Support/OutputFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace fp4::runner {
namespace {

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
    FP4_TRY(writeFile(path.str().str(), options.emit == "ptx" ? kernel.ptx : kernel.cubin));
  }
  return {};
}

Status emitKernels(const Compiler &compiler, const Options &options) {
  FP4_ASSIGN(auto kernels, selectKernels(compiler, options));
  if (isDirectory(options.output))
    return writeToDirectory(kernels, options);
  bool isText = options.emit == "ptx";
  if (options.output.empty() && isText) { // for reading: each module under its name
    std::string text;
    for (const KernelCode &kernel : kernels)
      text += "// ---- " + kernel.module + "\n" + kernel.ptx + "\n";
    return writeFile("-", text);
  }
  if (kernels.size() != 1)
    return makeError(
        ErrorKind::Usage,
        "a file holds one kernel module, but the program has " + std::to_string(kernels.size()),
        "name a directory (-o DIRECTORY/), or choose with --kernel one of " + moduleNames(kernels));
  if (options.output.empty())
    return makeError(ErrorKind::Usage, "--emit=cubin must be given a file",
                     "add -o FILE.cubin; -o - writes to standard output");
  return writeFile(options.output, isText ? kernels.front().ptx : kernels.front().cubin);
}

} // namespace

Status emitProgram(Compiler &compiler, const Options &options) {
  if (options.emit == "mlir") {
    FP4_TRY(compiler.compileTo(*parsePhase(options.phase)));
    return writeFile(options.output.empty() ? "-" : options.output, compiler.ir());
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
  if (const char *special = kindOfSpecial(options.output))
    return makeError(ErrorKind::Usage,
                     "'" + options.output + "' must be a regular file, but it is " + special,
                     "a library is linked as a file: name another");
  FP4_ASSIGN(auto assembler, hasAssembler(compiler, "warning: the library holds PTX only"));
  FP4_TRY(checkDestination(options.output));
  FP4_TRY(compiler.compileTo(assembler ? Phase::Cubin : Phase::Ptx));
  return compiler.writeLibrary(options.output);
}

} // namespace fp4::runner
