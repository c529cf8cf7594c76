// late_queue.h: what if the GPU is far behind? For tests: a queue that does nothing until it is
// told to.
#pragma once
#include <deque>
#include <functional>
#include <vector>

#include "conformance/cuda/queue.h"

namespace shardproof {

class LateQueue : public Queue {
 public:
  void* native() const override { return nullptr; }
  // The order that no other queue has.
  bool Descending() const override { return true; }
  void Run(std::function<void()> body) override { work_.push_back(std::move(body)); }
  void CheckLaunch(const char*) override {}
  std::byte* Take(uint64_t bytes) override;
  void Return(std::byte* memory) override;
  void Fill(std::byte* to, int byte, uint64_t bytes) override;
  void Copy(std::byte* to, const std::byte* from, uint64_t bytes) override;
  void Upload(std::byte* to, const void* from, uint64_t bytes) override;
  void Download(void* to, const std::byte* from, uint64_t bytes) override;
  void Multiply(const Gemm& gemm) override;

  // Does all the work. Throws std::logic_error if temporary memory was written past its end or
  // after its return, or was never returned; who reads it after its return finds poison.
  void Flush();

 private:
  struct Block {
    std::vector<std::byte> bytes;  // poisoned before use and after it, with a guard behind
    uint64_t size = 0;
    bool returned = false;
  };
  std::deque<Block> blocks_;
  std::vector<std::function<void()>> work_;
};

}  // namespace shardproof
