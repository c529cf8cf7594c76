// queue.h: how does device code reach one stream of a GPU, or of the machine that stands in for
// one?
//
// Kernels (conformance/model/cuda) are written once, as functions of a Queue and device pointers.
// nvcc compiles them for CUDA streams; the same sources compiled for the host run on queues without
// a GPU, so that what they compute is tested everywhere. All calls enqueue and return at once; work
// runs in the order in which it was put in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

namespace shardproof {

// Row-major C (m, n) = A B, or C += A B. A is (m, k) or, transposed, stored as (k, m); B is (k, n)
// or stored as (n, k). fp32 in memory; every product and partial sum is exact in fp32
// (model/NUMERICS.md), so that any algorithm gives the same bits.
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  const float *a = nullptr, *b = nullptr;
  float* c = nullptr;
  bool a_transposed = false, b_transposed = false;
  bool add = false;  // into what C holds
  // Elements from a row to the next as stored; 0: rows are dense.
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  // The same product `batch` times, elements from one to the next.
  int64_t batch = 1, a_step = 0, b_step = 0, c_step = 0;
};

class Queue {
 public:
  virtual ~Queue() = default;

  // cudaStream_t; null where a kernel is a loop on the host.
  virtual void* native() const = 0;
  // Runs body in the queue's order. Only where native() is null.
  virtual void Run(std::function<void()> body) = 0;
  // In which order a loop on the host takes the indices of a kernel; a GPU has none, so tests try
  // the other one too.
  virtual bool Descending() const { return false; }
  // After a kernel launch: throws with the kernel's name if CUDA refused it.
  virtual void CheckLaunch(const char* kernel) = 0;

  // Memory for temporaries of the work that is put in between Take and Return. Contents undefined.
  // bytes > 0.
  virtual std::byte* Take(uint64_t bytes) = 0;
  virtual void Return(std::byte* memory) = 0;

  virtual void Fill(std::byte* to, int byte, uint64_t bytes) = 0;
  virtual void Copy(std::byte* to, const std::byte* from, uint64_t bytes) = 0;
  // from may be changed as soon as the call has returned.
  virtual void Upload(std::byte* to, const void* from, uint64_t bytes) = 0;
  // to, on the host, is written when the queue gets there.
  virtual void Download(void* to, const std::byte* from, uint64_t bytes) = 0;
  virtual void Multiply(const Gemm& gemm) = 0;
};

// Typed memory for temporaries: taken here, returned at the end of the scope, both in the queue's
// order.
template <class T>
class Scratch {
 public:
  Scratch(Queue& queue, int64_t count)
      : queue_(queue),
        data_(count > 0 ? reinterpret_cast<T*>(queue.Take(static_cast<uint64_t>(count) * sizeof(T)))
                        : nullptr) {}
  ~Scratch() {
    if (data_ != nullptr) queue_.Return(reinterpret_cast<std::byte*>(data_));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* get() const { return data_; }

 private:
  Queue& queue_;
  T* data_;
};

}  // namespace shardproof
