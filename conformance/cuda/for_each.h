// for_each.h: what shape has a kernel? One for all: a function of an index, for n indices, in any
// order.
//
// Write ForEach(queue, "name", n, [=] SHARDPROOF_KERNEL(int64_t i) { ... }); capture pointers and
// numbers by value. Indices run at the same time: a body writes only what is its own, or uses
// AtomicAdd. Floating-point operations in it are single IEEE operations, round to nearest: nvcc
// gets -fmad=false -prec-div=true -prec-sqrt=true -ftz=false, g++ -ffp-contract=off.
#pragma once
#include <algorithm>
#include <cstdint>

#include "conformance/cuda/queue.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define SHARDPROOF_KERNEL __host__ __device__
#else
#define SHARDPROOF_KERNEL
#endif

namespace shardproof {

#ifdef __CUDACC__

template <class Body>
__global__ void ForEachIndex(int64_t n, Body body) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) body(i);
}

template <class Body>
void ForEach(Queue& queue, const char* name, int64_t n, Body body) {
  if (n <= 0) return;
  constexpr int64_t kThreads = 128, kMostBlocks = 1 << 20;
  const int64_t blocks = std::min((n + kThreads - 1) / kThreads, kMostBlocks);
  ForEachIndex<<<static_cast<unsigned>(blocks), kThreads, 0,
                 static_cast<cudaStream_t>(queue.native())>>>(n, body);
  queue.CheckLaunch(name);
}

#else

template <class Body>
void ForEach(Queue& queue, const char*, int64_t n, Body body) {
  if (n <= 0) return;
  queue.Run([n, body, descending = queue.Descending()] {
    for (int64_t i = 0; i < n; ++i) body(descending ? n - 1 - i : i);
  });
}

#endif

// Integers only: their sum does not depend on the order.
SHARDPROOF_KERNEL inline void AtomicAdd(uint64_t* into, uint64_t value) {
#ifdef __CUDA_ARCH__
  static_assert(sizeof(unsigned long long) == sizeof(uint64_t));
  atomicAdd(reinterpret_cast<unsigned long long*>(into), static_cast<unsigned long long>(value));
#else
  *into += value;
#endif
}

}  // namespace shardproof
