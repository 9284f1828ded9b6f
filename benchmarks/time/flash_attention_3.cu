// FlashAttention-3's forward pass of bf16 and heads of 128 on sm_90a, launch behind launch in a
// graph whose operands L2 does not have; flash_attention_3.py compiles it against
// Dao-AILab/flash-attention. KIND is that of the kernel: 2 has clusters of two, 1 has none, and 0
// is causal and takes its tiles from a counter, which is cleared before the graph.
//   flash_attention_3 BATCH HEADS TOKENS            a launch, for the simulator
//   flash_attention_3 BATCH HEADS TOKENS LAUNCHES   microseconds and clock of a launch on a GPU
#include "flash_fwd_launch_template.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <vector>
#define OK(x)                                                                                      \
  do {                                                                                             \
    cudaError_t e = (x);                                                                           \
    if (e) {                                                                                       \
      fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e));                                      \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

constexpr int dim = 128;
constexpr unsigned sms = 132;

struct Problem {
  int batch, heads, tokens;
  size_t elements() const { return size_t(batch) * heads * tokens * dim; }
};

/// Operands and results of a launch.
struct Buffers {
  __nv_bfloat16 *q, *k, *v, *o;
  float *sums;
  int *counter;
};

/// Uniform values of -1.7 to 1.7.
__global__ void fill(__nv_bfloat16 *to, size_t count, unsigned seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
       i += size_t(gridDim.x) * blockDim.x) {
    unsigned x = unsigned(i) * 2654435761u + seed * 0x9E3779B9u;
    x ^= x >> 15;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    x ^= x >> 16;
    to[i] = __float2bfloat16((float(x >> 8) / 8388608.f - 1) * 1.7f);
  }
}

/// Notes both clocks of each SM.
__global__ void note(unsigned long long *to) {
  unsigned sm;
  unsigned long long cycles, nanoseconds;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  if (threadIdx.x == 0 && sm < sms) {
    to[2 * sm] = cycles;
    to[2 * sm + 1] = nanoseconds;
  }
}

static Buffers allocate(const Problem &p, unsigned seed, int *counter) {
  Buffers b{};
  for (__nv_bfloat16 **x : {&b.q, &b.k, &b.v, &b.o})
    OK(cudaMalloc(reinterpret_cast<void **>(x), p.elements() * 2));
  OK(cudaMalloc(reinterpret_cast<void **>(&b.sums), p.elements() / dim * 4));
  b.counter = counter;
  for (__nv_bfloat16 *x : {b.q, b.k, b.v})
    fill<<<sms * 8, 256>>>(x, p.elements(), seed++);
  return b;
}

static void launch(const Problem &p, const Buffers &b, cudaStream_t stream) {
  Flash_fwd_params f{};
  f.q_ptr = b.q, f.k_ptr = b.k, f.v_ptr = b.v, f.o_ptr = b.o, f.softmax_lse_ptr = b.sums;
  f.q_row_stride = f.k_row_stride = f.v_row_stride = f.o_row_stride = int64_t(p.heads) * dim;
  f.q_head_stride = f.k_head_stride = f.v_head_stride = f.o_head_stride = dim;
  f.q_batch_stride = f.k_batch_stride = f.v_batch_stride = f.o_batch_stride =
      int64_t(p.heads) * dim * p.tokens;
  f.v_dim_stride = 1;
  f.h = f.h_k = p.heads;
  f.b = f.b_k = p.batch;
  f.seqlen_q = f.seqlen_k = f.seqlen_q_rounded = f.seqlen_k_rounded = p.tokens;
  f.total_q = f.total_k = p.batch * p.tokens;
  f.d = f.dv = f.d_rounded = f.dv_rounded = dim;
  f.scale_softmax = 1 / std::sqrt(float(dim));
  f.window_size_left = -1, f.window_size_right = KIND ? -1 : 0;
  f.is_bf16 = true, f.is_causal = !KIND;
  f.num_splits = 1, f.page_size = 1;
  f.tile_count_semaphore = b.counter;
  f.arch = 90, f.num_sm = sms;
  using T = cutlass::bfloat16_t;
  run_flash_fwd<90, dim, dim, KIND == 2 ? 2 : 1, T, T, KIND == 0, false, false, false, false, false,
                false, false, false, false>(f, stream);
}

/// The largest difference of some rows from sums in fp64.
static double difference(const Problem &p, const Buffers &b) {
  std::vector<__nv_bfloat16> q(p.elements()), k(q), v(q), o(q);
  const auto read = [&](std::vector<__nv_bfloat16> &to, const __nv_bfloat16 *from) {
    OK(cudaMemcpy(to.data(), from, 2 * to.size(), cudaMemcpyDeviceToHost));
  };
  read(q, b.q), read(k, b.k), read(v, b.v), read(o, b.o);
  double most = 0;
  for (int row = 1; row < p.tokens; row += p.tokens / 3) {
    const int batch = row % p.batch, head = row % p.heads, keys = KIND ? p.tokens : row + 1;
    const auto at = [&](int token) {
      return ((size_t(batch) * p.tokens + token) * p.heads + head) * dim;
    };
    std::vector<double> result(dim);
    double sum = 0;
    for (int key = 0; key < keys; ++key) {
      double score = 0;
      for (int d = 0; d < dim; ++d)
        score += double(__bfloat162float(q[at(row) + d])) * __bfloat162float(k[at(key) + d]);
      const double power = std::exp(score / std::sqrt(double(dim)));
      sum += power;
      for (int d = 0; d < dim; ++d)
        result[d] += power * __bfloat162float(v[at(key) + d]);
    }
    for (int d = 0; d < dim; ++d)
      most = std::fmax(most, std::fabs(result[d] / sum - __bfloat162float(o[at(row) + d])));
  }
  return most;
}

/// Microseconds of a launch of a graph, and the mean clock of an SM from its begin to its end.
static void measure(const Problem &p, int launches) {
  const size_t l2 = size_t(128) << 20;
  const int sets = int(l2 / (p.elements() * 8)) + 2;
  int *counters;
  unsigned long long *notes;
  OK(cudaMalloc(reinterpret_cast<void **>(&counters), launches * 4));
  OK(cudaMallocManaged(reinterpret_cast<void **>(&notes), 4 * sms * 8));
  std::vector<Buffers> buffers;
  for (int i = 0; i < sets; ++i)
    buffers.push_back(allocate(p, 3 * i, nullptr));
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaEvent_t begin, end;
  OK(cudaStreamCreate(&stream));
  OK(cudaEventCreate(&begin));
  OK(cudaEventCreate(&end));
  OK(cudaDeviceSynchronize());
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  note<<<sms, 1024, 0, stream>>>(notes);
  OK(cudaEventRecordWithFlags(begin, stream, cudaEventRecordExternal));
  for (int i = 0; i < launches; ++i) {
    Buffers b = buffers[i % sets];
    b.counter = counters + i;
    launch(p, b, stream);
  }
  OK(cudaEventRecordWithFlags(end, stream, cudaEventRecordExternal));
  note<<<sms, 1024, 0, stream>>>(notes + 2 * sms);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&executable, graph, 0));
  printf("{\"kind\": %d, \"batch\": %d, \"heads\": %d, \"tokens\": %d, \"rounds\": [", KIND, p.batch,
         p.heads, p.tokens);
  for (int round = 0; round < 5; ++round) {
    OK(cudaMemsetAsync(counters, 0, launches * 4, stream));
    OK(cudaGraphLaunch(executable, stream));
    OK(cudaStreamSynchronize(stream));
    float milliseconds;
    OK(cudaEventElapsedTime(&milliseconds, begin, end));
    double clock = 0;
    for (unsigned sm = 0; sm < sms; ++sm) {
      const auto *first = notes + 2 * sm, *last = notes + 2 * (sms + sm);
      clock += double(last[0] - first[0]) / double(last[1] - first[1]) * 1e3 / sms;
    }
    printf("%s[%.3f, %.0f]", round ? ", " : "", milliseconds * 1e3 / launches, clock);
  }
  printf("], \"difference\": %.4f}\n", difference(p, buffers[0]));
}

int main(int count, char **arguments) {
  if (count < 4)
    return 2;
  const Problem p{atoi(arguments[1]), atoi(arguments[2]), atoi(arguments[3])};
  if (count > 4) {
    measure(p, atoi(arguments[4]));
    return 0;
  }
  int *counter;
  OK(cudaMalloc(reinterpret_cast<void **>(&counter), 4));
  OK(cudaMemset(counter, 0, 4));
  Buffers b{};
  for (__nv_bfloat16 **x : {&b.q, &b.k, &b.v, &b.o})
    OK(cudaMalloc(reinterpret_cast<void **>(x), p.elements() * 2));
  OK(cudaMalloc(reinterpret_cast<void **>(&b.sums), p.elements() / dim * 4));
  b.counter = counter;
  launch(p, b, nullptr);
  OK(cudaDeviceSynchronize());
  return 0;
}
