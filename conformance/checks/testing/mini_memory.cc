#include "conformance/checks/testing/mini_memory.h"

#include <algorithm>
#include <numeric>

#include "conformance/checks/base/flow.h"
#include "conformance/common/at.h"

namespace shardproof {

using schedule::Nodes;
using schedule::ScheduleNode;
using schedule::Side;

MiniMemory::MiniMemory(const Case& c, const InstanceFacts& facts, int32_t rank,
                       const ScheduleFaults& faults)
    : t(rank, c.world), c_(c), facts_(facts), spec_(facts.spec()), rank_(rank), f_(faults) {}

const spf_program& MiniMemory::Program(int32_t m) const {
  return facts_.model().Program(step_, int64_t{m} * DpCpSize(spec_) + facts_.DataRank(rank_),
                                facts_.Place(rank_));
}

int64_t MiniMemory::Begin(int32_t id) const {
  const auto& list = List(id);
  const auto me = std::find(list.begin(), list.end(), rank_) - list.begin();
  return std::min(P(id).numel, me * At(buckets_, id).shard);
}
int64_t MiniMemory::Count(int32_t id) const {
  return std::min(P(id).numel, Begin(id) + At(buckets_, id).shard) - Begin(id);
}

void MiniMemory::Create() {
  t.CallBegin("create");
  for (const GroupFamily& family : facts_.families()) {
    const auto* list = facts_.List(family.name, rank_);
    if (list != nullptr)
      groups_[family.name] = t.Group(family.name, *list, family.name + ListText(*list));
  }
  compute = t.Stream("compute");
  a2a = t.Stream("a2a");
  gather = t.Stream("gather");
  reduce = t.Stream("reduce");
  buckets_.resize(size_t(facts_.n_params(rank_)));
  for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
    Bucket& b = At(buckets_, id);
    const auto n = static_cast<int64_t>(List(id).size());
    b.shard = (P(id).numel + n - 1) / n;
    b.param = t.Alloc(compute, b.shard * 4);
    b.main = t.Alloc(compute, b.shard * 4);
    b.grad = t.Alloc(compute, b.shard * 4);
    if (Count(id) == 0) continue;
    t.Init(compute, id, Begin(id), Count(id), Writes(b.main, 0, Count(id) * 4));
    t.Copy(compute, Reads(b.main, 0, Count(id) * 4), Writes(b.param, 0, Count(id) * 4));
  }
  Publish();
  for (int32_t m = 0; m < spec_.microbatches; ++m) chain_.push_back(t.EventCreate());
  t.CallEnd("create");
}

void MiniMemory::Publish() {
  for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
    if (Count(id) == 0) continue;
    t.Publish(compute, SPF_RESULT_PARAM, id, Begin(id), Count(id), SPF_F32, 1,
              Reads(At(buckets_, id).main, 0, Count(id) * 4));
  }
}

void MiniMemory::Order(int from, int to) {
  const int event = t.EventCreate();
  t.Record(event, from);
  t.Wait(event, to);
}
void MiniMemory::Turn(int stream) {
  if (f_.in_turn && turn_ >= 0) t.Wait(turn_, stream);
}
void MiniMemory::Taken(int stream) {
  if (!f_.in_turn) return;
  if (turn_ < 0) turn_ = t.EventCreate();
  t.Record(turn_, stream);
}
void MiniMemory::WaitChain(int32_t m, int stream) { t.Wait(At(chain_, m), stream); }
void MiniMemory::RecordChain(int32_t m, int stream) { t.Record(At(chain_, m), stream); }
void MiniMemory::Root(int hook, int32_t m) {
  t.Mark(hook, 0, m);
  if (f_.root_twice && hook == SPF_HOOK_ROOT_POST_BACKWARD) t.Mark(hook, 0, m);
}

void MiniMemory::BeginStep(int64_t step, bool train) {
  step_ = step;
  train_ = train;
  t.CallBegin(train ? "train_step" : "eval_step", static_cast<int>(step));
  values_.clear();
  for (int32_t m = 0; m < spec_.microbatches; ++m) {
    CountUsers(m);
    RecordChain(m, compute);
  }
  for (Bucket& b : buckets_) t.Launch(compute, SPF_K_FILL, {Writes(b.grad, 0, b.shard * 4)});
  Order(compute, reduce);
}

void MiniMemory::Gather(int32_t unit, bool expert) {
  for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
    if (P(id).unit == unit && P(id).expert == expert) GatherParam(id);
  }
}

void MiniMemory::GatherParam(int32_t id) {
  Bucket& b = At(buckets_, id);
  if (b.waiting) return;  // waiting: it is there
  const std::set<int32_t> marked = std::move(marked_);
  marked_.clear();
  for (const int32_t unit : marked) Release(unit);
  const auto n = static_cast<int64_t>(List(id).size());
  Order(compute, gather);
  b.full = t.Alloc(gather, n * b.shard * 4);
  b.waiting = true;
  const int group = groups_.at(P(id).expert ? "expt_dp" : "dp_cp");
  if (f_.chunks) {
    GatherChunks(id, group);
  } else {
    Turn(gather);
    t.Collective(SPF_ALL_GATHER, group, gather, b.shard,
                 {Reads(b.param, 0, b.shard * 4), Writes(b.full, 0, n * b.shard * 4)});
    Taken(gather);
  }
  Order(gather, compute);
}
void MiniMemory::GatherChunks(int32_t id, int group) {
  const Bucket& b = At(buckets_, id);
  const auto& list = List(id);
  for (size_t r = 0; r < list.size(); ++r) {
    const Range part = Writes(b.full, static_cast<int64_t>(r) * b.shard * 4, b.shard * 4);
    std::vector<Range> ranges = {part};
    if (list[r] == rank_) {
      t.Copy(gather, Reads(b.param, 0, b.shard * 4), part);
      ranges = {Reads(part.alloc, part.offset, part.length), part};
    }
    CollectiveOptions options;
    options.peer = static_cast<int>(r);
    t.Collective(SPF_BROADCAST, group, gather, b.shard, ranges, options);
  }
}

void MiniMemory::ReleaseParam(int32_t id) {
  Bucket& b = At(buckets_, id);
  if (!b.waiting) return;
  t.Free(f_.release_on_gather_stream ? gather : compute, b.full);
  b.waiting = false;
}
void MiniMemory::Release(int32_t unit, bool only_experts) {
  marked_.erase(unit);
  for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
    if (P(id).unit == unit && (!only_experts || P(id).expert)) ReleaseParam(id);
  }
}

void MiniMemory::Prepare(const std::vector<const spf_node*>& nodes, Side side) {
  const int phase = side == Side::kForward    ? SPF_FWD
                    : side == Side::kBackward ? SPF_BWD
                                              : SPF_WGRAD;
  for (const spf_node* node : nodes) {
    const int32_t unit = facts_.UnitOfModule(node->module, rank_);
    if (f_.whole_units && unit >= 0) {
      marked_.erase(unit);
      Gather(unit, false);
      Gather(unit, true);
    }
    for (int32_t u = 0; u < node->uses[phase].n; ++u) {
      const spf_use& use = node->uses[phase].use[u];
      if (use.table != SPF_IN_PARAM) continue;
      marked_.erase(P(use.id).unit);
      if (P(use.id).unit < 0) {
        GatherParam(use.id);
      } else {
        Gather(P(use.id).unit, P(use.id).expert);
      }
    }
  }
}

int MiniMemory::GradientOf(int32_t id) {
  Bucket& b = At(buckets_, id);
  if (b.full_grad >= 0) return b.full_grad;
  const int64_t bytes = static_cast<int64_t>(List(id).size()) * b.shard * 4;
  b.full_grad = t.Alloc(compute, bytes);
  t.Launch(f_.clear_unordered ? reduce : compute, SPF_K_FILL, {Writes(b.full_grad, 0, bytes)});
  return b.full_grad;
}

// Routing sends no rows to the experts of this rank.
bool MiniMemory::WithoutRows() const {
  return spec_.model.moe.skew == "rank" && List(0).size() > 1 &&
         facts_.List("ep", rank_)->back() == rank_;
}

void MiniMemory::Reduce(int32_t unit, bool expert, int32_t m) {
  const bool last = m == spec_.microbatches - 1;
  if (f_.skip_reduce || (!EachMicrobatch() && !last)) return;
  if (f_.reduce_late && unit >= 0 && !expert && !last) return;  // with the next one's
  if (expert && f_.skip_empty && WithoutRows()) return;
  for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
    if (f_.reduce_before_weights && P(id).unit == unit && P(id).expert == expert) GradientOf(id);
    const bool mine = P(id).unit == unit && (unit < 0 || P(id).expert == expert);
    if (mine && At(buckets_, id).full_grad >= 0) ReduceParam(id);
  }
}

void MiniMemory::ReduceParam(int32_t id) {
  Bucket& b = At(buckets_, id);
  const int64_t bytes = static_cast<int64_t>(List(id).size()) * b.shard * 4;
  if (!f_.reduce_unordered) Order(compute, reduce);
  const int out = t.Alloc(reduce, b.shard * 4);
  for (int i = 0; i < (f_.reduce_twice ? 2 : 1); ++i) {
    Turn(reduce);
    t.Collective(SPF_REDUCE_SCATTER, groups_.at(P(id).expert ? "expt_dp" : "dp_cp"), reduce,
                 b.shard, {Reads(b.full_grad, 0, bytes), Writes(out, 0, b.shard * 4)});
    Taken(reduce);
    t.Launch(reduce, SPF_K_AXPBY, {Reads(out, 0, b.shard * 4), Updates(b.grad, 0, b.shard * 4)});
  }
  t.Free(reduce, out);
  if (f_.reduce_before_weights) return;  // the rest is still to be added
  t.Free(f_.free_gradient_early ? compute : reduce, b.full_grad);
  b.full_grad = -1;
}

void MiniMemory::Optimizer() {
  Order(reduce, compute);
  for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
    Bucket& b = At(buckets_, id);
    t.Launch(compute, SPF_K_AXPBY,
             {Reads(b.grad, 0, b.shard * 4), Updates(b.main, 0, b.shard * 4)});
    t.Copy(compute, Reads(b.main, 0, b.shard * 4), Writes(b.param, 0, b.shard * 4));
  }
  Publish();
}

void MiniMemory::EndStep() {
  if (f_.keep_activations) {
    for (auto& [place, value] : values_) {
      if (value.alloc >= 0) t.Free(compute, value.alloc);
    }
  }
  if (train_ && f_.gather_unread) Gather(facts_.units(rank_).front(), false);
  if (!f_.stale) {
    Release(-1);
    for (const int32_t unit : facts_.units(rank_)) {
      if (!f_.forget_release) Release(unit);
    }
  }
  if (!train_ && f_.eval_keeps) Gather(facts_.units(rank_).front(), false);
  if (train_ && !f_.early_optimizer) Optimizer();
  t.CallEnd(train_ ? "train_step" : "eval_step", static_cast<int>(step_));
}

void MiniMemory::Destroy() {
  t.CallBegin("destroy");
  for (const int stream : {compute, a2a, gather, reduce}) t.StreamDestroy(stream);
  t.CallEnd("destroy");
}

}  // namespace shardproof
