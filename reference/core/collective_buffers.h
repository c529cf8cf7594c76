// collective_buffers.h: where does the memory of gathers and reductions come from, and who has
// registered it?
//
// With nccl_ub a block is registered, once, with every group whose collectives use it
// (reference/README.md, "User buffers"; Megatron-FSDP's nccl_ub):
//
//   taken     a block that was given back, of as many bytes and for the same purpose, groups and
//             stream; a new one if there is none: registered, the outer group last
//   given     its contents are dead (SPF_K_DISCARD), it stays registered
//   Destroy   deregistered and freed, in the order in which they were registered
//
// With fsdp_double_buffer the blocks of units that are alike are kept too, registered or not: two
// for each bucket of such a unit, taken by all of them in turn (Megatron-FSDP's
// FixedPoolAllocator). What compute reads of a block precedes the mark, and the mark what is
// enqueued for the next taker: both are on the block's stream.
//
// Otherwise a block is allocated when it is taken and freed when it is given back.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/abi/spf.hpp"
#include "reference/core/config.h"
#include "reference/groups/collection.h"

namespace reference {

class CollectiveBuffers {
 public:
  // Whose collectives use a block, the outer group last. Groups that are absent or have one rank
  // send nothing, and a block that nobody uses is never registered.
  using Users = std::vector<const Communicator*>;

  CollectiveBuffers(spf::Host& host, const Config& config) : host_(host), config_(config) {}

  // The contents are poison. A block that is kept has no module in its label: it serves several.
  // double_buffer: Bucket::double_buffer. REQUIRES: of its blocks at most one is taken.
  spf_addr Take(spf_stream stream, uint64_t bytes, const Users& users, spf_label label,
                std::optional<int32_t> double_buffer = {});
  // After what the stream has been given so far. Sets the address to 0; 0 is nothing.
  // REQUIRES: the stream on which it was taken.
  void Give(spf_stream stream, spf_addr& address);
  // REQUIRES: everything was given back.
  void Destroy();
  // After a failed call: deregisters, so that the host can give the blocks back. What waits for the
  // work of a run that was ended answers SPF_ABORTED, and has done it.
  void GiveBack();

 private:
  struct Block {
    spf_addr address = 0;
    spf_stream stream = nullptr;
    uint64_t bytes = 0;
    int32_t purpose = 0;
    std::optional<int32_t> double_buffer{};
    std::vector<spf_group> groups{};
    bool taken = true;
  };

  spf::Host& host_;
  const Config& config_;
  std::vector<Block> blocks_;  // all that are kept, in the order in which they were made
};

}  // namespace reference
