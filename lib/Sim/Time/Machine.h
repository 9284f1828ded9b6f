//===- Machine.h - The multiprocessors of a timed launch ------------------===//
#pragma once

#include "Sim/Time/Memory.h"
#include "Sim/Time/TimedCode.h"
#include <array>
#include <deque>

namespace fp4::sim {

inline constexpr unsigned kSchedulers = 4;

struct Multiprocessor {
  std::array<Server, kSchedulers> issue;
  std::array<std::array<Server, kPipes>, kSchedulers> pipes;
  std::array<double, kSchedulers> beside{}; ///< interval of the pipes while wgmma accumulates
  Server exchange; ///< shuffles and redux
  Server shared;   ///< the data path of shared memory and L1
  double productEnd = 0;   ///< of the wgmma so far
  double productShare = 0; ///< of that data path, which it takes until then
  SharedServer port; ///< to L2
  Server requests; ///< what hands copies to the engine
  Server copies;   ///< the copy engine
  Server tensor;   ///< tcgen05, all of the multiprocessor
  Server scales;   ///< tcgen05.cp
  Server mbarriers;
  L1Cache l1;
  /// A copy of the engine, whose bytes arrive from `first` to `last`.
  struct InFlight {
    double first, last, bytes;
  };
  std::deque<InFlight> inFlight;
  double bytesInFlight = 0;
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
