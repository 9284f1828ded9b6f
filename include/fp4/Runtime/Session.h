//===- Session.h - The state behind the C ABI -----------------------------===//
//
// One run of host code on one device. A session owns the allocations that the host code made, keeps
// the first error, and counts launches. While a Session::Scope lives, the fp4rt_ functions called
// on its thread act on its session.
//
// A program that embeds emitted libraries gives its own stream, allocator and result buffers, and a
// cache of modules that outlives the session (SessionOptions). With a warm cache, provided results,
// `measure` off, and no temporary memory or an allocator that may be called while a graph is
// captured, host code neither allocates from the driver nor waits, so its work can be captured.
//
// One thread at a time uses a session; several sessions may use one device and one cache at the
// same time.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Runtime/ModuleCache.h"

#include <map>
#include <utility>

namespace fp4::rt {

/// One launch, as the report shows it.
struct LaunchRecord {
  std::string module, kernel;
  LaunchShape shape;
  KernelInfo info;
  double milliseconds = 0;            ///< device time (hardware) or host time (simulator)
  std::optional<LaunchCounts> counts; ///< counts of a simulator
};

/// One device operation of host code, to be issued again while its session lives.
struct RecordedOp {
  std::function<Status(Device &)> issue;
  std::optional<size_t> launch; ///< index into Session::launches()
};

/// Memory of the buffers with which other programs call compiled functions (fp4rt_call).
enum class CallerMemory { Device, Host };

/// The device memory of a caller. Temporary memory is freed when the host code has issued its last
/// use, so an allocator gives it to other work only in the order of the stream.
class Allocator {
public:
  virtual ~Allocator() = default;
  /// Aligned to 256 bytes; `bytes` may be 0.
  virtual Expected<DevicePtr> allocate(uint64_t bytes, StreamHandle stream) = 0;
  virtual Status free(DevicePtr address, StreamHandle stream) = 0;
};

/// Memory for one result of an entry function.
struct ResultBuffer {
  DevicePtr address = 0; ///< a multiple of 16; 0: the session allocates the result
  uint64_t bytes = 0;    ///< size, at least that of the result's buffer (docs/guides/libraries.md)
  /// Bytes from one row of a strided result to the next, a multiple of 16; 0: rows without gaps, or
  /// with gaps up to the next multiple of 16 bytes.
  uint64_t pitch = 0;
};

struct SessionOptions {
  StreamHandle stream = 0;                ///< stream to which all work is issued
  Allocator *allocator = nullptr;         ///< null: the device's own
  std::vector<ResultBuffer> results = {}; ///< places by number; absent ones are allocated
  ModuleCache *cache = nullptr; ///< modules of the same device; null: the session's own cache
  bool measure = true;                    ///< keep a LaunchRecord with its time for each launch
};

class Session {
public:
  explicit Session(Device &device, SessionOptions options = {});
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
  /// The first error until now, or success. Does not wait.
  const Status &status() const { return status_; }
  /// The first error, or success. Waits for the work of the session's stream; without a stream, for
  /// the device.
  Status finish();
  /// An allocation of this session, such as a result, becomes the caller's: it is not freed with
  /// the session. Free it with the session's allocator, else with Device::freeOn where there is a
  /// stream and with Device::free where there is none.
  void handOver(void *address);
  const std::vector<LaunchRecord> &launches() const { return launches_; }
  /// Live bytes of allocations, and of the constants in the cache.
  uint64_t allocatedBytes() const { return liveBytes_ + cache_.constantBytes(); }
  /// Keeps every launch, memset and copy from now on. Memory that host code frees stays allocated
  /// until the session ends, because the recorded operations use it. Expects `measure`.
  void record() { recording_ = true; }
  /// The operations that were recorded since the last call.
  std::vector<RecordedOp> takeRecording() { return std::exchange(recorded_, {}); }

  /// Device memory unless this says otherwise. A host compiler whose code runs on the CPU has host
  /// memory.
  void setCallerMemory(CallerMemory memory) { callerMemory_ = memory; }

  /// Memory for the results of the next call, in the place of SessionOptions::results.
  void provideResults(std::vector<ResultBuffer> results) { options_.results = std::move(results); }

  // The functions of the C ABI; each does nothing after the first error.
  void *allocate(uint64_t bytes);
  void *allocateResult(uint32_t index, uint64_t bytes);
  uint64_t resultPitch(uint32_t index, uint64_t bytes);
  void free(void *address);
  void *constant(const void *bytes, uint64_t size);
  void *counters(uint64_t bytes);
  void *groupReport(const char *what);
  void memset(void *address, uint8_t value, uint64_t bytes);
  void copy2D(Copy2D copy);
  void encodeTensorMap(void *out128, const TensorMapRequest &request);
  int32_t smCount();
  void launch(const fp4rt_module &module, const char *kernel, LaunchShape shape,
              std::span<void *const> params);
  void call(fp4_entry_function entry, void *const *buffers, const fp4rt_memref_type *types,
            uint32_t numArguments, uint32_t numResults);
  void fail(Error error);

private:
  /// Keeps the first error; true when `status` is a success.
  bool check(const Status &status);
  Expected<DevicePtr> newMemory(uint64_t bytes);
  Status release(DevicePtr address);
  Status tryProvided(uint32_t index, uint64_t bytes) const;
  Status encodeEmptyMap(std::span<std::byte, 128> out, TensorMapRequest request) const;
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
  SessionOptions options_;
  std::unique_ptr<ModuleCache> ownCache_;
  ModuleCache &cache_;
  Status status_;
  std::map<DevicePtr, uint64_t> allocations_;
  std::vector<LaunchRecord> launches_;
  std::vector<TimedLaunch> events_;
  uint64_t liveBytes_ = 0;
  CallerMemory callerMemory_ = CallerMemory::Device;
  std::vector<ResultBuffer> destinations_; ///< places of the call that runs
  std::map<uint32_t, uint64_t> gaps_;      ///< bytes behind a row of each strided result
  bool recording_ = false;
  std::vector<RecordedOp> recorded_;
  std::optional<WorkOrder> countersOrder_; ///< order whose counters this session has given out
};

/// The functions of fp4-c/Runtime.h by name, for a JIT that does not search the process.
struct AbiSymbol {
  const char *name;
  void *address;
};
std::span<const AbiSymbol> abiSymbols();

} // namespace fp4::rt
