//===- CompiledProgram.h - The program of --tune, with any plans ----------===//
#pragma once

#include "fp4/Tuning/Tune.h"

#include <sstream>

namespace fp4::tuning {

class CompiledProgram : public Predictor {
public:
  explicit CompiledProgram(const TuneOptions &options) : options(options) {}

  /// Compiles the program with the plans of the compiler. A program without kernels is an error.
  Status begin();
  /// Loads the program and gives its kernels these plans; none: those of the compiler.
  Status prepare(Compiler &compiler, const Plans &plans) const;

  Expected<harness::TimedProgram> predict(const Plans &plans) override;
  std::vector<PlanChange> changesOf(const Plans &plans, size_t kernel) override;

  /// The report of a run in the functional simulator, compared with the reference.
  Expected<harness::RunReport> verify(const Plans &plans) const;
  /// The report of a run that is timed on a GPU.
  Expected<harness::RunReport> measure(const Plans &plans) const;
  /// The name of the GPU that the option --device finds for the target; empty: none.
  std::string gpu() const;

  const std::vector<PlannedKernel> &kernels() const { return kernels_; }
  const Plans &own() const { return own_; }            ///< plans of the compiler
  const std::string &text() const { return program_; } ///< program with these plans

private:
  Expected<harness::RunReport> execute(const Plans &plans, const harness::RunOptions &run) const;

  const TuneOptions &options;
  mutable std::ostringstream quiet; ///< reason why a plan does not compile
  std::vector<PlannedKernel> kernels_;
  Plans own_;
  std::string program_;
};

} // namespace fp4::tuning
