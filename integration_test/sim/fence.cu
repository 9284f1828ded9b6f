// Threads fill shared memory and a bulk copy takes it to global memory. Without -DFENCE the copy, which
// reads through the async proxy, may see the memory as it was before.
#include <cstdio>

__global__ void square(int *out) {
  __shared__ alignas(16) int tile[128];
  tile[threadIdx.x] = threadIdx.x * threadIdx.x;
#ifdef FENCE
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
  __syncthreads();
  if (threadIdx.x == 0)
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;\n"
                 "cp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group 0;" ::"l"(out), "r"((unsigned)__cvta_generic_to_shared(tile)) : "memory");
}

int main() {
  int *device, host[128], right = 0;
  cudaMalloc(&device, sizeof(host));
  square<<<1, 128>>>(device);
  cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 128; ++i)
    right += host[i] == i * i;
  printf("%d of 128 are right\n", right);
}
