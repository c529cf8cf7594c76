// fake_cuda_for_test.h: how does CudaGpu run without a GPU? On enough of CUDA, cuBLAS and NCCL on
// the host.
//
// Linked instead of the toolkit's libraries. Streams are late: work runs only when somebody asks
// for an event, ten entries at a time, from streams in turn. Wrong arguments are refused as the
// documents say.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace shardproof::fake {

// Puts work into a stream.
void Push(cudaStream_t stream, std::function<void()> work);
// The streams wait for each other here, as for one operation on all of them; it does `work`.
void PushJoined(const std::vector<cudaStream_t>& streams, std::function<void()> work);

}  // namespace shardproof::fake
