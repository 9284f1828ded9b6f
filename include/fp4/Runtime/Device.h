//===- Device.h - Interface of every device -------------------------------===//
//
// The interface between the runtime and a machine that executes PTX: a GPU with the CUDA driver
// (CudaDevice) or the simulator (SimDevice). The conformance suite fp4-cts tests both. Device
// addresses are 64-bit numbers. Work on one stream is in order of issue. Every call that can fail
// returns a Status or Expected whose message names the call and the operand.
//
// Several threads may use one device at the same time; a simulator executes their calls one after
// the other. capture() is the exception: nobody else may use the device meanwhile. A call leaves
// the current CUDA context of its thread as it was.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4-c/Runtime.h"
#include "fp4/ISA/TensorMap.h"
#include "fp4/Support/Error.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fp4::sim {
class Instruments;
}

namespace fp4::rt {

/// A device address. Arithmetic on it is in bytes; 0 is the null address.
using DevicePtr = uint64_t;

/// A loaded module, valid until its device is destroyed.
using ModuleId = uint32_t;

/// A stream in the driver's own form (CUstream, cudaStream_t); 0 is the default stream. The stream
/// belongs to the primary context of the device. A simulator has done its work when a call returns,
/// and ignores it.
using StreamHandle = uint64_t;

/// Names an order of work: two kernels of one order never run at the same time.
struct WorkOrder {
  uint64_t stream = 0;
  uint64_t capture = 0; ///< the graph that records what the stream gets; 0: none does
  auto operator<=>(const WorkOrder &) const = default;
};

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t(x) * y * z; }
};

struct LaunchShape {
  Dim3 grid, block;
  /// CTAs per cluster; {0,0,0} takes the kernel's own .reqnctapercluster, or 1.
  Dim3 cluster{0, 0, 0};
  uint32_t dynamicSharedBytes = 0;
  StreamHandle stream = 0;
  /// True when the kernel may begin while the one before it on the stream ends, because it executes
  /// griddepcontrol.wait.
  bool dependent = false;
  /// True when all CTAs run at the same time, so that they may wait for each other.
  bool cooperative = false;
  /// Larger clusters, multiples of `cluster`, that run where there is room for them; {0,0,0}: none.
  Dim3 preferredCluster{0, 0, 0};
};

/// A rectangle of bytes; pitches in bytes, at least `width`.
struct Copy2D {
  DevicePtr dst = 0;
  uint64_t dstPitch = 0;
  DevicePtr src = 0;
  uint64_t srcPitch = 0;
  uint64_t width = 0, height = 0;
  StreamHandle stream = 0;
};

/// The operands of a tiled tensor map: see fp4rt_tensor_map. With corners, one of im2col mode: see
/// hw::TensorMap::PixelBox; the box is channels and pixels then.
struct TensorMapRequest {
  DevicePtr base = 0;
  int32_t elementType = 0; ///< CUtensorMapDataType
  int32_t swizzle = 0;     ///< CUtensorMapSwizzle
  std::span<const uint64_t> dims;
  std::span<const uint64_t> strides;
  std::span<const uint32_t> box;
  std::span<const int32_t> lower = {}, upper = {}; ///< corners
  std::span<const uint32_t> elementStrides = {};   ///< empty: 1

  /// Bytes that a miss of the L2 cache fetches. With lines as wide as the widest swizzle, a kernel
  /// asks for the next 128 bytes of each row one k tile later, so a miss fetches 256
  /// (notebook/gemm-fp8.md has the gain).
  hw::TensorMapL2Promotion promotion() const {
    bool isWidest = swizzle == int32_t(hw::SwizzleMode::B128);
    return isWidest ? hw::TensorMapL2Promotion::B256 : hw::TensorMapL2Promotion::B128;
  }
};

struct KernelInfo {
  std::string name;
  uint32_t registers = 0; ///< per thread; 0 where the device does not know
  uint32_t staticSharedBytes = 0;
  uint32_t localBytes = 0;              ///< per thread: spills and stack
  bool compiledFromPtx = false;         ///< the driver compiled the PTX, the cubin did not match
  std::vector<uint64_t> parameterBytes; ///< the size of each parameter
};

/// The counts of a simulator during one launch.
struct LaunchCounts {
  uint64_t warpInstructions = 0;
  uint64_t mmas = 0;
  uint64_t tickets = 0; ///< asynchronous operations completed
};

/// The state that a GPU reports while it works.
struct Condition {
  uint32_t smClockMhz = 0;
  double watts = 0;             ///< 0: not known
  uint64_t throttleReasons = 0; ///< NVML's bits
};

/// Work recorded once and issued as a whole.
struct CapturedGraph {
  uint32_t id = 0;
  size_t nodes = 0;
};

class Device;

/// The memory in which kernels report rows of groups that do not fit (fp4rt_group_report). Threads
/// may use it at the same time.
class GroupReports {
public:
  explicit GroupReports(Device &device) : device_(device) {}

  /// The place of `what`, an operand of the program with this `owner`: the same in each call.
  Expected<DevicePtr> place(const void *owner, const char *what);
  /// Takes away the reports of one program, of `owner` or the first that has any, without waiting,
  /// and returns one of them.
  Status take(const void *owner = nullptr);
  /// The owner's kernels have ended, and its names are gone.
  void drop(const void *owner);

private:
  using Operand = std::pair<const void *, const char *>;

  Device &device_;
  std::mutex mutex_;
  std::map<Operand, DevicePtr> places_;
};

class Device {
public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// "simulator" or the GPU's own name.
  virtual std::string name() const = 0;
  /// The name by which a user selects the device: "sim", "cuda:0".
  virtual std::string selector() const = 0;
  /// The target that the device executes best, "sm_90a"; of a simulator, the one it was opened for.
  virtual std::string target() const = 0;
  virtual int32_t smCount() const = 0;
  /// Results and times come from an actual GPU.
  virtual bool isHardware() const = 0;

  virtual Expected<DevicePtr> allocate(uint64_t bytes) = 0;
  virtual Status free(DevicePtr address) = 0;
  virtual Status copyToDevice(DevicePtr dst, std::span<const std::byte> src) = 0;
  virtual Status copyToHost(std::span<std::byte> dst, DevicePtr src) = 0;
  virtual Status copy2D(const Copy2D &copy) = 0;
  virtual Status memset(DevicePtr dst, uint8_t value, uint64_t bytes, StreamHandle stream = 0) = 0;
  /// Allocates in the order of `stream`: work that is issued to it from now on may use the memory.
  virtual Expected<DevicePtr> allocateOn(StreamHandle, uint64_t bytes) { return allocate(bytes); }
  /// Frees what allocateOn returned after the work that was issued to `stream` until now.
  virtual Status freeOn(StreamHandle, DevicePtr address) { return free(address); }

  /// Allocates memory that is zero for whatever is issued from now on, to whichever stream; also
  /// while one is captured. Free it with free().
  virtual Expected<DevicePtr> allocateZeroed(uint64_t bytes) {
    FP4_ASSIGN(auto address, allocate(bytes));
    FP4_TRY(memset(address, 0, bytes));
    return address;
  }
  /// Allocates zeros that kernels write and the host reads while they run; also while a stream is
  /// captured.
  virtual Expected<DevicePtr> allocateShared(uint64_t bytes) { return allocateZeroed(bytes); }
  virtual Status freeShared(DevicePtr address) { return free(address); }
  /// Reads or writes memory of allocateShared without waiting for any work, in words of 64 bits
  /// from the first on. The writes of a kernel before a word that it released are visible when that
  /// word is.
  virtual Status readShared(std::span<std::byte> to, DevicePtr from) {
    return copyToHost(to, from);
  }
  virtual Status writeShared(DevicePtr to, std::span<const std::byte> from) {
    return copyToDevice(to, from);
  }
  /// Faults that kernels found in their input.
  GroupReports &groupReports() { return groupReports_; }

  /// The order of what is issued to `stream` now.
  virtual Expected<WorkOrder> orderOf(StreamHandle stream) { return WorkOrder{stream, 0}; }

  /// Loads the cubin if the device can run it, and otherwise the PTX. A PTX error is of kind
  /// Compile and carries the assembler's text.
  virtual Expected<ModuleId> loadModule(const fp4rt_module &module) = 0;
  /// Gives the code back. No kernel of it may be running.
  virtual Status unloadModule(ModuleId module) = 0;
  virtual Expected<KernelInfo> kernelInfo(ModuleId module, std::string_view kernel) = 0;
  /// params[i] points at the value of parameter i; their number must be the kernel's.
  virtual Status launch(ModuleId module, std::string_view kernel, const LaunchShape &shape,
                        std::span<void *const> params) = 0;
  virtual Status encodeTensorMap(std::span<std::byte, 128> out,
                                 const TensorMapRequest &request) = 0;
  /// A stream whose work is not in order with that of other streams. Callers with streams of their
  /// own need none of these.
  virtual Expected<StreamHandle> createStream() = 0;
  virtual Status destroyStream(StreamHandle stream) = 0;
  /// Waits for all work on the device.
  virtual Status synchronize() = 0;
  /// Waits for the work on one stream.
  virtual Status synchronizeStream(StreamHandle) { return synchronize(); }

  /// Marks a point in the order of a stream; returns its number.
  virtual Expected<uint32_t> recordEvent(StreamHandle stream = 0) = 0;
  /// Milliseconds between two marks, waiting for the second. On a simulator: of host time.
  virtual Expected<double> elapsedMs(uint32_t first, uint32_t second) = 0;

  // The following serves benchmarks; a device without it says so by these defaults.
  virtual Status copyOnDevice(DevicePtr dst, DevicePtr src, uint64_t bytes) {
    return copy2D({dst, bytes, src, bytes, bytes, 1, 0});
  }
  /// Bytes of the L2 cache; 0 where there is none.
  virtual uint64_t l2Bytes() const { return 0; }
  /// The driver's version, for the record: "CUDA 13.0".
  virtual std::string driver() const { return ""; }
  /// The state at this moment, if the device can report it.
  virtual std::optional<Condition> condition() { return std::nullopt; }
  /// Records what `work` issues (launches, memset, copies) and does not execute it.
  virtual Expected<CapturedGraph> capture(const std::function<Status()> &work);
  virtual Status replay(uint32_t graph);
  /// Counts of the last launch, on a simulator.
  virtual std::optional<LaunchCounts> lastLaunch() const { return std::nullopt; }
  /// The instruments of a simulator (fp4/Sim/Instruments.h), with what they found in all launches
  /// so far. Null on hardware.
  virtual const sim::Instruments *instruments() const { return nullptr; }
  /// Number of findings of a simulator's hazard checker, and the reports of findings after the
  /// first `count`. Other threads may launch meanwhile.
  virtual uint64_t hazardCount() const { return 0; }
  virtual std::vector<std::string> hazardsSince(uint64_t count) const { return {}; }
  /// Call this after the last launch: it gives the file of DeviceOptions::timeline its end and its
  /// name. Without this call there is no such file.
  virtual Status finish() { return {}; }

private:
  GroupReports groupReports_{*this};
};

} // namespace fp4::rt
