//===- Phases.h - Every op, in kernels of the wrong phase -----------------===//
//
// Takes each op of the dialects fp4 and pipe that a corpus has, puts it alone where it does not
// belong, and runs every pass over it: in a function of the host, in a kernel without roles, in one
// that only has a plan for them, in a role without channels, in a kernel that says it is pipelined,
// and in a function that is lowered already. Each case must end with a result, or with an error
// that has a place; convert-pipe-to-nvvm must name the pass that is missing.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Driver.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"

#include <memory>

namespace fp4::fuzz {

class PhasesTarget final : public Target {
public:
  explicit PhasesTarget(const mlir::DialectRegistry &registry) : registry(registry) {}
  const char *name() const override { return "phases"; }
  bool load(const std::vector<std::filesystem::path> &corpus) override;
  uint64_t count() const override;
  std::string make(uint64_t number, Random &random) override;
  void run(const std::string &input) override;

private:
  void collect(const std::string &text);
  const mlir::DialectRegistry &registry;
  std::vector<std::string> modules;           ///< an op in a place each
  std::unique_ptr<mlir::MLIRContext> context; ///< of all cases that a worker runs
};

} // namespace fp4::fuzz
