//===- PtxTarget.h - Mutated PTX, decoded and run -------------------------===//
#pragma once

#include "Driver.h"
#include "TokenMutator.h"

namespace fp4::fuzz {

/// Texts of .ptx files, and a kernel that has the instructions of test/Sim/ptx-isa.txt. A kernel
/// that loads runs for some thousand instructions. The first line of a case, a comment, says how:
/// launch shape, policy and checker are words of it.
class PtxTarget final : public Target {
public:
  const char *name() const override { return "ptx"; }
  bool load(const std::vector<std::filesystem::path> &corpus) override;
  std::string make(Random &random) override;
  void run(const std::string &input) override;

private:
  void addForms(const std::string &list);
  TokenMutator mutator{Language{"//", /*dots=*/true, /*times=*/false}};
};

/// Loads `text` and runs its kernels with buffers as parameters, as `how` says.
void runPtx(const std::string &text, const std::string &how);

} // namespace fp4::fuzz
