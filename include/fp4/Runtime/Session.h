//===- Session.h - The state behind the C ABI -----------------------------===//
//
// One run of host code on one device. A session owns every allocation and module that the host code
// made, keeps the first error, and counts launches. While a Session::Scope lives, the fp4rt_
// functions called on its thread act on its session.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Runtime/Device.h"

#include <map>
#include <set>
#include <utility>

namespace fp4::rt {

/// One launch, as the report shows it.
struct LaunchRecord {
  std::string module, kernel;
  LaunchShape shape;
  KernelInfo info;
  double milliseconds = 0;            ///< of device time (hardware) or host time (simulator)
  std::optional<LaunchCounts> counts; ///< of a simulator
};

/// One device operation of host code, to be issued again while its session lives.
struct RecordedOp {
  std::function<Status(Device &)> issue;
  std::optional<size_t> launch; ///< index into Session::launches()
};

/// Where the buffers are with which other programs call compiled functions (fp4rt_call).
enum class CallerMemory { Device, Host };

/// Where an entry point may place a result; no bytes where it may not.
struct ResultMemory {
  DevicePtr address = 0;
  uint64_t bytes = 0;
};

class Session {
public:
  explicit Session(Device &device) : device_(device) {}
  ~Session(); ///< frees what is still allocated
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /// Makes `session` current on this thread until the scope ends.
  class Scope {
  public:
    explicit Scope(Session &session);
    ~Scope();
    Scope(const Scope &) = delete;

  private:
    Session *previous_;
  };
  /// Null when no scope is open on this thread.
  static Session *current();

  Device &device() { return device_; }
  bool failed() const { return !status_.has_value(); }
  /// The first error, or success. Waits for the device.
  Status finish();
  const std::vector<LaunchRecord> &launches() const { return launches_; }
  uint64_t allocatedBytes() const { return liveBytes_; }
  /// Keeps every launch, memset and copy from now on. Memory that host code frees stays allocated
  /// until the session ends, because the recorded operations use it.
  void record() { recording_ = true; }
  /// The operations that were recorded since the last call.
  std::vector<RecordedOp> takeRecording() { return std::exchange(recorded_, {}); }

  /// Device memory unless this says otherwise. A host compiler whose code runs on the CPU has host
  /// memory.
  void setCallerMemory(CallerMemory memory) { callerMemory_ = memory; }

  // The functions of the C ABI; each does nothing after the first error.
  void *allocate(uint64_t bytes);
  void *allocateResult(uint32_t index, uint64_t bytes);
  void free(void *address);
  void *constant(const void *bytes, uint64_t size);
  void memset(void *address, uint8_t value, uint64_t bytes);
  void copy2D(const Copy2D &copy);
  void encodeTensorMap(void *out128, const TensorMapRequest &request);
  int32_t multiprocessorCount();
  void launch(const fp4rt_module &module, const char *kernel, const LaunchShape &shape,
              std::span<void *const> params);
  void call(void (*entry)(void **), void *const *buffers, const fp4rt_memref_type *types,
            uint32_t numArguments, uint32_t numResults);
  void fail(Error error);

private:
  /// Keeps the first error; true when `status` is a success.
  bool check(const Status &status);
  Expected<ModuleId> load(const fp4rt_module &module);
  Status tryLaunch(const fp4rt_module &module, const char *kernel, const LaunchShape &shape,
                   std::span<void *const> params);
  Status resolveTimes();
  void recordLaunch(ModuleId module, const LaunchShape &shape, std::span<void *const> params);
  /// Kernels run after their launch returned: an error names those that may have caused it.
  Status withLaunches(Status status) const;

  struct TimedLaunch {
    uint32_t begin, end;
  };
  Device &device_;
  Status status_;
  std::map<DevicePtr, uint64_t> allocations_;
  std::map<const void *, DevicePtr> constants_; ///< by the host address of their bytes
  std::map<const fp4rt_module *, ModuleId> modules_;
  std::vector<LaunchRecord> launches_;
  std::vector<TimedLaunch> events_;
  uint64_t liveBytes_ = 0;
  CallerMemory callerMemory_ = CallerMemory::Device;
  std::vector<ResultMemory> destinations_; ///< of the call that runs
  bool recording_ = false;
  std::vector<RecordedOp> recorded_;
};

/// The functions of fp4-c/Runtime.h by name, for a JIT that does not search the process.
struct AbiSymbol {
  const char *name;
  void *address;
};
std::span<const AbiSymbol> abiSymbols();

} // namespace fp4::rt
