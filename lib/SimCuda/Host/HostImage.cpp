//===- HostImage.cpp - Code of both the runtime and the driver API --------===//
#include "HostImage.h"
#include "Graphs.h"
#include "fp4/ISA/TimingRates.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::simcuda;

std::span<const std::byte> fp4::simcuda::fatbinAt(const void *data) {
  // The header alone says how long the rest is.
  std::span<const std::byte> everything(static_cast<const std::byte *>(data), size_t(1) << 32);
  return everything.first(fatbinBytes(everything));
}

Code fp4::simcuda::loadImage(const char *function, const void *image, Module *&module) {
  Context &context = Context::get();
  module = nullptr;
  if (!image)
    return context.fail(function, InvalidValue, "the image must not be null");
  std::span<const std::byte> fatbin = fatbinAt(image);
  // A fat binary may also come in the wrapper that nvcc makes for programs.
  uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  if (magic == 0x466243B1)
    fatbin =
        fatbinAt(*reinterpret_cast<const void *const *>(static_cast<const std::byte *>(image) + 8));
  constexpr uint32_t elfMagic = 0x464C457F;
  module = magic == elfMagic ? context.addMachineCode()
           : fatbin.empty()  ? context.addModule(std::string(static_cast<const char *>(image)))
                             : context.addModule(fatbin);
  Status decoded = context.decode(*module);
  if (decoded)
    return Success;
  bool device = decoded.error().kind == ErrorKind::Device;
  if (device && context.hasPtxFolder())
    return Success; // its kernels may be there
  Error error = decoded.error();
  error.message = "the image " + error.message;
  Code code = context.fail(function, device ? NoKernelImageForDevice : InvalidPtx,
                           device ? error : decoded.error());
  context.removeModule(module);
  module = nullptr;
  return code;
}

Code fp4::simcuda::getFunction(const char *function, Module &module, const char *name,
                               Function *&kernel) {
  Context &context = Context::get();
  kernel = nullptr;
  auto code = context.moduleWith(module, name);
  if (!code && code.error().kind == ErrorKind::Device)
    return context.fail(
        function, NoKernelImageForDevice,
        Error{ErrorKind::Device,
              fmt::format("the module of kernel '{}' {}", name, code.error().message),
              code.error().note});
  if (!code)
    return context.fail(function, InvalidPtx, code.error());
  const sim::Program &program = *(*code)->program;
  const auto &refused = program.refused();
  bool known = program.findKernel(name) ||
               std::any_of(refused.begin(), refused.end(), [&](auto &r) { return r.name == name; });
  if (!known)
    return context.quiet(SymbolNotFound);
  kernel = context.findFunction(module, name);
  return Success;
}

Code fp4::simcuda::kernelsOf(const char *function, Module &module,
                             std::vector<Function *> &kernels) {
  Context &context = Context::get();
  if (Status decoded = context.decode(module); !decoded)
    return context.fail(function, InvalidPtx, decoded.error());
  for (const sim::KernelInfo &kernel : module.program->kernels())
    kernels.push_back(context.findFunction(module, kernel.name));
  for (const sim::RefusedKernel &kernel : module.program->refused())
    kernels.push_back(context.findFunction(module, kernel.name));
  return Success;
}

Code fp4::simcuda::getGlobal(const char *function, Module &module, const char *name, void **address,
                             size_t *bytes) {
  Context &context = Context::get();
  auto variable = context.findVariable(module, name);
  if (!variable)
    return context.fail(function, SymbolNotFound, variable.error());
  if (address)
    *address = reinterpret_cast<void *>(variable->address);
  if (bytes)
    *bytes = variable->size;
  return Success;
}

Code fp4::simcuda::setFunctionAttribute(const char *function, Function &kernel, int attribute,
                                        int value) {
  Context &context = Context::get();
  switch (attribute) {
  case AttrMaxDynamicSharedBytes: {
    const auto info = context.kernelOf(function, kernel);
    if (!info)
      return info.error();
    int64_t limit =
        context.chip().model().limits.mostSharedBytes() - int64_t((*info)->staticSharedBytes);
    if (value < 0 || value > limit)
      return context.fail(function, InvalidValue,
                          fmt::format("kernel '{}' may have at most {} bytes of dynamic shared "
                                      "memory on {}, but got {}",
                                      kernel.name, limit, context.chip().name, value));
    kernel.maxDynamicShared = static_cast<uint32_t>(value);
    return Success;
  }
  case AttrNonPortableClusterSize:
    kernel.nonPortableCluster = value != 0;
    return Success;
  case AttrPreferredCarveout:
  case AttrClusterDimMustBeSet:
  case AttrRequiredClusterWidth:
  case AttrRequiredClusterHeight:
  case AttrRequiredClusterDepth:
  case AttrClusterSchedulingPolicy:
  case AttrSharedMemoryMode: // dynamic shared memory says itself whether it is oversized
    return Success;
  default:
    if (attribute > AttrSharedMemoryMode) // a newer toolkit asks whether the driver has it
      return context.quiet(InvalidValue);
    return context.fail(function, InvalidValue,
                        fmt::format("attribute {} of a function cannot be set", attribute));
  }
}

Code fp4::simcuda::functionAttributes(const char *function, Function &kernel, FuncAttributes &out) {
  Context &context = Context::get();
  const auto found = context.kernelOf(function, kernel);
  if (!found)
    return found.error();
  const sim::KernelInfo &info = **found;
  const hw::TargetModel &m = context.chip().model();
  out = {};
  out.sharedSizeBytes = info.staticSharedBytes;
  out.localSizeBytes = info.localBytes;
  uint64_t threads = uint64_t(info.maximumCta[0]) * info.maximumCta[1] * info.maximumCta[2];
  out.maxThreadsPerBlock = static_cast<int>(threads ? threads : m.limits.maxThreadsPerCta);
  // PTX has no register allocation: what a CTA of the largest size leaves each thread.
  out.numRegs = static_cast<int>(
      std::min(m.limits.maxRegistersPerThread,
               m.limits.registersPerSM / unsigned(out.maxThreadsPerBlock) / 8 * 8));
  out.ptxVersion = out.binaryVersion = context.chip().major() * 10 + context.chip().minor();
  out.maxDynamicSharedSizeBytes = static_cast<int>(kernel.maxDynamicShared);
  out.preferredShmemCarveout = -1;
  out.requiredClusterWidth = static_cast<int>(info.requiredCluster[0]);
  out.requiredClusterHeight = static_cast<int>(info.requiredCluster[1]);
  out.requiredClusterDepth = static_cast<int>(info.requiredCluster[2]);
  out.clusterDimMustBeSet = info.requiredCluster[0] != 0;
  out.nonPortableClusterSizeAllowed = kernel.nonPortableCluster;
  return Success;
}

Code fp4::simcuda::launchIn(const char *function, Function &kernel, const LaunchRequest &request) {
  KernelWork work;
  const Code code = Context::get().prepare(function, kernel, request, work);
  return code == Success ? enqueue(function, request.stream, std::move(work)) : code;
}

/// SMs on which clusters of a size find room: large ones do not fit everywhere, and a persistent
/// kernel asks how many there are.
static uint64_t roomFor(const hw::TargetModel &model, uint64_t cluster) {
  const hw::Rate *room = hw::timingRate(model.name, hw::TimingRate::ClustersOfFour);
  return cluster < 4 || !room ? model.sms : std::min(uint64_t(model.sms), uint64_t(room->value));
}

Code fp4::simcuda::activeClusters(const char *function, Function &kernel,
                                  const LaunchRequest &request, int &clusters) {
  Context &context = Context::get();
  const auto found = context.kernelOf(function, kernel);
  if (!found)
    return found.error();
  const sim::KernelInfo &info = **found;
  uint64_t size = std::max<uint64_t>(1, uint64_t(request.asked.cluster.x) *
                                            request.asked.cluster.y * request.asked.cluster.z);
  uint64_t threads = uint64_t(request.block.x) * request.block.y * request.block.z;
  auto blocks = static_cast<uint64_t>(
      context.residentCtasPerSm(info, static_cast<int>(threads), request.dynamicShared));
  clusters = static_cast<int>(roomFor(context.chip().model(), size) / size * blocks);
  return Success;
}

Code fp4::simcuda::availableShared(const char *function, Function &kernel, int blocks,
                                   size_t &bytes) {
  Context &context = Context::get();
  const auto found = context.kernelOf(function, kernel);
  if (!found)
    return found.error();
  const sim::KernelInfo &info = **found;
  const hw::TargetModel &m = context.chip().model();
  const uint64_t taken = m.limits.sharedReservedPerCta + info.staticSharedBytes;
  const uint64_t share =
      std::min<uint64_t>(m.limits.sharedBytesPerSM / static_cast<unsigned>(blocks),
                         m.limits.sharedBytesPerCta + m.limits.sharedReservedPerCta);
  bytes = share > taken ? share - taken : 0;
  return Success;
}

Code fp4::simcuda::residentCtasPerSm(const char *function, Function &kernel, int threads,
                                     size_t shared, int &blocks) {
  const auto info = Context::get().kernelOf(function, kernel);
  blocks = info ? Context::get().residentCtasPerSm(**info, threads, shared) : 0;
  return info ? Success : info.error();
}

Code fp4::simcuda::parameterOf(const char *function, Function &kernel, size_t index, size_t &offset,
                               size_t *bytes) {
  const auto info = Context::get().kernelOf(function, kernel);
  if (!info)
    return info.error();
  const auto &params = (*info)->params;
  if (index >= params.size()) // programs count the parameters so
    return Context::get().quiet(InvalidValue);
  offset = params[index].offset;
  if (bytes)
    *bytes = params[index].size;
  return Success;
}

int fp4::simcuda::largestCluster(const Function &kernel) {
  constexpr int nonPortable = 16;
  return kernel.nonPortableCluster
             ? nonPortable
             : static_cast<int>(Context::get().chip().model().limits.maxClusterSize);
}

const char *fp4::simcuda::errorText(int code, ErrorText what) {
  struct Row {
    int number;
    const char *texts[3];
  };
  static constexpr Row rows[] = {
#define FP4_ERROR(number, runtime, driver, text) {number, {runtime, driver, text}},
#include "Errors.def"
#undef FP4_ERROR
  };
  for (const Row &row : rows)
    if (row.number == code)
      return row.texts[static_cast<size_t>(what)];
  return "unrecognized error code";
}
