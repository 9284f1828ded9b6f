//===- Help.h - A help that fits a screen -----------------------*- C++ -*-===//
//
// The tools of MLIR print hundreds of options of LLVM for --help. The tools of fp4 print a screen,
// and these options for --help-all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Version.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

namespace fp4 {

/// Prints `screen` and returns true if the command line asks for help.
inline bool printHelp(llvm::ArrayRef<char *> arguments, llvm::StringRef screen) {
  bool asks = llvm::any_of(arguments.drop_front(), [](llvm::StringRef text) {
    return text == "--help" || text == "-help" || text == "-h";
  });
  if (asks)
    llvm::outs() << screen;
  return asks;
}

/// Makes --version print the version of `tool` and of the LLVM beneath it.
inline void setVersion(llvm::StringRef tool) {
  llvm::cl::SetVersionPrinter([tool](llvm::raw_ostream &out) {
    out << versionText(tool) << "\nLLVM " << LLVM_VERSION_STRING << "\n";
  });
}

/// Turns --help-all into LLVM's --help. `arguments` are those of main.
inline void askForAllOptions(llvm::MutableArrayRef<char *> arguments) {
  static char help[] = "--help";
  for (char *&argument : arguments.drop_front())
    if (llvm::StringRef(argument) == "--help-all")
      argument = help;
}

} // namespace fp4
