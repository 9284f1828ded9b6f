//===- Compiler.h - From .mlir text to an executable program --------------===//
//
// The compile driver of fp4-runner and of embedding programs. The driver parses a program or takes
// a module of another compiler, runs the named phases, returns what each produced (IR, PTX, cubins,
// a manifest), and turns the host code into a function in this process or a shared library. The
// header needs no MLIR header.
//
//   fp4::Compiler compiler(options);
//   FP4_TRY(compiler.loadFile("gemm.mlir"));
//   FP4_TRY(compiler.compileTo(fp4::Phase::Cubin));
//   FP4_TRY(compiler.writeLibrary("gemm.so"));
//
// Located diagnostics of MLIR go to `CompilerOptions::diagnostics`, or, for a module, to the
// handlers of its context; the Status then says in one line what failed. Before a program is
// loaded, and after a failed step, there is none: functions that change it return an error,
// functions that describe it return nothing.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Pipelines/Pipelines.h"
#include "fp4/Support/Error.h"

#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace fp4 {

/// Options of the passes, and the options of this driver.
struct CompilerOptions : PhaseOptions {
  // Diagnostics of programs that are text; the context of a module has its own.
  bool remarks = false; ///< report which fusions fired, and why others did not, as diagnostics
  std::ostream *diagnostics = nullptr; ///< null: std::cerr
};

/// The code of one gpu.module.
struct KernelCode {
  std::string module;
  std::string ptx;
  std::string cubin; ///< empty unless Phase::Cubin was reached
};

/// A program as text, and for each of its lines the lines of another text that it came from.
struct Listing {
  std::string text;
  /// Lines of the other text, from 1, for each line; empty for a line that came from none.
  std::vector<std::vector<unsigned>> origins;
};

/// An operation that becomes a kernel, and its plan as inside of #fp4.plan<...>.
struct PlannedKernel {
  std::string function, operation; ///< "gemm", "fp4.matmul"
  std::string plan;
};

/// A plan that an operation may have instead, and the field in which it differs.
struct PlanChange {
  std::string field, plan;
};

/// Wall-clock time of one step, in order of execution.
struct StepTime {
  std::string step;
  double milliseconds;
};

/// Host code in this process; entry points live as long as it does.
class JitProgram {
public:
  virtual ~JitProgram() = default;
  /// The address of an entry function `fp4_entry_<name>`.
  virtual Expected<void *> lookup(const std::string &symbol) = 0;
};

class Compiler {
public:
  explicit Compiler(CompilerOptions options);
  ~Compiler();
  Compiler(const Compiler &) = delete;
  Compiler &operator=(const Compiler &) = delete;

  /// Parses and verifies a program, once per Compiler; "-" is standard input. An unreadable file is
  /// a Usage error, and an invalid program is a Compile error.
  Status loadFile(const std::string &path);
  /// Does the same for text; diagnostics use `name` for it.
  Status loadText(const std::string &text, const std::string &name);
  /// Takes a copy of `module`, whose context must live as long as this Compiler: a program that a
  /// host compiler built, or the islands that fp4-outline-islands made of one (docs/guides/embed.md).
  /// The dialects and interfaces that fp4 needs are added to the context. A module that does not
  /// verify is a Compile error.
  Status loadModule(mlir::ModuleOp module);

  /// The names that arguments give their dimensions with fp4.dims.
  std::vector<std::string> dimNames() const;
  /// Gives named dimensions other sizes. Call it before any phase. Dynamic ones stay dynamic.
  Status specialize(const std::map<std::string, int64_t> &sizes);
  /// Leaves out the functions that `name` does not use, which then take no time. Call it before any
  /// phase. A name that no function has changes nothing.
  Status keepFunction(const std::string &name);

  /// Success if the ptxas that Phase::Cubin would run exists and knows the target.
  Status checkAssembler() const;
  /// Returns true when the options or $FP4_PTXAS name a ptxas. A missing ptxas is then an error.
  bool namesAssembler() const;

  /// Runs the phases after the last one that ran, up to `phase`. Ptx and Cubin exclude each other.
  Status compileTo(Phase phase);

  /// After Phase::Planned and before the next one, the operations that become kernels, in the order
  /// of the program.
  std::vector<PlannedKernel> plans() const;
  /// At the same time, the legal plans that are one decision away from that of kernel `index` of
  /// plans().
  std::vector<PlanChange> planChanges(size_t index) const;
  /// At the same time, gives that kernel another plan. Text that is no plan is a Compile error.
  Status setPlan(size_t index, const std::string &plan);

  /// The program as it is now.
  std::string ir() const;
  /// The program as it is now. The lines refer to `file`: the name under which the program was
  /// loaded, or the name given to anchorListing.
  Listing listing(const std::string &file) const;
  /// Makes every line come from the text that listing() returns now, under the name `file`.
  Status anchorListing(const std::string &file);
  /// Makes the kernels' PTX name the lines that its instructions came from (.loc); after
  /// Phase::Nvvm.
  Status keepLines();
  /// After Phase::Pipelined and before Phase::Nvvm, the kernels as a JSON array of objects:
  /// `module`, `roles` (name, first, end: warps; drives: engines), `channels` (name, from, to,
  /// depth), `extents` (space: shared or tensor; what; first, size, stride: bytes or columns;
  /// stages), `shared_bytes`, `tensor_columns`.
  std::string memoryMap() const;
  /// The kernels, after Phase::Ptx or Phase::Cubin and until the host code is lowered.
  std::vector<KernelCode> kernels() const;
  /// The manifest (docs/guides/libraries.md), after Phase::Ptx or Phase::Cubin.
  std::string manifest() const;

  /// Lowers the host code and compiles it into this process. The runtime functions it calls are
  /// those linked into this process.
  Expected<std::unique_ptr<JitProgram>> jit();
  /// Lowers the host code and links it to a shared library that exports the entry points,
  /// `fp4_manifest`, and `fp4_bind`, which gives it a runtime. The file is never half written.
  Status writeLibrary(const std::string &path);

  /// Everything done so far and how long it took.
  const std::vector<StepTime> &times() const;

private:
  class Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace fp4
