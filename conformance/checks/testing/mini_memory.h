// mini_memory.h: which events do parameters, gradients, values and exchanges leave, for the engine
// of mini_schedule.h?
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/checks/base/nodes.h"
#include "conformance/checks/testing/mini_schedule.h"

namespace shardproof {

class MiniMemory {
 public:
  MiniMemory(const Case& c, const InstanceFacts& facts, int32_t rank, const ScheduleFaults& faults);

  void Create();
  void Destroy();
  void BeginStep(int64_t step, bool train);
  void EndStep();
  void FinishMicrobatch(int32_t m);
  void Optimizer();
  void Root(int hook, int32_t m);

  const spf_model& tables() const { return facts_.model().Tables(facts_.Place(rank_)); }
  const spf_program& Program(int32_t m) const;

  // The microbatch's event.
  void WaitChain(int32_t m, int stream);
  void RecordChain(int32_t m, int stream);
  // Gathers what these nodes read.
  void Prepare(const std::vector<const spf_node*>& nodes, schedule::Side side);
  void Gather(int32_t unit, bool expert);
  void Release(int32_t unit, bool only_experts = false);
  void MarkReleasable(int32_t unit) { marked_.insert(unit); }
  void Compute(const spf_node& node, int phase, int32_t m, int stream);
  void Exchange(const spf_node& node, bool backward, int32_t m, int stream);
  void Reduce(int32_t unit, bool expert, int32_t m);

  TraceBuilder t;
  int compute = -1, a2a = -1, gather = -1, reduce = -1;

 private:
  struct Bucket {
    int64_t shard = 0;  // elements
    int param = -1, main = -1, grad = -1, full = -1, full_grad = -1;
    bool waiting = false;  // gradients of an earlier microbatch are not reduced yet
  };
  struct Value {
    int alloc = -1;
    int users = 0;  // pieces of work that are still to use it
  };
  const ParamFacts& P(int32_t id) const { return facts_.Param(rank_, id); }
  const std::vector<int32_t>& List(int32_t id) const {
    return *facts_.InnerList(P(id).expert, rank_);
  }
  int64_t Begin(int32_t id) const;
  int64_t Count(int32_t id) const;
  bool Zero3() const { return ShardsParams(spec_); }
  bool EachMicrobatch() const { return ShardsGrads(spec_); }
  void GatherParam(int32_t id);
  void GatherChunks(int32_t id, int group);
  void ReleaseParam(int32_t id);
  void ReduceParam(int32_t id);
  int GradientOf(int32_t id);
  bool WithoutRows() const;
  void Publish();
  // Rows of a value of a microbatch, and what goes to a member of "ep".
  int64_t RowsTo(int64_t sample, int32_t layer, int32_t member) const;
  std::vector<int64_t> Splits(const spf_node& node, bool send, int32_t m) const;
  int64_t Rows(int32_t value, int32_t m) const;
  Range RangeOf(int table, int32_t value, int32_t m, int access, int stream);
  void Used(int table, int32_t value, int32_t m, int stream);
  void CountUsers(int32_t m);
  void Order(int from, int to);
  // A collective that comes next on the stream waits for the one before it, and has been issued.
  void Turn(int stream);
  void Taken(int stream);
  CollectiveOptions OptionsOf(const spf_node& node, bool backward, int32_t m) const;
  // An all-to-all between values, or between buffers of the engine's own.
  void Move(std::vector<Range> ranges, int stream, const CollectiveOptions& options);

  const Case& c_;
  const InstanceFacts& facts_;
  const InstanceSpec& spec_;
  const int32_t rank_;
  const ScheduleFaults& f_;
  std::map<std::string, int> groups_;
  std::vector<Bucket> buckets_;
  std::vector<int> chain_;  // events, by microbatch
  std::set<int32_t> marked_;
  std::map<std::tuple<int, int32_t, int32_t>, Value> values_;  // (table, value, microbatch)
  std::map<int32_t, int32_t> layer_of_counts_;                 // COUNTS value -> layer
  std::vector<std::pair<int32_t, int32_t>> reductions_late_;
  int turn_ = -1;    // event behind the last collective, where they take turns
  int packed_ = -1;  // buffer that was sent last
  int64_t step_ = 0;
  bool train_ = true;
  int32_t steps_ = 0;
};

}  // namespace shardproof
