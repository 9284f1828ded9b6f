//===- Context.h - The simulated device of one process --------------------===//
//
// The common part of libcudart and libcuda: one chip, one simulator, the modules and functions of
// the program, and the error of a failed kernel. Everything happens in the order of the calls; a
// launch has ended when it returns. The entry points of both libraries are thin: they translate
// arguments and call this class.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../PtxFolder.h"
#include "Abi.h"
#include "Chip.h"
#include "Edges.h"
#include "Handles.h"
#include "Report.h"
#include "Work.h"
#include "fp4/Sim/Instruments.h"
#include "fp4/Sim/Stepper.h"
#include "fp4/SimCuda/Fatbin.h"
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unistd.h>
#include <unordered_map>

namespace fp4::simcuda {

struct Module;

/// A kernel of a module, found or not: cudaFunction_t, cudaKernel_t and CUfunction point to one.
struct Function {
  Module *module = nullptr;
  Module *code = nullptr; ///< module whose program has the code: `module`, or a file of --ptx-dir
  std::string name;
  uint32_t maxDynamicShared = kDefaultSharedBytes;
  bool nonPortableCluster = false;
};

/// A fat binary or PTX text that was registered or loaded; decoded when it is first needed.
struct Module {
  std::string name; ///< name for messages
  std::span<const std::byte> fatbin;
  std::string ptx;              ///< instead of a fat binary
  const void *origin = nullptr; ///< address in the program or library that registered the module
  bool decoded = false;
  Error error; ///< reason why `program` is null
  std::shared_ptr<const sim::Program> program;
  std::map<std::string, std::unique_ptr<Function>, std::less<>> functions;
};

/// Memory that host and device share, under one address.
enum class HostMemory : uint8_t {
  Pinned,     ///< cudaHostAlloc: ours
  Registered, ///< cudaHostRegister: the program's
  Lent,       ///< bytes of a tensor of python -m fp4.sim: device memory that torch keeps
  Managed,    ///< cudaMallocManaged: ours
  Variable,   ///< __managed__: pages at the variable's device address
};

/// A __device__ or __constant__ variable, by its host shadow.
struct Symbol {
  Module *module = nullptr;
  std::string name;
};

struct Capture;

struct Stream : Live<HandleKind::Stream> {
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  StreamOrder order;
  std::shared_ptr<Capture> capture;    ///< capture that is under way
  Edges last;                          ///< the nodes that the next captured work comes after
  const GraphNode *captured = nullptr; ///< the last node of this stream's own work
};

struct Event : Live<HandleKind::Event> {
  unsigned flags = 0;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
  std::shared_ptr<Capture> capture; ///< capture that it was last recorded in
  Edges nodes;                      ///< nodes of the capture that the event comes after
  Moment moment;                    ///< the moment of the record, outside of a capture
};

struct LaunchRequest {
  Dim3 grid, block;
  LaunchAttributes asked{};
  uint64_t dynamicShared = 0;
  StreamHandle stream = nullptr;
  void **arguments = nullptr;              ///< one pointer per parameter, or
  std::span<const std::byte> parameters{}; ///< the whole block
};

/// Every member function takes the lock; calls from several threads run one after the other.
class FP4_HOST_API Context {
public:
  /// Made at the first call, from FP4_SIM_DEVICE and the other variables; never destroyed, since
  /// programs call CUDA in their own exit handlers.
  static Context &get();

  const Chip &chip() const { return *currentChip; }

  // --- Errors ---------------------------------------------------------------------------------
  /// Prints what `function` found wrong; returns `code`, which is also the thread's last error.
  Code fail(const char *function, Code code, std::string message, std::string note = "");
  Code fail(const char *function, Code code, const Error &error);
  /// Sets the thread's last error without a word: codes that programs ask for on purpose.
  Code quiet(Code code);
  Code lastError(bool reset);
  /// The error of a kernel that failed earlier: every later call answers it. Success when none.
  Code sticky() const { return stickyCode; }

  /// Prints what happens, with FP4_SIM_TRACE.
  bool tracing() const { return traced; }
  void trace(std::string_view what) const;

  // --- Memory ---------------------------------------------------------------------------------
  Code allocate(const char *function, uint64_t &address, uint64_t bytes);
  /// Allocates an address again that allocate once gave.
  Code allocateAt(const char *function, uint64_t address, uint64_t bytes);
  Code release(const char *function, uint64_t address);
  bool isDevice(const void *pointer) const;
  /// Base, size and offset of the allocation that contains `address`.
  const sim::Allocation *find(uint64_t address) const;
  Code copy(const char *function, void *destination, const void *source, uint64_t bytes,
            int kind = Default);
  /// `value` is repeated; `width` 1, 2 or 4 bytes.
  Code fill(const char *function, void *destination, uint32_t value, unsigned width,
            uint64_t count);
  /// Memory that both sides see: a host pointer that is a device pointer as well.
  Code allocateHost(const char *function, void *&pointer, uint64_t bytes, HostMemory kind);
  Code registerHost(const char *function, void *pointer, uint64_t bytes);
  /// Memory of the host that is device memory from now on. `written`: all of it has a value.
  Code lend(const char *function, void *pointer, uint64_t bytes, bool written);
  /// The host has written to such memory.
  Code markWritten(const char *function, const void *pointer, uint64_t bytes);
  /// Implements cudaFreeHost and cudaHostUnregister, which expect a `kind` each.
  Code releaseHost(const char *function, void *pointer, HostMemory kind);
  /// Returns the kind of host memory that `pointer` points into; none: device memory, lent memory
  /// too, or not known here.
  std::optional<HostMemory> hostMemory(const void *pointer) const;
  uint64_t bytesInUse() const { return simulator->memory().bytesInUse(); }

  // --- Modules --------------------------------------------------------------------------------
  Module *addModule(std::span<const std::byte> fatbin, const void *origin = nullptr);
  Module *addModule(std::string ptx);
  /// Adds a module whose kernels only --ptx-dir can have.
  Module *addMachineCode();
  void removeModule(Module *module);
  bool isLoaded(const Module *module) const;
  /// Decodes the program of a module; the error says why there is none.
  Status decode(Module &module);
  /// Returns the module whose program has `kernel`: `module` or, if that has no PTX for the device,
  /// the file of --ptx-dir.
  Expected<Module *> moduleWith(Module &module, std::string_view kernel);
  bool hasPtxFolder() const { return ptxFolder.has_value(); }
  /// The kernel called `name`; null when the module has none.
  Function *findFunction(Module &module, std::string_view name);
  /// The kernel that a function stands for; never null. The code of an error that was printed when
  /// the function cannot run.
  tl::expected<const sim::KernelInfo *, Code> kernelOf(const char *function, Function &kernel);
  Expected<sim::VariableInfo> findVariable(Module &module, std::string_view name);

  // Host shadows of the runtime API.
  void registerFunction(const void *hostFunction, Module *module, std::string_view name);
  void registerVariable(const void *hostVariable, Module *module, std::string_view name);
  /// `shadow` points to the variable once the module is initialized.
  void registerManaged(void **shadow, Module *module, std::string_view name);
  Code initializeManaged(Module &module);
  /// A host function of the program, or a handle of ours; null when it is neither.
  Function *resolve(const void *function);
  const Symbol *findSymbol(const void *hostVariable) const;

  // --- Launches -------------------------------------------------------------------------------
  /// Returns an error where the device would refuse; `work` has the values of the parameters.
  Code prepare(const char *function, Function &kernel, LaunchRequest request, KernelWork &work);
  Code launch(const char *function, const KernelWork &work, const sim::Dependence &dependence);
  /// CTAs of `kernel` that one SM can hold; registers are not counted.
  int residentCtasPerSm(const sim::KernelInfo &kernel, int threads, uint64_t dynamicShared) const;

  /// The process ends: writes the last line of the report.
  void finish();

private:
  Context();
  void readOptions();
  void makeSimulator(const sim::SimulationOptions &options);
  void reportAccesses() const;
  void finishTimeline();
  void dump(const Module &module) const;
  Status choose(Module &module) const;
  Expected<std::shared_ptr<const sim::Program>> load(Module &module);
  Status checkLaunch(const Function &kernel, const sim::KernelInfo &info,
                     const LaunchRequest &request, Code &code) const;
  Code runKernel(const char *function, const Function &kernel, const sim::LaunchConfig &config,
                 std::span<const std::byte> parameters);
  void reportHazards();
  void reportOrders();
  Status shareVariable(const sim::VariableInfo &variable);
  Status checkSide(const void *pointer, uint64_t bytes, bool wantsDevice, const char *side) const;

  mutable std::recursive_mutex lock;
  const Chip *currentChip = nullptr;
  const pid_t process = getpid();
  std::unique_ptr<sim::Stepper> stepper;         ///< stepper of fp4-sim debug
  std::unique_ptr<sim::Instruments> instruments; ///< outlive the simulator
  std::unique_ptr<sim::Simulator> simulator;
  std::string programName;
  std::string dumpDirectory;
  std::optional<PtxFolder> ptxFolder;
  std::map<std::string, Module *> folderModules; ///< modules of --ptx-dir, by file
  bool traced = false;
  bool quietTimes = false; ///< true when times are for the report alone
  Code stickyCode = Success;
  uint64_t allocations = 0, modulesMade = 0;
  uint64_t launches = 0, warpInstructions = 0;
  size_t ordersReported = 0; ///< launches whose orders have been told
  double seconds = 0;
  std::vector<std::unique_ptr<Module>> modules;
  std::unordered_map<const void *, Function *> hostFunctions;
  std::unordered_map<const void *, Symbol> hostVariables;
  std::map<void **, Symbol> managedVariables;  ///< managed variables that the host cannot see yet
  std::map<uint64_t, HostMemory> hostMemories; ///< kinds of host memory, by address
  std::unordered_map<const void *, Function *> handles; ///< functions by their own addresses
};

} // namespace fp4::simcuda
