// Times kernels of rows of 7168 bf16 as nodes of graphs whose launches overlap.
//   few_row_launches FOLDER
// FOLDER has list.txt, lines of "kind name threads rows ctas" (few_row_launches.py), and
// KIND.NAME.cubin. The results of the first kernel of a kind are those of the others, but for
// twins. A line of JSON has microseconds.
#include "driver_timing.h"

#include <algorithm>
#include <cuda_bf16.h>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

static constexpr int kSets = 100, kRounds = 25;
static constexpr unsigned kMost = 128;
static unsigned long long pitch = 2 * 7168;
static constexpr size_t kBytes = 2 * kMost * 7168;

struct Set {
  CUdeviceptr x, r, w, h, y, s, amax;
};
struct Kernel {
  std::string kind, name;
  unsigned threads, rows, ctas;
  CUfunction code;
  CUgraphExec graph;
  std::vector<float> times;
};

static bool has(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

static void launch(const Kernel &kernel, Set &set, CUstream stream) {
  unsigned rows = kernel.rows, items = rows * 448;
  const bool isNvfp4 = has(kernel.kind, "nvfp4"), isSum = has(kernel.kind, "add");
  std::vector<void *> arguments;
  if (!has(kernel.kind, "rms") && !has(kernel.kind, "layer")) {
    arguments = {&set.x, &set.r, &set.y, &items};
    if (has(kernel.kind, "fp"))
      arguments = {&set.x, &pitch, &set.r, &pitch, &set.amax, &set.y, &set.s, &rows};
    if (!isNvfp4 && has(kernel.kind, "fp"))
      arguments.erase(arguments.begin() + 4);
  } else {
    arguments = {&rows, &set.x};
    for (void *one :
         {isSum ? (void *)&set.r : nullptr, (void *)&set.w, isNvfp4 ? (void *)&set.amax : nullptr,
          isSum ? (void *)&set.h : nullptr, (void *)&set.y, isNvfp4 ? (void *)&set.s : nullptr})
      if (one)
        arguments.push_back(one);
  }
  CUlaunchAttribute overlaps = {};
  overlaps.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  overlaps.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config = {};
  config.gridDimX = kernel.ctas;
  config.blockDimX = kernel.threads;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = &overlaps;
  config.numAttrs = has(kernel.name, "alone") ? 0 : 1;
  CHECK(cuLaunchKernelEx(&config, kernel.code, arguments.data(), nullptr));
}

static std::vector<Kernel> load(const std::string &folder) {
  std::vector<Kernel> kernels;
  std::ifstream list(folder + "/list.txt");
  for (Kernel kernel;
       list >> kernel.kind >> kernel.name >> kernel.threads >> kernel.rows >> kernel.ctas;) {
    CUmodule module;
    std::string cubin = folder + "/" + kernel.kind + "." + kernel.name + ".cubin";
    CHECK(cuModuleLoad(&module, cubin.c_str()));
    CHECK(cuModuleGetFunction(&kernel.code, module, "kernel"));
    kernels.push_back(kernel);
  }
  return kernels;
}

static std::vector<Set> makeSets() {
  std::vector<__nv_bfloat16> numbers(kBytes / 2);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (auto &number : numbers)
    number = __float2bfloat16(normal(random));
  const float largest = 24;
  std::vector<Set> sets(kSets);
  for (Set &set : sets) {
    for (CUdeviceptr *tensor : {&set.x, &set.r, &set.w, &set.h, &set.y, &set.s}) {
      CHECK(cuMemAlloc(tensor, kBytes));
      CHECK(cuMemcpyHtoD(*tensor, numbers.data(), kBytes));
    }
    CHECK(cuMemcpyHtoD(set.r, numbers.data() + kBytes / 4, kBytes / 2)); // other numbers than x
    CHECK(cuMemAlloc(&set.amax, sizeof(largest)));
    CHECK(cuMemcpyHtoD(set.amax, &largest, sizeof(largest)));
  }
  return sets;
}

static CUgraphExec capture(const Kernel &kernel, std::vector<Set> &sets, CUstream stream) {
  CUgraph graph;
  CUgraphExec made;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  for (Set &set : sets)
    launch(kernel, set, stream);
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiate(&made, graph, 0));
  return made;
}

/// The results of a kernel in the first set.
static std::vector<char> resultsOf(const Kernel &kernel, Set &set, CUstream stream) {
  std::vector<char> results(3 * kBytes);
  CUdeviceptr tensors[] = {set.h, set.y, set.s};
  for (CUdeviceptr tensor : tensors)
    CHECK(cuMemsetD8(tensor, 0xcd, kBytes));
  launch(kernel, set, stream);
  CHECK(cuStreamSynchronize(stream));
  for (int i = 0; i < 3; ++i)
    CHECK(cuMemcpyDtoH(results.data() + i * kBytes, tensors[i], kBytes));
  return results;
}

static float microsecondsOf(CUgraphExec graph, Timer &timer) {
  return timer.microsecondsOf([&] { CHECK(cuGraphLaunch(graph, timer.stream)); }) / kSets;
}

int main(int, char **arguments) {
  Timer timer;
  std::vector<Set> sets = makeSets();
  std::vector<Kernel> kernels = load(arguments[1]);
  std::map<std::string, std::vector<char>> first;
  for (Kernel &kernel : kernels) {
    std::vector<char> results = resultsOf(kernel, sets[0], timer.stream);
    std::string rows = std::to_string(kernel.rows);
    if (!has(kernel.name, "without") &&
        first.emplace(kernel.kind + rows, results).first->second != results)
      fprintf(stderr, "%s of %s differs\n", kernel.name.c_str(), kernel.kind.c_str());
    kernel.graph = capture(kernel, sets, timer.stream);
  }
  for (int round = 0; round < kRounds; ++round)
    for (Kernel &kernel : kernels)
      kernel.times.push_back(microsecondsOf(kernel.graph, timer));
  for (Kernel &kernel : kernels) {
    std::sort(kernel.times.begin(), kernel.times.end());
    printf("{\"kind\": \"%s\", \"name\": \"%s\", \"rows\": %u, \"us\": %.3f}\n",
           kernel.kind.c_str(), kernel.name.c_str(), kernel.rows, kernel.times[kRounds / 2]);
  }
}
