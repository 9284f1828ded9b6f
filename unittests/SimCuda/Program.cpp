//===- Program.cpp - A CUDA program without nvcc --------------------------===//
//
// Makes by hand what nvcc generates: a fat binary, its registration, launches through the C entry
// points. Linked with the stand-in runtime and run by RunTest.cpp as `fp4-sim run -- Program MODE`.
//
//===----------------------------------------------------------------------===//
#include "Program.h"
#include "FatbinWriter.h"
#include <cstring>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

using fp4::simcuda::test::Compression;
using fp4::simcuda::test::FatbinWriter;

char scaleHost, clusterHost, pairsHost, wildHost, unknownHost, countHost, racyHost, idleHost,
    paddedHost, spinHost;
unsigned factorHost, *managedHost;
void **handle;

namespace {

const char *kPtx = R"(
.global .align 4 .u32 factor = 3;
.const .align 4 .b32 offsets[4];
.global .attribute(.managed) .align 4 .u32 both = 41;

.visible .entry scale(.param .u64 out, .param .u64 in, .param .u32 count) {
  .reg .pred %p<2>; .reg .b32 %r<12>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [in];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd4, %rd2, %rd3;
  ld.global.u32 %r6, [%rd4];
  ld.global.u32 %r7, [factor];
  and.b32 %r8, %r5, 3;
  mul.wide.u32 %rd5, %r8, 4;
  mov.u64 %rd6, offsets;
  add.u64 %rd6, %rd6, %rd5;
  ld.const.u32 %r9, [%rd6];
  mad.lo.u32 %r10, %r6, %r7, %r9;
  add.u64 %rd7, %rd1, %rd3;
  st.global.u32 [%rd7], %r10;
DONE:
  ret;
}

.extern .shared .align 16 .b8 dynamic[];
.visible .entry cluster_rank(.param .u64 out) {
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, dynamic;
  st.shared.u32 [%r3+60000], %r1;
  bar.sync 0;
  ld.shared.u32 %r4, [%r3+60000];
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r4;
  ret;
}

.visible .entry pairs(.param .u64 out) .blocksareclusters .reqntid 32, 1, 1
    .reqnctapercluster 2, 1, 1 {
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  add.u32 %r1, %r1, %r3;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
}

.visible .entry wild(.param .u64 out) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  st.global.u32 [%rd1+4096], 7;
  ret;
}

.visible .entry count(.param .u64 at) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [at];
  atom.global.add.u32 %r1, [%rd1], 1;
  atom.global.add.u32 %r2, [both], 1;
  ret;
}

.shared .align 4 .b32 word;
.visible .entry racy() {
  .reg .b32 %r<2>;
  mov.u32 %r1, %tid.x;
  st.shared.u32 [word], %r1;
  ret;
}

.visible .entry idle() {
  .reg .pred %p<2>; .reg .b32 %r<2>;
  ld.shared.u32 %r1, [word];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra END;
  st.shared.u32 [word], 0;
END:
  ret;
}

.visible .entry padded() {
  .reg .b32 %r<2>;
  ld.shared.u32 %r1, [word];
  ret;
}

.visible .entry spin(.param .u64 at) {
  .reg .pred %p<2>; .reg .b32 %r<2>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [at];
AGAIN:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra AGAIN;
  ret;
}

.visible .entry unknown(.param .u64 out) {
  frobnicate.sync.aligned;
  ret;
}
)";

unsigned offsetsHost[4];

struct Wrapper {
  uint32_t magic = 0x466243B1, version = 1;
  const void *data = nullptr;
  void *file = nullptr;
};

std::string fatbin;
Wrapper wrapper;

void registerProgram(const char *target, bool withPtx) {
  FatbinWriter writer;
  writer.addCubin(100);
  if (withPtx)
    writer.addPtx(std::string(".version 9.4\n.target ") + target + "\n.address_size 64\n" + kPtx,
                  100);
  fatbin = writer.bytes();
  wrapper.data = fatbin.data();
  handle = __cudaRegisterFatBinary(&wrapper);
  auto add = [](const char *host, const char *name) {
    __cudaRegisterFunction(handle, host, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr,
                           nullptr);
  };
  add(&scaleHost, "scale");
  add(&clusterHost, "cluster_rank");
  add(&pairsHost, "pairs");
  add(&wildHost, "wild");
  add(&unknownHost, "unknown");
  add(&countHost, "count");
  add(&racyHost, "racy");
  add(&idleHost, "idle");
  add(&paddedHost, "padded");
  add(&spinHost, "spin");
  auto variable = [](void *host, const char *name, size_t bytes, int constant) {
    __cudaRegisterVar(handle, static_cast<char *>(host), nullptr, name, 0, bytes, constant, 0);
  };
  variable(&factorHost, "factor", 4, 0);
  variable(offsetsHost, "offsets", 16, 1);
  __cudaRegisterManagedVar(handle, reinterpret_cast<void **>(&managedHost), nullptr, "both", 0, 4,
                           0, 0);
  __cudaRegisterFatBinaryEnd(handle);
  std::atexit([] { __cudaUnregisterFatBinary(handle); });
}

} // namespace

int launch(const void *kernel, Dim3 grid, Dim3 block, void **arguments, size_t shared,
           void *stream) {
  __cudaPushCallConfiguration(grid, block, shared, stream);
  MUST(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

unsigned *deviceWords(size_t count) {
  void *pointer = nullptr;
  MUST(cudaMalloc(&pointer, count * 4));
  return static_cast<unsigned *>(pointer);
}

namespace {

int scale() {
  std::vector<unsigned> in(100), out(100);
  for (unsigned i = 0; i < 100; ++i)
    in[i] = i;
  unsigned *x = deviceWords(100), *y = deviceWords(100), count = 100, five = 5, four = 0;
  unsigned offsets[4] = {10, 20, 30, 40};
  MUST(cudaMemcpy(x, in.data(), 400, 1));
  MUST(cudaMemcpyFromSymbol(&four, &factorHost, 4, 0, 2));
  MUST(cudaMemcpyToSymbol(&factorHost, &five, 4, 0, 1));
  MUST(cudaMemcpyToSymbol(offsetsHost, offsets, 16, 0, 1));
  void *arguments[] = {&y, &x, &count};
  MUST(launch(&scaleHost, {4, 1, 1}, {32, 1, 1}, arguments));
  MUST(cudaDeviceSynchronize());
  MUST(cudaMemcpy_ptds(out.data(), y, 400, 4));
  for (unsigned i = 0; i < 100; ++i)
    if (out[i] != i * 5 + offsets[i % 4])
      return 11;
  MUST(cudaFree(x));
  MUST(cudaFree(y));
  std::printf("factor was %u, all equal\n", four);
  return 0;
}

int cluster() {
  unsigned *x = deviceWords(8), out[8];
  fp4::simcuda::LaunchAttribute attribute{};
  attribute.id = 4;
  attribute.dim = {4, 1, 1};
  RuntimeLaunchConfig config{{8, 1, 1}, {32, 1, 1}, 65536, nullptr, &attribute, 1};
  void *arguments[] = {&x};
  int refused = cudaLaunchKernelExC(&config, &clusterHost, arguments);
  std::printf("without the attribute: %s\n", cudaGetErrorName(refused));
  MUST(cudaFuncSetAttribute(&clusterHost, 8, 65536));
  MUST(cudaLaunchKernelExC(&config, &clusterHost, arguments));
  MUST(cudaMemcpy(out, x, 32, 2));
  for (unsigned value : out)
    std::printf("%u ", value);
  std::printf("\n");
  return cudaGetLastError() == refused ? 0 : 12;
}

/// A grid that counts clusters, of a kernel that says the threads of its CTAs.
int pairs() {
  unsigned *x = deviceWords(4), out[4];
  void *arguments[] = {&x};
  MUST(launch(&pairsHost, {2, 1, 1}, {1, 1, 1}, arguments, 0, nullptr));
  MUST(cudaMemcpy(out, x, 16, 2));
  std::printf("%u %u %u %u\n", out[0], out[1], out[2], out[3]);
  const int refused = launch(&pairsHost, {2, 1, 1}, {64, 1, 1}, arguments, 0, nullptr);
  std::printf("with other threads: %s\n", cudaGetErrorName(refused));
  return 0;
}

/// Dynamic shared memory of a CTA that has an SM alone.
int oversized() {
  for (int bytes : {327 * 1024, 327 * 1024 + 1})
    std::printf("%d bytes: %s\n", bytes,
                cudaGetErrorName(cudaFuncSetAttribute(&clusterHost, 8, bytes)));
  unsigned *x = deviceWords(1), out = 7;
  void *arguments[] = {&x};
  MUST(launch(&clusterHost, {1, 1, 1}, {32, 1, 1}, arguments, 327 * 1024, nullptr));
  MUST(cudaMemcpy(&out, x, 4, 2));
  return out;
}

/// Clusters of two CTAs; of four where they find room.
int preferred() {
  unsigned *x = deviceWords(8), out[8];
  fp4::simcuda::LaunchAttribute attributes[2]{};
  attributes[0].id = fp4::simcuda::AttributeClusterDimension;
  attributes[0].dim = {2, 1, 1};
  attributes[1].id = fp4::simcuda::AttributePreferredClusterDimension;
  RuntimeLaunchConfig config{{8, 1, 1}, {32, 1, 1}, 65536, nullptr, attributes, 2};
  void *arguments[] = {&x};
  MUST(cudaFuncSetAttribute(&clusterHost, 8, 65536));
  for (unsigned extent : {3u, 4u}) {
    attributes[1].dim = {extent, 1, 1};
    std::printf("clusters of %u: %s\n", extent,
                cudaGetErrorName(cudaLaunchKernelExC(&config, &clusterHost, arguments)));
  }
  MUST(cudaMemcpy(out, x, 32, 2));
  for (unsigned value : out)
    std::printf("%u ", value);
  std::printf("\n");
  return 0;
}

int wild() {
  unsigned *x = deviceWords(8), out[8];
  void *arguments[] = {&x};
  MUST(launch(&wildHost, {1, 1, 1}, {32, 1, 1}, arguments));
  std::printf("synchronize: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  std::printf("copy: %s\n", cudaGetErrorName(cudaMemcpy(out, x, 32, 2)));
  return 0; // a program that does not look at what it found
}

int unknown() {
  unsigned *x = deviceWords(8);
  void *arguments[] = {&x};
  std::printf("launch: %s\n",
              cudaGetErrorName(launch(&unknownHost, {1, 1, 1}, {32, 1, 1}, arguments)));
  return 13;
}

int racy() {
  MUST(launch(&racyHost, {1, 1, 1}, {64, 1, 1}, nullptr));
  return 0;
}

/// A test runner that keeps what it runs to itself: a file lies behind stdout and stderr.
int captured() {
  std::FILE *kept = std::tmpfile();
  std::fflush(nullptr);
  dup2(fileno(kept), 1);
  dup2(fileno(kept), 2);
  std::fprintf(stderr, "not to be seen\n");
  return racy();
}

/// A racy program that closes files that it did not open.
int closed() {
  for (int file = 3; file < 1024; ++file)
    close(file);
  return racy();
}

int idle() {
  MUST(launch(&idleHost, {1, 1, 1}, {32, 1, 1}, nullptr));
  return 0;
}

/// Reads what idle() reads, and does not use it.
int padded() {
  MUST(launch(&paddedHost, {1, 1, 1}, {32, 1, 1}, nullptr));
  return 0;
}

/// Waits for a word that is `value`, and that nobody changes.
int spin(int value) {
  unsigned *word = deviceWords(1);
  MUST(cudaMemset(word, value, 4));
  void *arguments[] = {&word};
  MUST(launch(&spinHost, {2, 1, 1}, {64, 1, 1}, arguments));
  std::printf("spun: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}

int launchScale() {
  unsigned *x = deviceWords(8), count = 8;
  void *arguments[] = {&x, &x, &count};
  std::printf("launch: %s\n",
              cudaGetErrorName(launch(&scaleHost, {1, 1, 1}, {32, 1, 1}, arguments)));
  return 14;
}

int missing() {
  char ipc[64];
  std::printf("ipc: %s\n", cudaGetErrorName(cudaIpcGetMemHandle(ipc, ipc)));
  std::printf("ipc: %s\n", cudaGetErrorName(cudaIpcGetMemHandle(ipc, ipc)));
  return 0;
}

int touch() {
  unsigned *x = deviceWords(8);
  x[2] = 1;
  return 0;
}

int copies() {
  unsigned *x = deviceWords(8), out[16];
  std::printf("long: %s\n", cudaGetErrorName(cudaMemcpy(out, x, 64, 2)));
  std::printf("direction: %s\n", cudaGetErrorName(cudaMemcpy(out, x, 32, 1)));
  std::printf("host source: %s\n", cudaGetErrorName(cudaMemcpy(x, x + 4, 16, 1)));
  std::printf("host destination: %s\n", cudaGetErrorName(cudaMemcpy(x + 4, x, 16, 2)));
  std::printf("both on the device: %s\n", cudaGetErrorName(cudaMemcpy(x + 4, x, 16, 3)));
  std::printf("free: %s\n", cudaGetErrorName(cudaFree(x + 1)));
  MUST(cudaMemset(x, 0x11, 32));
  MUST(cudaMemcpy(out, x, 32, 4));
  std::printf("%x, last error %s\n", out[7], cudaGetErrorName(cudaGetLastError()));
  return cudaGetLastError();
}

int queries() {
  char properties[1032]; // the larger of CUDA 12 and 13
  int blocks = 0, sms = 0;
  MUST(cudaGetDeviceProperties(properties, 0));
  MUST(cudaDeviceGetAttribute(&sms, 16, 0));
  MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &scaleHost, 256, 100 << 10));
  void *stream, *from, *to;
  float time = -1;
  MUST(cudaStreamCreate(&stream));
  MUST(cudaEventCreate(&from));
  MUST(cudaEventCreate(&to));
  MUST(cudaEventRecord(from, stream));
  MUST(cudaEventRecord(to, stream));
  MUST(cudaEventElapsedTime(&time, from, to));
  MUST(cudaEventDestroy(from));
  MUST(cudaEventDestroy(to));
  MUST(cudaStreamDestroy(stream));
  std::printf("%s, %d SMs, %d CTAs, %s\n", properties, sms, blocks,
              time >= 0 ? "time passes" : "no time");
  return 0;
}

/// A map of columns of pixels: corners of more than 16 bits, and no strides.
int columnMap(unsigned *x) {
  using Encode =
      int (*)(void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const int *,
              const int *, unsigned, unsigned, const uint32_t *, int, int, int, int);
  void *found = nullptr;
  int status = -1;
  MUST(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &found, 12000, 0, &status));
  alignas(64) char map[128];
  const uint64_t dims[] = {16, 8, 4}, strides[] = {64, 512};
  const uint32_t steps[] = {1, 1, 1};
  const auto error = [&](const uint64_t *strides, int lower, int upper) {
    return cudaGetErrorName(reinterpret_cast<Encode>(found)(map, 7, 3, x, dims, strides, &lower,
                                                            &upper, 16, 8, steps, 0, 0, 0, 0));
  };
  std::printf("corner 0: %s, 65536: %s, lower: %s; no strides: %s\n", error(strides, 0, 0),
              error(strides, 0, 65536), error(strides, -65536, 0), error(nullptr, 0, 0));
  return 0;
}

/// The driver through the runtime: what CUTLASS does for its tensor maps.
int tensorMap() {
  using Encode = int (*)(void *, int, unsigned, void *, const uint64_t *, const uint64_t *,
                         const uint32_t *, const uint32_t *, int, int, int, int);
  void *found = nullptr, *nothing = nullptr;
  int status = -1;
  MUST(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, 0, &status));
  std::printf("status %d\n", status);
  (void)cudaGetDriverEntryPointByVersion("cuNoSuchThing", &nothing, 12000, 0, &status);
  std::printf("status %d\n", status);
  alignas(64) char map[128];
  uint64_t dims[] = {64, 64}, strides[] = {256}, odd[] = {260};
  uint32_t box[] = {32, 8}, steps[] = {1, 1};
  unsigned *x = deviceWords(64 * 64);
  auto encode = reinterpret_cast<Encode>(found);
  MUST(encode(map, 7, 2, x, dims, strides, box, steps, 0, 3, 2, 0));
  std::printf("stride: %s\n",
              cudaGetErrorName(encode(map, 7, 2, x, dims, odd, box, steps, 0, 3, 2, 0)));
  std::printf("no strides: %s, of one dimension: %s\n",
              cudaGetErrorName(encode(map, 7, 2, x, dims, nullptr, box, steps, 0, 3, 2, 0)),
              cudaGetErrorName(encode(map, 7, 1, x, dims, nullptr, box, steps, 0, 3, 2, 0)));
  return columnMap(x);
}

} // namespace

int main(int argc, char **argv) {
  std::string mode = argc > 1 ? argv[1] : "";
  registerProgram(mode == "hopper"      ? "sm_90a"
                  : mode == "queries"   ? "sm_90"
                  : mode == "oversized" ? "sm_107a"
                                        : "sm_100a",
                  mode != "codeonly");
  const std::map<std::string, int (*)()> modes = {{"scale", scale},
                                                  {"cluster", cluster},
                                                  {"pairs", pairs},
                                                  {"oversized", oversized},
                                                  {"preferred", preferred},
                                                  {"wild", wild},
                                                  {"unknown", unknown},
                                                  {"missing", missing},
                                                  {"managed", managed},
                                                  {"touch", touch},
                                                  {"copies", copies},
                                                  {"queries", queries},
                                                  {"hopper", launchScale},
                                                  {"codeonly", launchScale},
                                                  {"tensormap", tensorMap},
                                                  {"mapped", mapped},
                                                  {"written", [] { return readWords(32); }},
                                                  {"unwritten", [] { return readWords(31); }},
                                                  {"variable", managedVariable},
                                                  {"capture", capture},
                                                  {"nodes", graphNodes},
                                                  {"errors", captureErrors},
                                                  {"memory", graphMemory},
                                                  {"idle", idle},
                                                  {"padded", padded},
                                                  {"captured", captured},
                                                  {"closed", closed},
                                                  {"pitched", pitchedCopies},
                                                  {"sliced", slicedCopies},
                                                  {"ordered", orderedNodes},
                                                  {"updated", updatedNodes},
                                                  {"limits", limits},
                                                  {"refusals", refusals},
                                                  {"racy", racy},
                                                  {"spin", [] { return spin(0); }},
                                                  {"spun", [] { return spin(1); }}};
  auto found = modes.find(mode);
  return found == modes.end() ? 9 : found->second();
}
