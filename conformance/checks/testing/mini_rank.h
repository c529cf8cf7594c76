// mini_rank.h: what does one rank of the small engine of mini_trace.h hold, and how does it move
// it?
//
// Communicators, buckets of one parameter each, gathers and reductions of a bucket. When they
// happen is mini_trace.cc's.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "conformance/checks/testing/mini_trace.h"
#include "conformance/common/at.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {

class MiniRank {
 protected:
  MiniRank(const Case& c, const InstanceFacts& facts, int32_t rank, const MiniFaults& faults);

  struct Bucket {
    int64_t shard = 0;  // elements
    int param = -1, main = -1, grad = -1, full = -1, full_grad = -1, part = -1;
    int copy = -1;  // for backward, of units: with backward_param_copies
  };
  const ParamFacts& P(int32_t id) const { return facts_.Param(rank_, id); }
  int64_t Members(int32_t id) const {
    return static_cast<int64_t>(facts_.InnerList(P(id).expert, rank_)->size());
  }
  int64_t Index(int32_t id) const {
    const auto* list = facts_.InnerList(P(id).expert, rank_);
    return std::find(list->begin(), list->end(), rank_) - list->begin();
  }
  int64_t Begin(int32_t id) const {
    return std::min(P(id).numel, Index(id) * At(buckets_, id).shard);
  }
  int64_t Count(int32_t id) const {
    return std::min(P(id).numel, Begin(id) + At(buckets_, id).shard) - Begin(id);
  }
  // A block of a unit's parameter or gradient: with fsdp_double_buffer one of those that the
  // parameters in the same place of units that are alike take in turn.
  int Take(int32_t id, bool grad);
  void Give(int32_t id, bool grad, int block);
  int GroupOf(int32_t id, bool gather);
  int Named(const std::string& name);
  void CreateBuckets();
  void FreeBuckets();
  void DestroyGroups();

  void PublishParams(bool trained);
  void Publish(int result, int32_t id, int alloc, float (*value)(int32_t, int32_t, int64_t));
  void Mark(int hook, int32_t module, int32_t microbatch) {
    if (f_.marks) t_.Mark(hook, module, microbatch);
  }

  template <class F>
  void ForUnit(int32_t unit, F&& body) {
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      if (P(id).unit == unit) body(id);
    }
  }
  void Gather(int32_t id);
  void ReleaseParam(int32_t id);
  // As reshard_after_forward says.
  void ReleaseAfterForward(int32_t unit);
  void GatherUnit(int32_t unit) {
    ForUnit(unit, [&](int32_t id) { Gather(id); });
  }
  void ReleaseUnit(int32_t unit) {
    ForUnit(unit, [&](int32_t id) { ReleaseParam(id); });
  }
  void AllocGrads(int32_t unit);
  void Reduce(int32_t id);
  void Outer();
  void ReduceFlag();
  // What a node of the tables says to do over tp: in place, or from a part of the sequence to all
  // of it, or back.
  void MeetOverTp(const spf_node& node, int phase);
  // The same in messages of the group.
  void MeetByMessages(const std::string& name, int64_t from, int64_t to, bool gathers);
  void PassOn(int64_t at);   // these 64 bytes of values
  void SumParts();           // of gradients, reduced
  void SumPart(int32_t id);  // of one gradient, before it is reduced

  const Case& c_;
  const InstanceFacts& facts_;
  const InstanceSpec& spec_;
  const int32_t rank_;
  MiniFaults f_;
  TraceBuilder t_;
  std::map<std::string, int> groups_;
  std::vector<int> extra_groups_;
  int s_ = -1, acts_ = -1, world_ = -1;
  int flag_ = -1;  // block, of MiniFlag::kInPlace
  int32_t call_ = -1, version_ = 0;
  std::vector<Bucket> buckets_;
  bool second_ = false;  // gathers bring the copy for backward

 private:
  void AllReduce(int32_t id);
  struct Pool {
    std::vector<int> blocks, idle;  // in order of age
  };
  Pool* PoolOf(int32_t id, bool grad);
  // Elements of a full buffer that are this rank's part.
  int64_t PartOf(int32_t id) const {
    return Members(id) * At(buckets_, id).shard / spec_.reshard_after_forward;
  }
  int Created(int& group, const std::string& name, const std::vector<int32_t>& list);
  std::map<std::pair<int32_t, bool>, Pool> pools_;  // by place in the unit; of gradients
};

}  // namespace shardproof
