// collectives.h: how is one operation put together? A group of one rank needs none (FS-43).
#pragma once
#include "conformance/abi/spf.hpp"
#include "reference/groups/collection.h"

namespace reference {

// The operations of one communicator that are issued as one group. In place wherever the form
// allows it.
class CollectiveBatch {
 public:
  CollectiveBatch(spf::Host& host, const Communicator& on, spf_stream stream)
      : host_(host), on_(on), stream_(stream) {}

  // Everybody's count elements -> all of them at recv, in rank order. send may be this rank's place
  // in recv.
  void AllGather(int32_t dtype, spf_addr send, spf_addr recv, int64_t count, spf_label label) {
    if (on_.size() == 1) {
      if (send != recv)
        host_.Copy(stream_, recv, send, static_cast<uint64_t>(count) * spf::SizeOf(dtype));
      return;
    }
    Add(SPF_ALL_GATHER, dtype, SPF_SUM, send, recv, count, label);
  }
  // In place: this rank's count elements of buffer (group * count elements) become the sum or
  // average over the ranks.
  void ReduceScatter(int32_t dtype, spf_reduction reduction, spf_addr buffer, int64_t count,
                     spf_label label) {
    if (on_.size() == 1) return;
    const uint64_t place = static_cast<uint64_t>(on_.rank * count) * spf::SizeOf(dtype);
    Add(SPF_REDUCE_SCATTER, dtype, reduction, buffer, buffer + place, count, label);
  }
  // In place.
  void AllReduce(int32_t dtype, spf_reduction reduction, spf_addr buffer, int64_t count,
                 spf_label label) {
    if (on_.size() == 1) return;
    Add(SPF_ALL_REDUCE, dtype, reduction, buffer, buffer, count, label);
  }
  void Issue() { host_.Communicate(ops_); }

 private:
  void Add(spf_collective_kind kind, int32_t dtype, spf_reduction reduction, spf_addr send,
           spf_addr recv, int64_t count, spf_label label) {
    ops_.push_back(spf::Host::Collective(kind, on_.handle, stream_, dtype, send, recv,
                                         static_cast<uint64_t>(count), label));
    ops_.back().reduction = reduction;
  }

  spf::Host& host_;
  const Communicator& on_;
  spf_stream stream_;
  std::vector<spf_collective> ops_;
};

}  // namespace reference
