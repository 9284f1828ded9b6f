//===- MachineMix.h - Machine instructions of each PTX instruction --------===//
//
// Assembles a module with a .loc directive for each line, disassembles it, and counts machine
// instructions by the line of PTX that they came from. Instructions that only a slow path executes
// (the call of a division of denormal numbers) are left out. A loop that ptxas unrolled has its
// instructions several times: copies() says how often.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Time/Machine.h"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fp4::sim {

struct MachineCount {
  uint32_t issue = 0;                      ///< all instructions
  uint64_t places = 0;                     ///< sum of their places in the kernel, from 0
  std::array<uint32_t, kPipes> pipes = {}; ///< instructions that occupy an arithmetic pipe
  uint32_t fp32 = 0;                       ///< instructions that take either half of the fp32 pipe
  uint32_t wide = 0;    ///< products that take the pipe of integer products for longer
  uint32_t reloads = 0, spills = 0; ///< rows of 128 bytes of spilled registers, loaded and stored
  std::array<uint32_t, kBanks> reads = {}; ///< registers that the pipes' instructions read, by bank
  uint64_t parameters = 0;                 ///< a bit for each line of parameters that they read
  uint32_t rejoins = 0; ///< branches around a slow path, behind which the lanes of a warp meet
  uint32_t anchors = 0; ///< memory, barriers and MMAs, which ptxas neither makes nor removes
  uint32_t wgmma = 0;   ///< MMAs of a warpgroup that have this line, none of them among `issue`
};

/// An MMA of a warpgroup. ptxas gives it no line, so that it has that of the instruction before it.
struct MachineMma {
  uint32_t line = 0;
  uint64_t place = 0; ///< place in the kernel, as in MachineCount
};

struct MachineKernel {
  std::map<uint32_t, MachineCount> lines; ///< counts by line of the PTX
  std::vector<MachineMma> mmas;           ///< MMAs of warpgroups, in their order
  uint32_t registers = 0;                 ///< registers of a thread
  uint32_t spilledBytes = 0;              ///< bytes that a thread stores to spill registers
};

/// Machine code of one kernel; null where it is not known, and `note` says why.
struct MachineCode {
  std::shared_ptr<const MachineKernel> kernel;
  std::string note;
};

/// Returns the code that ptxas makes of `kernel` for `target`. Each module is assembled once in a
/// process.
MachineCode findMachineCode(const ProgramImpl &program, const std::string &kernel,
                            const std::string &target);

/// The kernels of a module by name. `lines` are those at which an instruction begins. An error says
/// which program is missing or what it complains of.
Expected<std::map<std::string, MachineKernel>>
assembleMix(const std::string &ptx, const std::vector<uint32_t> &lines, const std::string &target);

/// Counts the machine instructions in nvdisasm's listing of a cubin.
std::map<std::string, MachineKernel> countMachineCode(std::string_view listing);

} // namespace fp4::sim
