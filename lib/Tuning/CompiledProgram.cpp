//===- CompiledProgram.cpp - The program of --tune, with any plans --------===//

#include "CompiledProgram.h"

#include "fp4/Runtime/OpenDevice.h"
#include "fp4/Tuning/LoadedProgram.h"

namespace fp4::tuning {

Status CompiledProgram::prepare(Compiler &compiler, const Plans &plans) const {
  FP4_TRY(loadInput(compiler, options.input, options.run));
  FP4_TRY(compiler.compileTo(Phase::Planned));
  for (size_t i = 0; i < plans.size(); ++i)
    FP4_TRY(compiler.setPlan(i, plans[i]));
  return {};
}

Status CompiledProgram::begin() {
  CompilerOptions given = options.compiler;
  given.remarks = false;
  Compiler compiler(given);
  FP4_TRY(prepare(compiler, {}));
  kernels_ = compiler.plans();
  program_ = compiler.ir();
  for (const PlannedKernel &kernel : kernels_)
    own_.push_back(kernel.plan);
  if (kernels_.empty())
    return makeError(ErrorKind::Usage, "--tune expects a program with operations that have plans",
                     "--emit=mlir --compile-to=planned shows the plans of a program");
  return {};
}

Expected<harness::RunReport> CompiledProgram::execute(const Plans &plans,
                                                      const harness::RunOptions &run) const {
  CompilerOptions silent = options.compiler;
  silent.remarks = false;
  silent.diagnostics = &quiet;
  Compiler compiler(silent);
  FP4_TRY(prepare(compiler, plans));
  const bool onGpu = run.benchmark && compiler.checkAssembler();
  FP4_ASSIGN(auto loaded, loadProgram(compiler, onGpu ? Phase::Cubin : Phase::Ptx));
  return loaded.runner.run(run);
}

Expected<harness::TimedProgram> CompiledProgram::predict(const Plans &plans) {
  harness::RunOptions run = options.run;
  run.time = run.timesOnly = true;
  run.device = "sim";
  run.check.clear();
  run.outputs.clear();
  run.showProgress = false;
  FP4_ASSIGN(auto report, execute(plans, run));
  harness::TimedProgram timed = report.timed(describePlans(plans, own_));
  if (!timed.microseconds())
    return makeError(ErrorKind::Usage,
                     "--tune expects predictions, but there are none for " +
                         options.compiler.target,
                     report.simulation.times.empty() ? "the program launches no kernel"
                                                     : sim::text(report.simulation.times.front()));
  return timed;
}

std::vector<PlanChange> CompiledProgram::changesOf(const Plans &plans, size_t kernel) {
  CompilerOptions silent = options.compiler;
  silent.diagnostics = &quiet;
  Compiler compiler(silent);
  return prepare(compiler, plans) ? compiler.planChanges(kernel) : std::vector<PlanChange>();
}

Expected<harness::RunReport> CompiledProgram::verify(const Plans &plans) const {
  harness::RunOptions run = options.run;
  run.time = run.timesOnly = false;
  run.clock = 0;
  run.gpu.clear();
  run.device = "sim";
  return execute(plans, run);
}

Expected<harness::RunReport> CompiledProgram::measure(const Plans &plans) const {
  harness::RunOptions run = options.run;
  run.time = run.timesOnly = false;
  run.clock = 0;
  run.gpu.clear();
  run.check.clear();
  run.benchmark = true;
  return execute(plans, run);
}

std::string CompiledProgram::gpu() const {
  if (options.run.device == "sim")
    return "";
  rt::DeviceOptions device;
  device.target = options.compiler.target;
  auto opened = rt::openDevice(options.run.device, device);
  return opened && (*opened)->isHardware() ? (*opened)->name() : "";
}

} // namespace fp4::tuning
