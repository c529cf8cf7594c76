// mini_deal.h: which events do parameters, buckets and gathers of one rank leave, for the engine of
// mini_layer_wise.h?
#pragma once
#include <map>
#include <string>
#include <vector>

#include "conformance/checks/testing/mini_layer_wise.h"

namespace shardproof {

class MiniDeal {
 protected:
  MiniDeal(const Case& c, const InstanceFacts& facts, int32_t rank, const LayerWiseFaults& faults);

  struct Place {
    int block = -1;
    int64_t offset = 0;  // bytes
  };
  struct Param {
    int32_t owner = 0;  // member of its group
    Place home, grad;
    int main = -1, m = -1, v = -1;
  };
  struct Item {
    int32_t id = -1;
    int64_t at = 0;  // elements, in the bucket
  };
  struct Bucket {
    bool expert = false;
    std::vector<Item> items;
    std::vector<int64_t> counts;  // elements by member: what it owns; aligned: equal shards
    int64_t size = 0;             // elements of the gradients' storage
    int grads = -1, weights = -1, buffer = -1;
    int done = -1;            // event: its gather is complete
    std::vector<int> pieces;  // blocks by member, instead of the buffer
  };

  const ParamFacts& P(int32_t id) const { return facts_.Param(rank_, id); }
  const std::vector<int32_t>& List(bool expert) const { return *facts_.FullList(expert, rank_); }
  int32_t Me(bool expert) const;
  bool Owns(int32_t id) const {
    return !P(id).frozen && params_[size_t(id)].owner == Me(P(id).expert);
  }
  bool Has(int32_t id) const { return Owns(id) || f_.step_all || f_.owner_moves; }  // main weights
  bool Aligned() const { return spec_.layer_wise.layout == LayerWiseLayout::kAligned; }
  Choice<LayerWiseTransport> Transport() const {
    return f_.transport.value_or(spec_.layer_wise.transport);
  }
  bool IntoGrads() const {
    return f_.buffer.value_or(spec_.layer_wise.buffer) == LayerWiseBuffer::kGrads;
  }
  bool OneByOne() const {
    return f_.root_in_place || f_.root_sends_alone || f_.root_sends_main || f_.into_weights;
  }
  bool Alone(const Bucket& b) const { return b.counts.size() < 2; }

  int Named(const std::string& name);
  int Recorded(int stream);  // an event
  void Order(int from, int to) { t_.Wait(Recorded(from), to); }
  Range Home(int32_t id, int access) const { return At(params_[size_t(id)].home, id, access); }
  Range Grad(int32_t id, int access) const { return At(params_[size_t(id)].grad, id, access); }
  Range At(Place place, int32_t id, int access) const {
    return {place.block, static_cast<uint8_t>(access), place.offset, P(id).numel * 4};
  }

  void MakeBuckets();
  void AllocAll();
  void FreeAll();
  // Enqueues the gather of a bucket; what waits for it; copies it to the model weights.
  void Launch(Bucket& b);
  void Wait(Bucket& b);
  void Install(Bucket& b);
  void Reduce(Bucket& b);
  void ZeroGrads(const Bucket& b) {
    t_.Launch(s_, f_.clear_unnamed ? SPF_K_CUSTOM : SPF_K_FILL, {Writes(b.grads, 0, b.size * 4)});
  }

  const Case& c_;
  const InstanceFacts& facts_;
  const InstanceSpec& spec_;
  const int32_t rank_;
  LayerWiseFaults f_;
  TraceBuilder t_;
  std::map<std::string, int> groups_;
  int s_ = -1, g_ = -1, r_ = -1, acts_ = -1;
  std::vector<int> events_;
  int32_t train_steps_ = 0;      // begun
  std::vector<Param> params_;    // by id
  std::vector<Bucket> buckets_;  // from the last parameter to the first

 private:
  void DealOwners();
  void Close(Bucket& b);
  void Lay(Bucket& b);
  void LayAligned(Bucket& b);
  int GroupOf(const Bucket& b) { return Named(b.expert ? "expt_dp" : "dp_cp"); }
  void AllocBuffer(Bucket& b);
  void FreeBuffer(Bucket& b);
  Place Arrival(const Bucket& b, size_t member) const;  // where its piece is received
  void Send(const Bucket& b);
  void SendOneByOne(const Bucket& b, CollectiveOptions options);
};

}  // namespace shardproof
