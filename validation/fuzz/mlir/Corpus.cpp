//===- Corpus.cpp - The parts of .mlir files ------------------------------===//
#include "Corpus.h"
#include <sstream>
#include <utility>

std::vector<std::string> fp4::fuzz::partsOf(const std::vector<std::filesystem::path> &corpus) {
  std::vector<std::string> parts;
  for (const auto &file : filesOf(corpus, {".mlir"})) {
    std::istringstream in(slurp(file));
    std::string part;
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("// -----") || line.starts_with("//---"))
        parts.push_back(std::exchange(part, {}));
      else
        part += line + "\n";
    }
    parts.push_back(std::move(part));
  }
  return parts;
}
