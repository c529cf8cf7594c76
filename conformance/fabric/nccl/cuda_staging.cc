#include "conformance/fabric/nccl/cuda_staging.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "conformance/fabric/nccl/cuda_status.h"
#include "conformance/fabric/nccl/patience.h"

namespace shardproof {

namespace {

constexpr uint64_t kAlignment = 64;

uint64_t RoundUp(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

// A quarter of it, the longest piece, is a multiple of the alignment.
CudaStaging::CudaStaging(uint64_t bytes) : bytes_(4 * RoundUp(bytes / 4)), free_up_to_(bytes_) {
  void* ring = nullptr;
  CheckCuda(cudaHostAlloc(&ring, bytes_, cudaHostAllocDefault), "cudaHostAlloc");
  ring_ = static_cast<std::byte*>(ring);
}

CudaStaging::~CudaStaging() {
  for (Transfer& transfer : under_way_) spare_.push_back(transfer.done);
  for (cudaEvent_t event : spare_) cudaEventDestroy(event);
  cudaFreeHost(ring_);
}

void CudaStaging::Upload(cudaStream_t stream, std::byte* to, const void* from, uint64_t bytes) {
  const auto* source = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const uint64_t piece = std::min(bytes, bytes_ / 4);
    std::byte* staged = Reserve(piece);
    std::memcpy(staged, source, piece);
    CheckCuda(cudaMemcpyAsync(to, staged, piece, cudaMemcpyHostToDevice, stream),
              "cudaMemcpyAsync to the device");
    Finish(stream, {});
    to += piece, source += piece, bytes -= piece;
  }
}

void CudaStaging::Download(cudaStream_t stream, void* to, const std::byte* from, uint64_t bytes) {
  auto* target = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const uint64_t piece = std::min(bytes, bytes_ / 4);
    std::byte* staged = Reserve(piece);
    CheckCuda(cudaMemcpyAsync(staged, from, piece, cudaMemcpyDeviceToHost, stream),
              "cudaMemcpyAsync to the host");
    Finish(stream, {.to = target, .from = staged, .bytes = piece});
    target += piece, from += piece, bytes -= piece;
  }
}

// Newest first: what a stream brings later is not there before what it brings earlier. The other
// way round a transfer could become ready behind its look and before that of the next one, which
// would be delivered alone.
void CudaStaging::Deliver() {
  for (auto transfer = under_way_.rbegin(); transfer != under_way_.rend(); ++transfer) {
    if (transfer->to != nullptr) TryDeliver(*transfer);
  }
  while (!under_way_.empty() && Retire()) {
  }
}

std::byte* CudaStaging::Reserve(uint64_t bytes) {
  // A piece does not go round the end: what is left there is skipped.
  const uint64_t to_end = bytes_ - handed_out_ % bytes_;
  const uint64_t begin = bytes <= to_end ? handed_out_ : handed_out_ + to_end;
  const auto room = [&] {
    while (!under_way_.empty() && Retire()) {
    }
    return free_up_to_ >= begin + bytes;
  };
  if (!room()) {
    const std::string what = "room for " + std::to_string(bytes) + " bytes in a staging ring of " +
                             std::to_string(bytes_);
    if (!WaitUntil(room, begin_wait_ ? begin_wait_(what) : GiveUp()))
      throw GpuError("wait for " + what, "given up");
  }
  handed_out_ = begin + RoundUp(bytes);
  return ring_ + begin % bytes_;
}

void CudaStaging::Finish(cudaStream_t stream, Transfer transfer) {
  if (spare_.empty()) {
    cudaEvent_t event = nullptr;
    CheckCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    spare_.push_back(event);
  }
  transfer.end = handed_out_;
  transfer.done = spare_.back();
  spare_.pop_back();
  under_way_.push_back(transfer);
  CheckCuda(cudaEventRecord(transfer.done, stream), "cudaEventRecord");
}

bool CudaStaging::TryDeliver(Transfer& transfer) {
  if (!IsDone(cudaEventQuery(transfer.done), "cudaEventQuery")) return false;
  if (transfer.to != nullptr) std::memcpy(transfer.to, transfer.from, transfer.bytes);
  transfer.to = nullptr;
  return true;
}

bool CudaStaging::Retire() {
  Transfer& oldest = under_way_.front();
  if (!TryDeliver(oldest)) return false;
  free_up_to_ = oldest.end + bytes_;
  spare_.push_back(oldest.done);
  under_way_.pop_front();
  return true;
}

}  // namespace shardproof
