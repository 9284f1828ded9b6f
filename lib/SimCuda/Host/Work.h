//===- Work.h - Work of a stream or a graph -------------------------------===//
#pragma once

#include "Abi.h"
#include "DependentLaunch.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

namespace fp4::simcuda {

struct Event;
struct Function;
struct Graph;

/// The requests that the attributes of a launch make.
struct LaunchAttributes {
  Dim3 cluster{0, 0, 0}, preferredCluster{0, 0, 0};
  bool cooperative = false;
  DependentLaunch dependence;
};

struct KernelWork {
  Function *function = nullptr;
  Dim3 grid, block;
  uint32_t dynamicShared = 0;
  LaunchAttributes asked;
  std::vector<std::byte> parameters; ///< the whole block
};

/// Slices of rows; a plain copy is one row.
struct CopyWork {
  void *to = nullptr;
  const void *from = nullptr;
  size_t bytes = 0; ///< bytes of a row
  int kind = Default;
  size_t rows = 1, toPitch = 0, fromPitch = 0;
  size_t slices = 1, toSlice = 0, fromSlice = 0;
};

struct FillWork {
  void *to = nullptr;
  uint32_t value = 0;
  unsigned elementBytes = 1; ///< 1, 2 or 4
  size_t count = 0;          ///< elements of a row
  size_t rows = 1, pitch = 0;
};

struct HostWork {
  void (*function)(void *) = nullptr;
  void *argument = nullptr;
};

struct RecordWork {
  Event *event = nullptr;
};
struct WaitWork {
  Event *event = nullptr;
};

/// Memory of cudaMallocAsync in a graph: the address is fixed when the node is made.
struct AllocateWork {
  uint64_t address = 0, bytes = 0;
};
struct FreeWork {
  uint64_t address = 0;
};

struct EmptyWork {};

/// A graph inside a graph, or launched in a stream.
struct GraphWork {
  std::shared_ptr<Graph> graph;
};

using Work = std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostWork, RecordWork, WaitWork,
                          AllocateWork, FreeWork, GraphWork>;

} // namespace fp4::simcuda
