//===- Machine.h - The multiprocessors of a timed launch ------------------===//
#pragma once

#include "Sim/Time/Memory.h"
#include "Sim/Time/TimedCode.h"
#include <array>
#include <deque>
#include <vector>

namespace fp4::sim {

inline constexpr unsigned kSchedulers = 4;

/// The instructions that are near a scheduler: the lines of code that were brought last.
class CodeCache {
public:
  static constexpr unsigned lineInsns = 8; ///< 128 bytes
  explicit CodeCache(uint32_t insns = 0) : lines(insns / lineInsns) {}
  /// Whether a line is there, as every one is at first; from now on it is.
  bool has(uint32_t line) {
    if (line >= order.size())
      order.resize(line + 1);
    const uint32_t before = order[line];
    if (before && brought - before < lines)
      return true;
    order[line] = ++brought;
    return !before;
  }

private:
  uint32_t lines, brought = 0;
  std::vector<uint32_t> order; ///< which it was of those that were brought; 0: none
};

struct Multiprocessor {
  std::array<Server, kSchedulers> issue;
  std::array<std::array<Server, kPipes>, kSchedulers> pipes;
  std::array<std::array<Server, kBanks>, kSchedulers> registers;
  std::array<CodeCache, kSchedulers> code;
  std::array<double, kSchedulers> beside{}; ///< interval of the pipes while wgmma accumulates
  Server exchange;                          ///< shuffles and redux
  Server shared;                            ///< the data path of shared memory and L1
  double productEnd = 0;                    ///< of the wgmma so far
  double productShare = 0;                  ///< of that data path, which it takes until then
  Port port;                                ///< to L2
  Server requests;                          ///< what hands copies to the engine
  Server copies;                            ///< the copy engine
  Server remoteStores;                      ///< what takes st.async to other blocks of a cluster
  Server tensor;                            ///< tcgen05, all of the multiprocessor
  Server scales;                            ///< tcgen05.cp
  /// When products may use what tcgen05.cp wrote to a column of tensor memory last.
  std::array<double, hw::tmemColumnCount> copied{};
  Server mbarriers;
  L1Cache l1;
  /// A copy of the engine, whose bytes arrive from `first` to `last`.
  struct InFlight {
    double first, last, bytes;
  };
  std::deque<InFlight> inFlight;
  double bytesInFlight = 0;
  /// The last store of threads, which a second one of its warp to the same sectors joins.
  struct {
    const void *warp = nullptr;
    std::vector<LineAccess> lines;
  } store;
  double lastRow = 0;      ///< when the engine asked for the last row so far
  double lastStart = -1e9; ///< of a block
};

/// What all of a launch share.
struct Machine {
  Machine(const Rates &rates, double gigahertz, uint64_t l2Bytes)
      : rates(rates), memory(rates, gigahertz, l2Bytes) {}
  const Rates &rates;
  MemorySystem memory;
  std::vector<Multiprocessor> processors;
  double flops = 0; ///< of the products that were executed
};

} // namespace fp4::sim
