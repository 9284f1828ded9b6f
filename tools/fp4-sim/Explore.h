//===- Explore.h - The page of a program ----------------------------------===//
#pragma once

#include "Run.h"
#include "fp4/Support/OutputFile.h"
#include "fp4/Support/TemporaryFolder.h"
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

namespace fp4::harness {

/// Files that `fp4-sim run --explore` asks the program's process for, and the page made of them.
class Exploration {
public:
  /// Changes `options` so that the run leaves PTX and a trace in files that live as long as the
  /// object.
  static Expected<std::unique_ptr<Exploration>> prepare(ProgramOptions &options);
  Exploration(const Exploration &) = delete;

  /// `report`: what --json prints; `faults`: messages of kernels that failed.
  Status write(const ProgramOptions &options, const nlohmann::ordered_json &report,
               const std::vector<std::string> &faults) const;

private:
  Exploration() = default;
  std::filesystem::path folder;             ///< folder of the PTX
  std::unique_ptr<TemporaryFolder> own;     ///< null: the folder is the user's
  std::unique_ptr<TemporaryFile> traceFile; ///< null: the program's options name the trace
};

} // namespace fp4::harness
