//===- Engine.cpp - Runs, checks and reports compiled functions -----------===//

#include "fp4/Tools/Engine.h"

#include "Arguments.h"
#include "EntryCall.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

namespace fp4::tools {
namespace {

using Clock = std::chrono::steady_clock;

double millisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Expected<const Function *> selectFunction(const Manifest &manifest, const std::string &name) {
  if (manifest.functions.empty())
    return makeError(ErrorKind::Usage, "the library has no functions");
  std::string known;
  for (const Function &function : manifest.functions) {
    if (function.name == name)
      return &function;
    known += (known.empty() ? "" : ", ") + function.name;
  }
  if (name.empty() && manifest.functions.size() == 1)
    return &manifest.functions.front();
  if (name.empty())
    return makeError(ErrorKind::Usage, "the library has several functions: " + known,
                     "choose one with --function");
  return makeError(ErrorKind::Usage, fmt::format("the library has no function named '{}'", name),
                   "its functions are " + known);
}

/// The folder of a file that will be written exists and may be written to.
Status checkFolder(const std::string &path) {
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (access(folder.c_str(), W_OK) == 0)
    return {};
  return makeError(ErrorKind::Usage,
                   fmt::format("cannot write '{}': {}", path, std::strerror(errno)),
                   "name a file in a folder that exists and may be written to");
}

/// Checked before anything runs: a wrong name or a folder that does not exist should not cost a
/// simulation.
Expected<std::vector<std::pair<size_t, std::string>>> parseOutputs(const Function &function,
                                                                   const RunOptions &options) {
  std::vector<std::pair<size_t, std::string>> outputs;
  for (const std::string &text : options.outputs) {
    auto pair = splitAssignment(text, "--output");
    if (!pair)
      return tl::unexpected<Error>(pair.error());
    auto index = findOperand(function.results, pair->first, "result");
    if (!index)
      return tl::unexpected<Error>(index.error());
    FP4_TRY(checkFolder(pair->second));
    outputs.emplace_back(*index, pair->second);
  }
  return outputs;
}

Expected<std::unique_ptr<rt::Device>> openDevice(const Manifest &manifest,
                                                 const RunOptions &options, RunReport &report) {
  rt::DeviceOptions device;
  device.target = manifest.target;
  device.policy = options.policy;
  device.seed = options.seed;
  device.hostThreads = options.hostThreads;
  std::string note;
  auto opened = rt::openDevice(options.device, device, &note);
  if (!note.empty())
    report.notes.push_back(note);
  return opened;
}

void describeDevice(RunReport &report, const rt::Device &device, const RunOptions &options) {
  report.device = device.name();
  report.deviceSelector = device.selector();
  report.target = device.target();
  report.hardware = device.isHardware();
  report.simPolicy = device.isHardware() ? "" : options.policy;
  report.seed = options.seed;
}

/// Launches, with the resources ptxas reported where the device does not know them.
void describeKernels(RunReport &report, const rt::Session &session, const Manifest &manifest) {
  for (const rt::LaunchRecord &launch : session.launches()) {
    RunReport::Kernel kernel{launch.module, launch.kernel, launch.shape, launch.info.registers,
                             launch.info.localBytes,
                             launch.info.staticSharedBytes + launch.shape.dynamicSharedBytes,
                             launch.milliseconds};
    for (const KernelResources &known : manifest.kernels)
      if (known.module == launch.module && known.name == launch.kernel && !report.hardware) {
        kernel.registers = known.registers;
        kernel.spillBytes = known.spillBytes;
      }
    report.kernels.push_back(std::move(kernel));
  }
}

Status verify(RunReport &report, const Function &function, std::span<const Tensor> arguments,
              std::span<const Tensor> results, unsigned threads) {
  Clock::time_point start = Clock::now();
  auto expected = runReference(function, arguments, threads);
  if (!expected)
    return tl::unexpected<Error>(expected.error());
  for (size_t i = 0; i < results.size(); ++i)
    report.verdicts.push_back(judge(function.results[i].name, results[i], (*expected)[i]));
  report.referenceMilliseconds = millisecondsSince(start);
  report.verified = true;
  return {};
}

} // namespace

Expected<Engine> Engine::create(std::string_view manifestJson, EntryResolver resolver) {
  auto manifest = Manifest::parse(manifestJson);
  if (!manifest)
    return tl::unexpected<Error>(manifest.error());
  Engine engine;
  engine.manifest_ = std::move(*manifest);
  engine.resolver_ = std::move(resolver);
  return engine;
}

Expected<RunReport> Engine::run(const RunOptions &options) const {
  auto function = selectFunction(manifest_, options.function);
  if (!function)
    return tl::unexpected<Error>(function.error());
  auto outputs = parseOutputs(**function, options);
  if (!outputs)
    return tl::unexpected<Error>(outputs.error());
  auto arguments = bindArguments(**function, options);
  if (!arguments)
    return tl::unexpected<Error>(arguments.error());
  auto entry = resolver_((*function)->symbol);
  if (!entry)
    return tl::unexpected<Error>(entry.error());
  RunReport report;
  report.function = (*function)->name;
  report.notes = arguments->notes;
  auto device = openDevice(manifest_, options, report);
  if (!device)
    return tl::unexpected<Error>(device.error());
  describeDevice(report, **device, options);
  for (size_t i = 0; i < arguments->values.size(); ++i)
    report.arguments.push_back({(*function)->arguments[i].name, arguments->values[i].type,
                                arguments->sources[i]});

  rt::Session session(**device);
  EntryCall call(session, **function);
  FP4_TRY(call.upload(arguments->values));
  Clock::time_point start = Clock::now();
  FP4_TRY(call.call(*entry));
  report.runMilliseconds = millisecondsSince(start);
  describeKernels(report, session, manifest_);
  auto results = call.download();
  if (!results)
    return tl::unexpected<Error>(results.error());
  for (size_t i = 0; i < results->size(); ++i)
    report.results.push_back({(*function)->results[i].name, (*results)[i].type, ""});
  for (auto &[index, path] : *outputs) {
    FP4_TRY(writeNpy(path, toNpy((*results)[index])));
    report.results[index].source = path;
  }
  if (options.verify && (*function)->hasProgram)
    FP4_TRY(verify(report, **function, arguments->values, *results, options.hostThreads));
  else if (options.verify)
    report.notes.push_back("not verified: the manifest has no program for the reference");
  return report;
}

std::string Engine::list() const {
  std::string text = fmt::format("{} for {}\n", manifest_.compiler, manifest_.target);
  for (const Function &function : manifest_.functions) {
    text += fmt::format("function {}\n", function.name);
    for (const Operand &argument : function.arguments)
      text += fmt::format("  argument {:<10} {}\n", argument.name, argument.type.str());
    for (const Operand &result : function.results)
      text += fmt::format("  result   {:<10} {}\n", result.name, result.type.str());
  }
  for (const KernelResources &kernel : manifest_.kernels)
    text += fmt::format("kernel {}.{}: {} registers, {} bytes spilled, {} bytes of shared memory, "
                        "PTX {} bytes, cubin {} bytes\n",
                        kernel.module, kernel.name, kernel.registers, kernel.spillBytes,
                        kernel.sharedBytes, kernel.ptxBytes, kernel.cubinBytes);
  return text;
}

} // namespace fp4::tools
