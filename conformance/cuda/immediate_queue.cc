#include "conformance/cuda/immediate_queue.h"

#include <cstring>
#include <new>

namespace shardproof {

void MultiplyOnHost(const Gemm& g) {
  const int64_t a_row = g.a_stride != 0 ? g.a_stride : (g.a_transposed ? g.m : g.k);
  const int64_t b_row = g.b_stride != 0 ? g.b_stride : (g.b_transposed ? g.k : g.n);
  const int64_t c_row = g.c_stride != 0 ? g.c_stride : g.n;
  for (int64_t p = 0; p < g.batch; ++p) {
    const float *a = g.a + p * g.a_step, *b = g.b + p * g.b_step;
    float* c = g.c + p * g.c_step;
    for (int64_t i = 0; i < g.m; ++i) {
      for (int64_t j = 0; j < g.n; ++j) {
        float sum = 0;
        for (int64_t l = 0; l < g.k; ++l) {
          const float x = g.a_transposed ? a[l * a_row + i] : a[i * a_row + l];
          const float y = g.b_transposed ? b[j * b_row + l] : b[l * b_row + j];
          sum = sum + x * y;
        }
        float& out = c[i * c_row + j];
        out = g.add ? out + sum : sum;
      }
    }
  }
}

// Poisoned, so that a kernel that reads what nobody wrote is seen.
std::byte* ImmediateQueue::Take(uint64_t bytes) {
  auto* memory = static_cast<std::byte*>(::operator new(bytes));
  std::memset(memory, 0xFF, bytes);
  return memory;
}
void ImmediateQueue::Return(std::byte* memory) { ::operator delete(memory); }
void ImmediateQueue::Fill(std::byte* to, int byte, uint64_t bytes) { std::memset(to, byte, bytes); }
void ImmediateQueue::Copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
}
void ImmediateQueue::Upload(std::byte* to, const void* from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
}
void ImmediateQueue::Download(void* to, const std::byte* from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
}

}  // namespace shardproof
