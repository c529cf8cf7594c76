// microbatch.h: what is the state of one microbatch between its operations?
//
// All of it belongs to the microbatch and none to the layers' modules: another microbatch may run
// through the same layers meanwhile (values, numbers of rows, the event).
#pragma once
#include <map>
#include <memory>

#include "reference/core/activations.h"
#include "reference/plan/interleaved_order.h"

namespace reference {

struct Microbatch {
  Activations values;
  spf_event chain = nullptr;  // 1F1B: behind its last schedule node, on whatever stream
};

// Those that are open, by microbatch and chunk.
class Microbatches {
 public:
  Microbatch& Open(ChunkPass of, Activations values) {
    auto& slot = open_[{of.microbatch, of.chunk}];
    slot = std::make_unique<Microbatch>(Microbatch{std::move(values)});
    return *slot;
  }
  Microbatch& At(ChunkPass of) { return *open_.at({of.microbatch, of.chunk}); }
  void Close(ChunkPass of) { open_.erase({of.microbatch, of.chunk}); }

 private:
  std::map<std::pair<int32_t, int32_t>, std::unique_ptr<Microbatch>> open_;
};

}  // namespace reference
