//===- LimitModes.cpp - The most that a device takes, and one more --------===//
#include "Program.h"

static void say(const char *what, int code) {
  std::printf("%s: %s\n", what, cudaGetErrorName(code));
}

/// Launches at a limit and behind it. Captured, so that none of them runs.
static void launches() {
  unsigned *word = deviceWords(1);
  void *arguments[] = {&word}, *stream, *graph;
  MUST(cudaStreamCreate(&stream));
  MUST(cudaStreamBeginCapture(stream, 0));
  const auto grid = [&](const char *what, Dim3 shape) {
    say(what, launch(&countHost, shape, {1, 1, 1}, arguments, 0, stream));
  };
  grid("65535 in y", {1, 65535, 1});
  grid("65536 in y", {1, 65536, 1});
  grid("65535 in z", {1, 1, 65535});
  grid("65536 in z", {1, 1, 65536});
  const auto together = [&](const char *what, unsigned ctas) {
    say(what,
        cudaLaunchCooperativeKernel(&countHost, {ctas, 1, 1}, {1024, 1, 1}, arguments, 0, stream));
  };
  together("two for each SM", 2 * 148);
  together("one more", 2 * 148 + 1);
  MUST(cudaStreamEndCapture(stream, &graph));
}

/// Large clusters do not find room everywhere.
static void activeClusters() {
  for (unsigned size = 2; size <= 4; size += 2) {
    fp4::simcuda::LaunchAttribute attribute{};
    attribute.id = 4;
    attribute.dim = {size, 1, 1};
    const RuntimeLaunchConfig config{{size, 1, 1}, {1024, 1, 1}, 0, nullptr, &attribute, 1};
    int active = 0;
    MUST(cudaOccupancyMaxActiveClusters(&active, &countHost, &config));
    std::printf("clusters of %u: %d\n", size, active);
  }
}

/// CTAs whose threads fill no whole warps, and more memory than there is.
int limits() {
  launches();
  activeClusters();
  int whole = 0, ragged = 0;
  MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&whole, &countHost, 64, 0));
  MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ragged, &countHost, 65, 0));
  std::printf("CTAs of 64 threads: %d, of 65: %d\n", whole, ragged);
  size_t available = 0, total = 0;
  MUST(cudaMemGetInfo(&available, &total));
  void *pointer = nullptr;
  say("more than the memory", cudaMalloc(&pointer, total + 1));
  return 0;
}
