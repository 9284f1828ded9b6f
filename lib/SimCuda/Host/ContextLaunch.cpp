//===- ContextLaunch.cpp - Launches and what the device would refuse ------===//
#include "Context.h"
#include "fp4/Sim/ReportJson.h"
#include "fp4/Support/JsonText.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace fp4;
using namespace fp4::simcuda;

static std::array<uint32_t, 3> toArray(const Dim3 &dim) { return {dim.x, dim.y, dim.z}; }
static uint64_t volume(const Dim3 &dim) { return uint64_t(dim.x) * dim.y * dim.z; }

/// The limits that are the host's to check; those of the kernel itself are the simulator's.
Status Context::checkLaunch(const Function &kernel, const sim::KernelInfo &info,
                            const LaunchRequest &request, Code &code) const {
  auto refuse = [&](Code why, std::string message, std::string note = "") {
    code = why;
    return makeError(ErrorKind::Usage, fmt::format("kernel '{}': {}", kernel.name, message),
                     std::move(note));
  };
  if (request.dynamicShared > kernel.maxDynamicShared)
    return refuse(InvalidValue,
                  fmt::format("a launch with {} bytes of dynamic shared memory, but the kernel "
                              "allows {}",
                              request.dynamicShared, kernel.maxDynamicShared),
                  "set cudaFuncAttributeMaxDynamicSharedMemorySize first");
  const uint64_t cluster =
      std::max(volume(request.asked.cluster), volume(request.asked.preferredCluster));
  if (cluster > currentChip->model().limits.maxClusterSize && !kernel.nonPortableCluster)
    return refuse(InvalidClusterSize,
                  fmt::format("a cluster of {} CTAs is larger than the portable {}", cluster,
                              currentChip->model().limits.maxClusterSize),
                  "set cudaFuncAttributeNonPortableClusterSizeAllowed first");
  if (request.grid.y > 65535 || request.grid.z > 65535)
    return refuse(InvalidConfiguration,
                  fmt::format("the grid must have at most 65535 CTAs in y and z, but got {} and {}",
                              request.grid.y, request.grid.z));
  uint64_t resident = uint64_t(residentCtasPerSm(info, static_cast<int>(volume(request.block)),
                                                 request.dynamicShared)) *
                      currentChip->model().sms;
  if (request.asked.cooperative && volume(request.grid) > resident)
    return refuse(CooperativeLaunchTooLarge,
                  fmt::format("a cooperative grid of {} CTAs, but {} fit at once",
                              volume(request.grid), resident));
  return {};
}

int Context::residentCtasPerSm(const sim::KernelInfo &kernel, int threads,
                               uint64_t dynamicShared) const {
  const hw::TargetModel &m = currentChip->model();
  if (threads < 1 || static_cast<unsigned>(threads) > m.limits.maxThreadsPerCta)
    return 0;
  uint64_t shared = kernel.staticSharedBytes + dynamicShared;
  if (shared > m.limits.mostSharedBytes())
    return 0;
  uint64_t rounded = (static_cast<uint64_t>(threads) + 31) / 32 * 32;
  uint64_t byThreads = m.limits.maxThreadsPerSM / rounded;
  uint64_t byShared = m.limits.ctasByShared(shared);
  return static_cast<int>(std::min({byThreads, byShared, uint64_t(m.limits.maxCtasPerSM)}));
}

void Context::reportHazards() {
  for (const sim::HazardReport &report : instruments->hazards()) {
    print(report.text());
    reportLine("hazard " + jsonText(sim::toJson(report)));
  }
  instruments->clearHazards();
}

void Context::reportOrders() {
  const std::vector<sim::OrderReport> &all = instruments->orders();
  for (; ordersReported < all.size(); ++ordersReported) {
    const sim::OrderReport &report = all[ordersReported];
    print(fmt::format("orders of {}: {}\n", report.kernel, sim::summaryOf(report)));
    if (report.failure == sim::OrderReport::Failure::Hazard)
      print(fmt::format("note: --replay '{}' repeats the order\n", report.order));
    reportLine("orders " + jsonText(sim::toJson(report)));
  }
}

static std::string shape(const std::array<uint32_t, 3> &s) {
  return fmt::format("({},{},{})", s[0], s[1], s[2]);
}

static std::string preferredText(const sim::LaunchConfig &config) {
  return config.preferredCluster[0] ? ", preferred cluster " + shape(config.preferredCluster) : "";
}

static std::string dependenceText(const sim::Dependence &dependence) {
  return dependence.on.empty() ? "" : ", dependent by " + dependence.by;
}

Code Context::runKernel(const char *function, const Function &kernel,
                        const sim::LaunchConfig &config, std::span<const std::byte> parameters) {
  if (traced)
    trace(fmt::format(
        "{}: '{}', grid {}, block {}, cluster {}{}, {} bytes of dynamic shared memory{}", function,
        kernel.name, shape(config.grid), shape(config.block), shape(config.cluster),
        preferredText(config), config.dynamicSharedBytes, dependenceText(config.dependence)));
  auto stats = simulator->launch(*kernel.code->program, kernel.name, config, parameters);
  reportHazards();
  reportOrders();
  if (stats && !instruments->times().empty()) {
    const sim::KernelTime &time = instruments->times().back();
    if (!quietTimes)
      print(sim::text(time));
    reportLine("time " + jsonText(sim::toJson(time)));
  }
  if (stats) {
    ++launches;
    warpInstructions += stats->warpInstructions;
    seconds += stats->seconds;
    reportLine(fmt::format("kernel {{\"name\": \"{}\", \"grid\": [{}], \"block\": [{}], "
                           "\"cluster\": [{}], \"shared_bytes\": {}, \"warp_instructions\": {}, "
                           "\"matrix_mmas\": {}, \"seconds\": {:.6f}}}",
                           kernel.name, fmt::join(config.grid, ", "), fmt::join(config.block, ", "),
                           fmt::join(config.cluster, ", "), config.dynamicSharedBytes,
                           stats->warpInstructions, stats->mmas, stats->seconds));
    if (traced)
      trace(fmt::format("{} warp instructions, {} matrix products in {:.3f} s",
                        stats->warpInstructions, stats->mmas, stats->seconds));
    return Success;
  }
  Error error = stats.error();
  if (error.kind != ErrorKind::Simulation)
    return fail(function, InvalidConfiguration, error);
  printError(function, error);
  reportLine("fault " + jsonText(nlohmann::ordered_json(error.message)));
  stickyCode = LaunchFailure;
  return Success; // as on a device, the next call answers
}

/// Makes CTAs of the clusters that a launch of a kernel with .blocksareclusters counts. A launch
/// that says one thread leaves the threads of a CTA to the kernel.
static void countCtas(const sim::KernelInfo &info, LaunchRequest &request) {
  const auto &cta = info.requiredCta, &cluster = info.requiredCluster;
  if (!info.blocksAreClusters || !cta[0] || !cluster[0])
    return;
  request.grid = {request.grid.x * cluster[0], request.grid.y * cluster[1],
                  request.grid.z * cluster[2]};
  if (volume(request.block) == 1)
    request.block = {cta[0], cta[1], cta[2]};
}

Code Context::prepare(const char *function, Function &kernel, LaunchRequest request,
                      KernelWork &work) {
  std::lock_guard guard(lock);
  if (stickyCode != Success)
    return stickyCode;
  const auto found = kernelOf(function, kernel);
  if (!found)
    return found.error();
  const sim::KernelInfo &info = **found;
  countCtas(info, request);
  Code code = Success;
  if (Status good = checkLaunch(kernel, info, request, code); !good)
    return fail(function, code, good.error());
  work = {&kernel,       request.grid,
          request.block, static_cast<uint32_t>(request.dynamicShared),
          request.asked, {}};
  work.parameters.resize(info.paramBytes);
  if (!request.parameters.empty())
    std::memcpy(work.parameters.data(), request.parameters.data(),
                std::min(work.parameters.size(), request.parameters.size()));
  else
    for (size_t i = 0; i < info.params.size(); ++i)
      std::memcpy(work.parameters.data() + info.params[i].offset, request.arguments[i],
                  info.params[i].size);
  return Success;
}

Code Context::launch(const char *function, const KernelWork &work,
                     const sim::Dependence &dependence) {
  std::lock_guard guard(lock);
  if (stickyCode != Success)
    return stickyCode;
  sim::LaunchConfig config;
  config.grid = toArray(work.grid);
  config.block = toArray(work.block);
  config.cluster = toArray(work.asked.cluster);
  config.preferredCluster = toArray(work.asked.preferredCluster);
  config.dynamicSharedBytes = work.dynamicShared;
  config.dependence = dependence;
  if (!work.asked.cooperative)
    return runKernel(function, *work.function, config, work.parameters);
  constexpr uint32_t workspaceBytes = 256;
  config.gridWorkspace = simulator->memory().allocate(workspaceBytes, "the grid's workspace");
  (void)simulator->memory().fill(config.gridWorkspace, 0, workspaceBytes);
  const Code code = runKernel(function, *work.function, config, work.parameters);
  (void)simulator->memory().free(config.gridWorkspace);
  return code;
}
