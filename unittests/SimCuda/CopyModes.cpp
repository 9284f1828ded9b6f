//===- CopyModes.cpp - Copies and fills of rows, and what is refused ------===//
#include "Program.h"
#include <vector>

/// Rows of a wider matrix, there and back: each side has its own pitch.
int pitchedCopies() {
  constexpr size_t rows = 3, width = 8, pitch = 32;
  unsigned *device = deviceWords(rows * pitch / 4);
  std::vector<unsigned char> from(rows * width), back(rows * 16, 0xEE);
  for (size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<unsigned char>(i + 1);
  MUST(cudaMemset(device, 0, rows * pitch));
  MUST(cudaMemcpy2D(device, pitch, from.data(), width, width, rows, 1));
  MUST(cudaMemcpy2D(back.data(), 16, device, pitch, width, rows, 2));
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < 16; ++i)
      if (back[row * 16 + i] != (i < width ? from[row * width + i] : 0xEE))
        return 40;
  return 0;
}

/// Two slices of three rows each, between the slices of higher ones.
int slicedCopies() {
  constexpr size_t width = 8, rows = 3, slices = 2, pitch = 16, height = 4;
  unsigned *device = deviceWords(slices * height * pitch / 4);
  std::vector<unsigned char> from(slices * rows * width), back(slices * height * pitch, 0xEE);
  for (size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<unsigned char>(i + 1);
  MUST(cudaMemset(device, 0x55, back.size()));
  fp4::simcuda::Memcpy3DParms copy{};
  copy.source = {from.data(), width, width, rows};
  copy.destination = {device, pitch, pitch, height};
  copy.extent = {width, rows, slices};
  copy.kind = 1;
  MUST(cudaMemcpy3D(&copy));
  MUST(cudaMemcpy(back.data(), device, back.size(), 2));
  for (size_t i = 0; i < back.size(); ++i) {
    const size_t column = i % pitch, row = i / pitch % height, slice = i / pitch / height;
    const bool inside = column < width && row < rows;
    if (back[i] != (inside ? from[(slice * rows + row) * width + column] : 0x55))
      return 43;
  }
  return 0;
}

/// Words of a node that fills, and nodes that run in the order of their edges, not of their making.
int orderedNodes() {
  void *graph, *executable, *late, *early;
  unsigned *words = deviceWords(4), found[4] = {};
  MUST(cudaGraphCreate(&graph, 0));
  void *arguments[] = {&words};
  fp4::simcuda::KernelNodeParams count{&countHost, {1, 1, 1}, {5, 1, 1}, 0, arguments, nullptr};
  MUST(cudaGraphAddKernelNode(&late, graph, nullptr, 0, &count));
  fp4::simcuda::MemsetParams fill{words, 0, 0x01020304, 4, 4, 1};
  MUST(cudaGraphAddMemsetNode(&early, graph, nullptr, 0, &fill));
  MUST(cudaGraphAddDependencies(graph, &early, &late, nullptr, 1));
  MUST(cudaGraphInstantiate(&executable, graph, 0));
  MUST(cudaGraphLaunch(executable, nullptr));
  MUST(cudaMemcpy(found, words, sizeof found, 2));
  if (found[0] != 0x01020304 + 5)
    return 41;
  for (int i = 1; i < 4; ++i)
    if (found[i] != 0x01020304)
      return 42;
  return 0;
}

/// Prints the calls that are refused, by their names.
int refusals() {
  const auto say = [](const char *what, int code) {
    std::printf("%s: %s\n", what, cudaGetErrorName(code));
  };
  unsigned *word = deviceWords(1), value = 0;
  say("direction", cudaMemcpy(&value, word, 4, 9));
  std::vector<unsigned> registered(32);
  say("fill of host memory", cudaMemset(registered.data(), 1, 4));
  MUST(cudaHostRegister(registered.data(), 128, 0));
  MUST(cudaMemset(registered.data(), 1, 4)); // which the device knows
  say("free of registered memory", cudaFreeHost(registered.data()));
  MUST(cudaHostUnregister(registered.data()));
  void *first, *second, *event, *graph;
  MUST(cudaStreamCreate(&first));
  MUST(cudaStreamCreate(&second));
  MUST(cudaEventCreate(&event));
  MUST(cudaStreamBeginCapture(first, 0));
  MUST(cudaStreamBeginCapture(second, 0));
  MUST(cudaEventRecord(event, first));
  say("merge", cudaStreamWaitEvent(second, event, 0));
  say("end", cudaStreamEndCapture(second, &graph));
  MUST(cudaStreamEndCapture(first, &graph));
  MUST(cudaFree(word));
  say("fill of freed memory", cudaMemset(word, 0, 4));
  return 0;
}
