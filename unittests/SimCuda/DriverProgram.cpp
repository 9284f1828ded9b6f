//===- DriverProgram.cpp - A program of the driver API --------------------===//
//
// Linked with the stub (-lcuda) and run by RunTest.cpp as `fp4-sim run -- DriverProgram MODE`.
//
//===----------------------------------------------------------------------===//
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>

extern "C" {
int cuInit(unsigned);
int cuCtxGetDevice_v2(int *, void *);
int cuCtxSynchronize_v2(void *);
int cuGetProcAddress_v2(const char *, void **, int, unsigned long long, int *);
int cuLibraryLoadData(void **, const void *, void *, void *, unsigned, void *, void *, unsigned);
int cuLibraryGetKernelCount(unsigned *, void *);
int cuLibraryEnumerateKernels(void **, unsigned, void *);
int cuLibraryGetKernel(void **, void *, const char *);
int cuKernelGetName(const char **, void *);
int cuKernelGetParamInfo(void *, size_t, size_t *, size_t *);
int cuModuleLoadData(void **, const void *);
int cuModuleGetGlobal_v2(void **, size_t *, void *, const char *);
int cuDeviceGetCount(int *);
int cuDeviceGetName(char *, int, int);
int cuDeviceGetAttribute(int *, int, int);
int cuGetErrorString(int, const char **);
int cuStreamCreate(void **, unsigned);
int cuEventCreate(void **, unsigned);
int cuGraphCreate(void **, unsigned);
int cuFuncGetAttribute(int *, int, void *);
int cuMemFree_v2(unsigned long long);
int cuMemsetD8_v2(unsigned long long, unsigned char, size_t);
int cuModuleUnload(void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuOccupancyAvailableDynamicSMemPerBlock(size_t *, void *, int, int);
int cuOccupancyMaxPotentialBlockSize(int *, int *, void *, size_t (*)(int), size_t, int);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void *, void **, void **);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemcpyDtoH_v2(void *, unsigned long long, size_t);
int cuIpcCloseMemHandle(unsigned long long);
int cuCtxGetCurrent(void **);
int cuCtxSetCurrent(void *);
int cuCtxPushCurrent_v2(void *);
int cuStreamDestroy_v2(void *);
int cuStreamSynchronize(void *);
int cuStreamQuery(void *);
int cuStreamGetFlags(void *, unsigned *);
int cuStreamGetId(void *, unsigned long long *);
int cuStreamWaitEvent(void *, void *, unsigned);
int cuStreamBeginCapture_v2(void *, int);
int cuStreamEndCapture(void *, void **);
int cuMemAllocAsync(unsigned long long *, size_t, void *);
int cuEventDestroy_v2(void *);
int cuEventRecord(void *, void *);
int cuEventQuery(void *);
int cuEventElapsedTime_v2(float *, void *, void *);
int cuGraphDestroy(void *);
int cuGraphInstantiateWithFlags(void **, void *, unsigned long long);
int cuGraphLaunch(void *, void *);
int cuGraphGetNodes(void *, void **, size_t *);
int cuGraphNodeGetType(void *, int *);
int cuFuncGetModule(void **, void *);
}

namespace {

const char *kPtx = ".version 9.0\n.target sm_100a\n.address_size 64\n"
                   ".visible .entry first(.param .u64 out, .param .u32 value) {\n"
                   ".reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
                   "ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [value];\n"
                   "st.global.u32 [%rd1], %r1; ret; }\n"
                   ".visible .entry second() { .shared .b8 s[1024]; .reg .b32 %r<2>;\n"
                   "mov.u32 %r1, s; ret; }\n";

void must(int code, const char *what) {
  if (code == 0)
    return;
  std::printf("%s: %d\n", what, code);
  std::exit(10);
}
#define MUST(call) must(call, #call)

int kernels() {
  void *library = nullptr, *kernels[2] = {};
  unsigned count = 0;
  MUST(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  MUST(cuLibraryGetKernelCount(&count, library));
  MUST(cuLibraryEnumerateKernels(kernels, 2, library));
  for (void *kernel : kernels) {
    const char *name = nullptr;
    size_t offset = 0, bytes = 0, parameters = 0, shared[2] = {};
    MUST(cuKernelGetName(&name, kernel));
    while (cuKernelGetParamInfo(kernel, parameters, &offset, &bytes) == 0)
      ++parameters;
    MUST(cuOccupancyAvailableDynamicSMemPerBlock(&shared[0], kernel, 1, 128));
    MUST(cuOccupancyAvailableDynamicSMemPerBlock(&shared[1], kernel, 2, 128));
    std::printf("%u kernels, %s: %zu parameters, last %zu+%zu, shared %zu %zu\n", count, name,
                parameters, offset, bytes, shared[0], shared[1]);
  }
  int grid = 0, block = 0, device = -1;
  MUST(cuOccupancyMaxPotentialBlockSize(&grid, &block, kernels[0], nullptr, 0, 0));
  MUST(cuCtxGetDevice_v2(&device, nullptr));
  MUST(cuCtxSynchronize_v2(nullptr));
  std::printf("grid %d, block %d, device %d\n", grid, block, device);
  return 0;
}

/// Names mean what the asked version of CUDA has; asking for what is not there is no call.
int lookups() {
  int device = -1, result = -1;
  void *old = nullptr, *young = nullptr, *found = nullptr;
  MUST(cuGetProcAddress_v2("cuCtxGetDevice", &old, 12000, 0, &result));
  MUST(cuGetProcAddress_v2("cuCtxGetDevice", &young, 13000, 0, &result));
  MUST(reinterpret_cast<int (*)(int *)>(old)(&device));
  MUST(reinterpret_cast<int (*)(int *, void *)>(young)(&device, nullptr));
  std::printf("two functions: %d\n", old != young);
  for (const char *name : {"cuNoSuchThing", "cuMemAlloc", "cuIpcCloseMemHandle"}) {
    const int version = std::strcmp(name, "cuMemAlloc") == 0 ? 1000 : 13000;
    MUST(cuGetProcAddress_v2(name, &found, version, 0, &result));
    std::printf("%s: %s, %d\n", name, found ? "found" : "not found", result);
  }
  return 0;
}

/// The beginning of a cubin.
alignas(8) const unsigned char machineCode[64] = {0x7F, 'E', 'L', 'F', 2, 1, 1};

int cubin() {
  void *module = nullptr, *kernel = nullptr;
  const int loaded = cuModuleLoadData(&module, machineCode);
  std::printf("load: %d\n", loaded);
  if (loaded)
    return 11;
  std::printf("other: %d\n", cuModuleGetFunction(&kernel, module, "other"));
  MUST(cuModuleGetFunction(&kernel, module, "first"));
  unsigned long long out = 0;
  unsigned value = 42, result = 0;
  void *arguments[] = {&out, &value};
  MUST(cuMemAlloc_v2(&out, 4));
  MUST(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  MUST(cuMemcpyDtoH_v2(&result, out, 4));
  std::printf("the kernel of a file: %u\n", result);
  return 0;
}

/// A module that is loaded after another was unloaded has a name of its own.
int modules() {
  void *first = nullptr, *second = nullptr, *third = nullptr;
  MUST(cuModuleLoadData(&first, kPtx));
  MUST(cuModuleLoadData(&second, kPtx));
  MUST(cuModuleUnload(first));
  MUST(cuModuleLoadData(&third, kPtx));
  return 0;
}

/// A place that is missing is an error of the call, and so is memory that is not the device's.
int nothing() {
  void *module = nullptr, *function = nullptr, *address = nullptr;
  MUST(cuModuleLoadData(&module, kPtx));
  MUST(cuModuleGetFunction(&function, module, "first"));
  unsigned long long freed = 0;
  MUST(cuMemAlloc_v2(&freed, 64));
  MUST(cuMemsetD8_v2(freed, 1, 64));
  MUST(cuMemFree_v2(freed));
  for (const int code :
       {cuModuleLoadData(nullptr, kPtx), cuModuleGetFunction(nullptr, module, "first"),
        cuModuleGetFunction(&function, module, nullptr),
        cuModuleGetGlobal_v2(&address, nullptr, module, nullptr), cuDeviceGetCount(nullptr),
        cuDeviceGetName(nullptr, 8, 0), cuDeviceGetAttribute(nullptr, 1, 0),
        cuGetErrorString(1, nullptr), cuStreamCreate(nullptr, 0), cuEventCreate(nullptr, 0),
        cuGraphCreate(nullptr, 0), cuFuncGetAttribute(nullptr, 0, function),
        cuMemsetD8_v2(freed, 1, 64), cuMemsetD8_v2(reinterpret_cast<uintptr_t>(kPtx), 1, 1)})
    std::printf("%d ", code);
  return 0;
}

std::string codes(std::initializer_list<int> all) {
  std::string text;
  for (const int code : all)
    text += " " + std::to_string(code);
  return text;
}

/// The codes of calls with each of these handles, in a line. The errors come before it.
void tryHandles(const char *what, void *stream, void *event, void *graph, void *module,
                void *function, void *context) {
  unsigned flags = 0;
  unsigned long long id = 0, address = 0;
  void *out = nullptr;
  float time = 0;
  size_t count = 0;
  int type = 0;
  std::string text = "context" + codes({cuCtxSetCurrent(context), cuCtxPushCurrent_v2(context)});
  text += "; stream" + codes({cuStreamSynchronize(stream), cuStreamQuery(stream),
                              cuStreamGetFlags(stream, &flags), cuStreamGetId(stream, &id),
                              cuMemAllocAsync(&address, 16, stream)});
  text += "; event" +
          codes({cuEventRecord(event, nullptr), cuEventQuery(event),
                 cuStreamWaitEvent(nullptr, event, 0), cuEventElapsedTime_v2(&time, event, event)});
  text += "; graph" + codes({cuGraphInstantiateWithFlags(&out, graph, 0),
                             cuGraphGetNodes(graph, nullptr, &count), cuGraphLaunch(graph, nullptr),
                             cuGraphNodeGetType(graph, &type)});
  text += "; module" + codes({cuModuleGetFunction(&out, module, "second")});
  text += "; function" +
          codes({cuFuncGetModule(&out, function),
                 cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr)});
  std::printf("%s: %s\n", what, text.c_str());
  std::fflush(stdout);
}

/// Handles of live objects, of what was destroyed, and of what no call gave.
int handles() {
  void *stream, *event, *graph, *module, *function, *context;
  static long long nobody[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
  MUST(cuStreamCreate(&stream, 0));
  MUST(cuEventCreate(&event, 0));
  MUST(cuGraphCreate(&graph, 0));
  MUST(cuModuleLoadData(&module, kPtx));
  MUST(cuModuleGetFunction(&function, module, "second"));
  MUST(cuCtxGetCurrent(&context));
  tryHandles("live", stream, event, graph, module, function, context);
  for (const int code : {cuStreamDestroy_v2(stream), cuEventDestroy_v2(event),
                         cuGraphDestroy(graph), cuModuleUnload(module)})
    must(code, "destroy");
  tryHandles("destroyed", stream, event, graph, module, function, context);
  tryHandles("nobody's", nobody, nobody, nobody, nobody, nobody, nobody);
  std::printf("again: %d %d %d %d\n", cuStreamDestroy_v2(stream), cuEventDestroy_v2(event),
              cuGraphDestroy(graph), cuModuleUnload(module));
  // A stream that is destroyed takes its capture along.
  MUST(cuStreamCreate(&stream, 0));
  MUST(cuStreamBeginCapture_v2(stream, 0));
  MUST(cuStreamDestroy_v2(stream));
  std::printf("captured: %d\n", cuStreamEndCapture(stream, &graph));
  return 0;
}

int ptx() {
  std::fputs(kPtx, stdout);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  const struct {
    const char *name;
    int (*function)();
  } modes[] = {{"kernels", kernels}, {"lookups", lookups}, {"cubin", cubin},
               {"modules", modules}, {"nothing", nothing}, {"ptx", ptx},
               {"handles", handles}};
  MUST(cuInit(0));
  for (const auto &one : modes)
    if (std::strcmp(mode, one.name) == 0)
      return one.function();
  return std::strcmp(mode, "missing") == 0 ? cuIpcCloseMemHandle(0) & 0 : 9;
}
