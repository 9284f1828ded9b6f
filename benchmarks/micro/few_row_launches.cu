// Times kernels of rows of 7168 bf16 as nodes of graphs whose launches overlap.
//   few_row_launches FOLDER
// FOLDER has list.txt, lines of "kind name threads rows ctas" (few_row_launches.py), and
// KIND.NAME.cubin. The results of the first kernel of a kind are those of the others, but for
// twins. A line of JSON has microseconds: where all launches share the code of a kernel, and of 64
// rows where each has its own, which the caches then have not.
#include "driver_timing.h"

#include <algorithm>
#include <cuda_bf16.h>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

static constexpr int kSets = 100, kRounds = 25;
static constexpr unsigned kFew = 64, kMost = 1024;
static unsigned long long pitch = 2 * 7168;
static constexpr size_t kBytes = 2 * kMost * 7168;

struct Set {
  CUdeviceptr x, r, w, h, y, s;
};
struct Kernel {
  std::string kind, name;
  unsigned threads, rows, ctas;
  std::vector<CUfunction> codes; ///< of a module each
  CUgraphExec shared, own;
  std::vector<float> times[2];
};

static bool has(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

static void launch(const Kernel &kernel, CUfunction code, Set &set, CUdeviceptr &amax,
                   CUstream stream) {
  unsigned rows = kernel.rows, items = rows * 448;
  const bool isNvfp4 = has(kernel.kind, "nvfp4"), isSum = has(kernel.kind, "add");
  std::vector<void *> arguments;
  if (!has(kernel.kind, "rms") && !has(kernel.kind, "layer")) {
    arguments = {&set.x, &set.r, &set.y, &items};
    if (has(kernel.kind, "fp"))
      arguments = {&set.x, &pitch, &set.r, &pitch, &amax, &set.y, &set.s, &rows};
    if (has(kernel.kind, "mxfp"))
      arguments.erase(arguments.begin() + 4);
  } else {
    arguments = {&rows, &set.x};
    for (void *one :
         {isSum ? (void *)&set.r : nullptr, (void *)&set.w, isNvfp4 ? (void *)&amax : nullptr,
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
  CHECK(cuLaunchKernelEx(&config, code, arguments.data(), nullptr));
}

static std::vector<Kernel> load(const std::string &folder) {
  std::vector<Kernel> kernels;
  std::ifstream list(folder + "/list.txt");
  for (Kernel kernel;
       list >> kernel.kind >> kernel.name >> kernel.threads >> kernel.rows >> kernel.ctas;) {
    kernel.codes.assign(kernel.rows == kFew ? kSets : 1, nullptr);
    for (CUfunction &code : kernel.codes) {
      CUmodule module;
      CHECK(cuModuleLoad(&module,
                         (folder + "/" + kernel.kind + "." + kernel.name + ".cubin").c_str()));
      CHECK(cuModuleGetFunction(&code, module, "kernel"));
    }
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
  std::vector<Set> sets(kSets);
  for (Set &set : sets)
    for (CUdeviceptr *tensor : {&set.x, &set.r, &set.w, &set.h, &set.y, &set.s}) {
      CHECK(cuMemAlloc(tensor, kBytes));
      CHECK(cuMemcpyHtoD(*tensor, numbers.data(), kBytes));
    }
  return sets;
}

static CUgraphExec capture(const Kernel &kernel, bool ownCode, std::vector<Set> &sets,
                           CUdeviceptr amax, CUstream stream) {
  CUgraph graph;
  CUgraphExec made;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  for (int i = 0; i < kSets; ++i)
    launch(kernel, kernel.codes[ownCode ? i : 0], sets[i], amax, stream);
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiate(&made, graph, 0));
  return made;
}

/// The results of a kernel in the first set.
static std::vector<char> resultsOf(const Kernel &kernel, Set &set, CUdeviceptr amax,
                                   CUstream stream) {
  std::vector<char> results(3 * kBytes);
  CUdeviceptr tensors[] = {set.h, set.y, set.s};
  for (CUdeviceptr tensor : tensors)
    CHECK(cuMemsetD8(tensor, 0xcd, kBytes));
  launch(kernel, kernel.codes[0], set, amax, stream);
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
  CUdeviceptr amax;
  const float largest = 24;
  CHECK(cuMemAlloc(&amax, 4));
  CHECK(cuMemcpyHtoD(amax, &largest, 4));
  std::vector<Set> sets = makeSets();
  std::vector<Kernel> kernels = load(arguments[1]);
  std::map<std::string, std::vector<char>> first;
  for (Kernel &kernel : kernels) {
    std::vector<char> results = resultsOf(kernel, sets[0], amax, timer.stream);
    std::string rows = std::to_string(kernel.rows);
    if (!has(kernel.name, "without") &&
        first.emplace(kernel.kind + rows, results).first->second != results)
      fprintf(stderr, "%s of %s differs\n", kernel.name.c_str(), kernel.kind.c_str());
    kernel.shared = capture(kernel, false, sets, amax, timer.stream);
    kernel.own = capture(kernel, kernel.rows == kFew, sets, amax, timer.stream);
  }
  for (int round = 0; round < kRounds; ++round)
    for (Kernel &kernel : kernels)
      for (int own = 0; own <= (kernel.rows == kFew); ++own)
        kernel.times[own].push_back(microsecondsOf(own ? kernel.own : kernel.shared, timer));
  for (Kernel &kernel : kernels) {
    for (auto &times : kernel.times)
      std::sort(times.begin(), times.end());
    printf("{\"kind\": \"%s\", \"name\": \"%s\", \"rows\": %u, \"us\": %.3f", kernel.kind.c_str(),
           kernel.name.c_str(), kernel.rows, kernel.times[0][kRounds / 2]);
    if (kernel.rows == kFew)
      printf(", \"own_code\": %.3f", kernel.times[1][kRounds / 2]);
    printf("}\n");
  }
}
