// Times the cross entropy of 16384 rows of 8192 bf16 beside twins that lack a part of it.
//   loss_twins FOLDER
// FOLDER has list.txt, lines of "name threads" (loss_twins.py), and NAME.cubin. A line of JSON has
// microseconds, the median of rounds by turns with a cold L2, and whether the results are those of
// the first kernel.
#include "driver_timing.h"

#include <algorithm>
#include <cuda_bf16.h>
#include <fstream>
#include <random>
#include <string>
#include <vector>

static constexpr int kRounds = 40;
static constexpr size_t kColumns = 8192, kFlush = 256 << 20;
static unsigned rows = 16384;

struct Kernel {
  std::string name;
  unsigned threads;
  CUfunction code;
  std::vector<float> times;
};
struct Tensors {
  CUdeviceptr x, labels, sums, losses, flush;
};

static std::vector<Kernel> load(const std::string &folder) {
  std::vector<Kernel> kernels;
  std::ifstream list(folder + "/list.txt");
  for (Kernel kernel; list >> kernel.name >> kernel.threads;) {
    CUmodule module;
    CHECK(cuModuleLoad(&module, (folder + "/" + kernel.name + ".cubin").c_str()));
    CHECK(cuModuleGetFunction(&kernel.code, module, "kernel"));
    kernels.push_back(kernel);
  }
  return kernels;
}

static Tensors makeTensors() {
  std::vector<__nv_bfloat16> numbers(rows * kColumns);
  std::vector<int> labels(rows);
  std::mt19937 random(1);
  for (auto &number : numbers) // sums of uniform numbers
    number = __float2bfloat16(float(random() % 4096 + random() % 4096) / 1024 - 4);
  for (int &label : labels)
    label = int(random() % kColumns);
  Tensors made;
  CHECK(cuMemAlloc(&made.x, 2 * rows * kColumns));
  CHECK(cuMemcpyHtoD(made.x, numbers.data(), 2 * rows * kColumns));
  for (CUdeviceptr *tensor : {&made.labels, &made.sums, &made.losses})
    CHECK(cuMemAlloc(tensor, 4 * rows));
  CHECK(cuMemcpyHtoD(made.labels, labels.data(), 4 * rows));
  CHECK(cuMemAlloc(&made.flush, kFlush));
  return made;
}

static void launch(const Kernel &kernel, Tensors &tensors, CUstream stream) {
  void *arguments[] = {&rows, &tensors.x, &tensors.labels, &tensors.sums, &tensors.losses};
  CHECK(
      cuLaunchKernel(kernel.code, rows, 1, 1, kernel.threads, 1, 1, 0, stream, arguments, nullptr));
}

static std::vector<int> resultsOf(const Kernel &kernel, Tensors &tensors, CUstream stream) {
  std::vector<int> results(2 * rows);
  launch(kernel, tensors, stream);
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuMemcpyDtoH(results.data(), tensors.sums, 4 * rows));
  CHECK(cuMemcpyDtoH(results.data() + rows, tensors.losses, 4 * rows));
  return results;
}

static float microsecondsOf(const Kernel &kernel, Tensors &tensors, Timer &timer) {
  CHECK(cuMemsetD8Async(tensors.flush, 1, kFlush, timer.stream));
  return timer.microsecondsOf([&] { launch(kernel, tensors, timer.stream); });
}

int main(int, char **arguments) {
  Timer timer;
  std::vector<Kernel> kernels = load(arguments[1]);
  Tensors tensors = makeTensors();
  std::vector<int> first = resultsOf(kernels.front(), tensors, timer.stream);
  std::vector<bool> same;
  for (Kernel &kernel : kernels)
    same.push_back(resultsOf(kernel, tensors, timer.stream) == first);
  for (int round = 0; round < kRounds; ++round)
    for (Kernel &kernel : kernels)
      kernel.times.push_back(microsecondsOf(kernel, tensors, timer));
  for (size_t i = 0; i < kernels.size(); ++i) {
    std::vector<float> &times = kernels[i].times;
    std::sort(times.begin(), times.end());
    printf("{\"name\": \"%s\", \"us\": %.2f, \"same\": %s}\n", kernels[i].name.c_str(),
           times[kRounds / 2], same[i] ? "true" : "false");
  }
}
