// collectives.h: how is one operation put together? A group of one rank needs none (FS-43).
#pragma once
#include "reference/core/host.h"
#include "reference/groups/collection.h"

namespace reference {

// The operations of one communicator that are issued as one group. In place wherever the form
// allows it. Calls can be chained.
class CollectiveBatch {
 public:
  CollectiveBatch(Host& host, const Communicator& on, spf_stream stream)
      : host_(host), on_(on), stream_(stream) {}

  // Everybody's count elements -> all of them at recv, in rank order. send may be this rank's place
  // in recv.
  CollectiveBatch& AllGather(int32_t dtype, spf_addr send, spf_addr recv, int64_t count,
                             spf_label label) {
    if (on_.size() == 1 && send != recv)
      host_.Copy(stream_, recv, send, Count(count) * spf::SizeOf(dtype));
    return Add(SPF_ALL_GATHER, dtype, SPF_SUM, send, recv, count, label);
  }
  // In place: this rank's count elements of buffer (group * count elements) become the sum or
  // average over the ranks.
  CollectiveBatch& ReduceScatter(int32_t dtype, spf_reduction reduction, spf_addr buffer,
                                 int64_t count, spf_label label) {
    const uint64_t place = Count(on_.rank * count) * spf::SizeOf(dtype);
    return Add(SPF_REDUCE_SCATTER, dtype, reduction, buffer, buffer + place, count, label);
  }
  // In place.
  CollectiveBatch& AllReduce(int32_t dtype, spf_reduction reduction, spf_addr buffer, int64_t count,
                             spf_label label) {
    return Add(SPF_ALL_REDUCE, dtype, reduction, buffer, buffer, count, label);
  }
  void Issue() { host_.Communicate(ops_); }

 private:
  CollectiveBatch& Add(spf_collective_kind kind, int32_t dtype, spf_reduction reduction,
                       spf_addr send, spf_addr recv, int64_t count, spf_label label) {
    if (on_.size() == 1) return *this;
    ops_.push_back(
        spf::Host::Collective(kind, on_.handle, stream_, dtype, send, recv, Count(count), label));
    ops_.back().reduction = reduction;
    return *this;
  }

  Host& host_;
  const Communicator& on_;
  spf_stream stream_;
  std::vector<spf_collective> ops_;
};

}  // namespace reference
