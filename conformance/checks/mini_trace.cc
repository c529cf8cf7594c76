#include "conformance/checks/mini_trace.h"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/trace/digest.h"

namespace shardproof {

namespace {

class Engine {
 public:
  Engine(const Case& c, const InstanceFacts& facts, int32_t rank, const MiniFaults& faults)
      : c_(c), facts_(facts), spec_(facts.spec()), rank_(rank), t_(rank, c.world) {
    if (faults.rank < 0 || faults.rank == rank) {
      f_ = faults;
    } else {
      f_.marks = faults.marks;
    }
  }

  Trace Run() {
    for (const ScriptCall& call : facts_.calls()) {
      ++call_;
      if (call.letter == 'c') Create();
      if (call.letter == 't') Train(call.step, true);
      if (call.letter == 'e') Train(call.step, false);
    }
    Destroy();
    return t_.Done();
  }

 private:
  struct Bucket {
    int64_t shard = 0;  // elements
    int param = -1, main = -1, grad = -1, full = -1, full_grad = -1;
  };
  const ParamFacts& P(int32_t id) const { return facts_.Param(rank_, id); }
  int64_t Members(int32_t id) const { return static_cast<int64_t>(facts_.InnerList(P(id).expert, rank_)->size()); }
  int64_t Index(int32_t id) const {
    const auto* list = facts_.InnerList(P(id).expert, rank_);
    return std::find(list->begin(), list->end(), rank_) - list->begin();
  }
  int64_t Begin(int32_t id) const { return std::min(P(id).numel, Index(id) * buckets_[size_t(id)].shard); }
  int64_t Count(int32_t id) const {
    return std::min(P(id).numel, Begin(id) + buckets_[size_t(id)].shard) - Begin(id);
  }
  int GroupOf(int32_t id, bool gather) {
    const bool expert = P(id).expert;
    std::string name = expert ? "expt_dp" : "dp_cp";
    if (spec_.outer > 1) name = "intra_" + name;
    const bool twin = facts_.Twin() && (gather ? !f_.gather_on_reducer : f_.reduce_on_twin);
    return Named(twin ? (expert ? "expt_dp_ag" : "dp_cp_ag") : name);
  }
  int Named(const std::string& name) {
    const auto [at, added] = groups_.try_emplace(name, -1);
    if (added) {
      const auto* list = facts_.List(name, rank_);
      at->second = t_.Group(name, *list, name + ListText(*list));
      if (spec_.grid) return Created(at->second, name, *list);
      t_.GroupAsk(name, at->second);
    }
    return at->second;
  }
  int Created(int& group, const std::string& name, const std::vector<int32_t>& list) {
    group = t_.GroupCreate(world_, name, list);
    if (f_.double_create) extra_groups_.push_back(t_.GroupCreate(world_, name, list));
    return group;
  }

  void Create() {
    t_.CallBegin("create");
    for (const auto& [name, value] : Knobs(spec_, c_.world)) t_.Knob(name, true);
    std::vector<int32_t> all;
    for (int32_t r = 0; r < c_.world; ++r) all.push_back(r);
    world_ = t_.Group("world", all, "world");
    for (const GroupFamily& family : facts_.families()) Named(family.name);
    s_ = t_.Stream("s");
    acts_ = t_.Alloc(s_, 1 << 12);
    buckets_.resize(size_t(facts_.n_params(rank_)));
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      Bucket& b = buckets_[size_t(id)];
      b.shard = (P(id).numel + Members(id) - 1) / Members(id);
      b.param = t_.Alloc(s_, b.shard * 4);
      b.main = t_.Alloc(s_, b.shard * 4);
      if (!P(id).frozen) b.grad = t_.Alloc(s_, b.shard * 4);
      if (Count(id) > 0) t_.Init(s_, id, Begin(id), Count(id), Writes(b.main, 0, Count(id) * 4));
      if (Count(id) > 0) t_.Copy(s_, Reads(b.main, 0, Count(id) * 4), Writes(b.param, 0, Count(id) * 4));
    }
    PublishParams(false);
    t_.CallEnd("create");
  }

  void PublishParams(bool trained) {
    if (trained) version_ = call_;
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      if (trained && P(id).frozen) continue;
      Publish(SPF_RESULT_PARAM, id, buckets_[size_t(id)].main, MiniValue);
    }
  }

  void Publish(int result, int32_t id, int alloc, float (*value)(int32_t, int32_t, int64_t)) {
    std::vector<double> values;
    for (int64_t i = 0; i < Count(id); ++i) values.push_back(double{value(call_, P(id).key, Begin(id) + i)});
    if (values.empty()) return;
    t_.Publish(s_, result, id, Begin(id), Count(id), SPF_F32, 1, Reads(alloc, 0, Count(id) * 4), values);
  }

  void Mark(int hook, int32_t module, int32_t microbatch) {
    if (f_.marks) t_.Mark(hook, module, microbatch);
  }

  void Gather(int32_t id) {
    Bucket& b = buckets_[size_t(id)];
    if (b.full >= 0) return;
    const int64_t n = Members(id);
    b.full = t_.Alloc(s_, n * b.shard * 4);
    t_.Collective(SPF_ALL_GATHER, GroupOf(id, true), s_, b.shard,
                  {Reads(b.param, 0, b.shard * 4), Writes(b.full, 0, n * b.shard * 4)});
  }
  void ReleaseParam(int32_t id) {
    Bucket& b = buckets_[size_t(id)];
    if (b.full >= 0) t_.Free(s_, b.full);
    b.full = -1;
  }
  template <class F>
  void ForUnit(int32_t unit, F&& body) {
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      if (P(id).unit == unit) body(id);
    }
  }
  void GatherUnit(int32_t unit) {
    ForUnit(unit, [&](int32_t id) { Gather(id); });
  }
  void ReleaseUnit(int32_t unit) {
    ForUnit(unit, [&](int32_t id) { ReleaseParam(id); });
  }
  int32_t UnitAfter(int32_t unit, int32_t steps) const {
    const auto& units = facts_.units();
    const auto at = std::find(units.begin(), units.end(), unit) + steps;
    return at < units.end() && at >= units.begin() ? *at : -1;
  }

  void Compute(const spf_node& node, int phase, int32_t m) {
    const spf_uses& uses = node.uses[phase];
    std::vector<Range> ranges;
    std::vector<ParamRead> reads;
    for (int32_t i = 0; i < uses.n; ++i) {
      const spf_use& use = uses.use[i];
      if (use.table == SPF_IN_PARAM) {
        ranges.push_back(Reads(buckets_[size_t(use.id)].full, 0, P(use.id).numel * 4));
        reads.push_back({use.id, DigestOf(use.id), -1, P(use.id).numel});
      } else if (use.table == SPF_IN_GRAD) {
        ranges.push_back(Updates(buckets_[size_t(use.id)].full_grad, 0, P(use.id).numel * 4));
      } else {
        Range range = Reads(acts_, (use.id % 64) * 64, 64);
        range.access = use.access;
        ranges.push_back(range);
      }
    }
    t_.Compute(s_, node.id, phase, m, ranges, reads);
    if (node.kind == SPF_NODE_INPUT) t_.Last().sample = int64_t{m} * DpCpSize(spec_) + facts_.DataRank(rank_);
  }
  uint64_t DigestOf(int32_t id) const {
    const int32_t version = P(id).frozen ? 0 : version_;
    std::vector<float> values;
    for (int64_t i = 0; i < P(id).numel; ++i) values.push_back(MiniValue(version, P(id).key, i));
    return DigestValues(values.data(), SPF_F32, 0, P(id).numel);
  }

  void Train(int64_t step, bool train) {
    const char* name = train ? "train_step" : "eval_step";
    t_.CallBegin(name, static_cast<int>(step));
    if (train) Mark(SPF_HOOK_ZERO_GRAD, 0, -1);
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      Bucket& b = buckets_[size_t(id)];
      if (train && b.grad >= 0 && !(f_.no_zero_grad && call_ > 1)) {
        t_.Launch(s_, SPF_K_FILL, {Writes(b.grad, 0, b.shard * 4)});
      }
    }
    GatherUnit(-1);
    for (int32_t m = 0; m < spec_.microbatches; ++m) Microbatch(step, m, train);
    if (!f_.no_release_at_end) ReleaseUnit(-1);
    if (train) FinishStep();
    if (f_.drift) drifted_.push_back(t_.Alloc(s_, 64));
    t_.CallEnd(name, static_cast<int>(step));
  }

  void Microbatch(int64_t step, int32_t m, bool train) {
    const int64_t sample = int64_t{m} * DpCpSize(spec_) + facts_.DataRank(rank_);
    const spf_program& program = facts_.model().Program(step, sample, facts_.Place(rank_));
    Mark(SPF_HOOK_FORWARD, 0, m);
    if (f_.gather_reversed) {
      for (size_t u = facts_.units().size(); u-- > 0;) GatherUnit(facts_.units()[u]);
    }
    Pass(program, m, true);
    t_.Publish(s_, SPF_RESULT_LOSS, m, 0, 1, SPF_F32, 1, Reads(acts_, 0, 4), {static_cast<double>(sample) + 0.5});
    if (!train) return;
    Mark(SPF_HOOK_ROOT_PRE_BACKWARD, 0, m);
    if (f_.root_pre_backward_twice) Mark(SPF_HOOK_ROOT_PRE_BACKWARD, 0, m);
    AllocGrads(-1);
    Pass(program, m, false);
    ReduceUnit(-1, m);
    if (f_.outer_each_microbatch) Outer();
    Mark(SPF_HOOK_ROOT_POST_BACKWARD, 0, m);
  }

  // Forward or backward over the program, unit by unit.
  void Pass(const spf_program& program, int32_t m, bool forward) {
    int32_t in = -1;
    std::set<int32_t> entered;
    for (int32_t i = 0; i < program.n_nodes; ++i) {
      const spf_node& node = program.nodes[forward ? i : program.n_nodes - 1 - i];
      const int phase = forward ? SPF_FWD : SPF_BWD;
      if (node.kind == SPF_NODE_EXCHANGE || node.uses[phase].n == 0) continue;
      const int32_t unit = facts_.UnitOfModule(node.module);
      if (unit != in) {
        if (in >= 0) Leave(in, m, forward);
        if (unit >= 0) PassBy(unit, m, forward, entered);
        if (unit >= 0) Enter(unit, m, forward);
        in = unit;
      }
      const bool last = LastOfUnit(program, i, forward, unit);
      if (last && f_.release_early && forward && unit >= 0) ReleaseParam(FirstParam(unit));
      if (last && f_.reduce_before_last && !forward && unit >= 0) ReduceUnit(unit, m, true);
      if (last && f_.release_early && forward && unit >= 0) continue;
      Compute(node, phase, m);
    }
    if (in >= 0) Leave(in, m, forward);
    PassBy(-1, m, forward, entered);
  }
  // Units before this one that this rank's program leaves out: others gather and reduce them, so it takes part.
  void PassBy(int32_t unit, int32_t m, bool forward, std::set<int32_t>& entered) {
    std::vector<int32_t> order = facts_.units();
    if (!forward) std::reverse(order.begin(), order.end());
    for (const int32_t other : order) {
      if (other == unit) break;
      if (!entered.insert(other).second) continue;
      Enter(other, m, forward);
      Leave(other, m, forward);
    }
    entered.insert(unit);
  }
  int32_t FirstParam(int32_t unit) const {
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      if (P(id).unit == unit) return id;
    }
    return 0;
  }
  bool LastOfUnit(const spf_program& program, int32_t i, bool forward, int32_t unit) const {
    if (unit < 0) return false;
    for (int32_t k = i + 1; k < program.n_nodes; ++k) {
      const spf_node& node = program.nodes[forward ? k : program.n_nodes - 1 - k];
      if (facts_.UnitOfModule(node.module) == unit && node.uses[forward ? SPF_FWD : SPF_BWD].n > 0) return false;
    }
    return true;
  }

  void Enter(int32_t unit, int32_t m, bool forward) {
    Mark(forward ? SPF_HOOK_PRE_FORWARD : SPF_HOOK_PRE_BACKWARD, unit, m);
    GatherUnit(unit);
    for (int32_t ahead = 1; forward && ahead <= f_.prefetch; ++ahead) {
      if (const int32_t next = UnitAfter(unit, ahead); next >= 0) GatherUnit(next);
    }
    if (!forward && f_.recompute_prefetch && UnitAfter(unit, 1) >= 0) {
      GatherUnit(UnitAfter(unit, 1));
      ReleaseUnit(UnitAfter(unit, 1));
    }
    if (!forward) AllocGrads(unit);
  }
  void Leave(int32_t unit, int32_t m, bool forward) {
    if (forward) {
      if (!f_.no_release_forward) ReleaseUnit(unit);
      return Mark(SPF_HOOK_POST_FORWARD, unit, m);
    }
    ReleaseUnit(unit);
    Mark(SPF_HOOK_POST_BACKWARD, unit, m);
    ReduceUnit(unit, m);
  }

  void AllocGrads(int32_t unit) {
    ForUnit(unit, [&](int32_t id) {
      Bucket& b = buckets_[size_t(id)];
      if (P(id).frozen) return;
      b.full_grad = t_.Alloc(s_, Members(id) * b.shard * 4);
      t_.Launch(s_, SPF_K_FILL, {Writes(b.full_grad, 0, Members(id) * b.shard * 4)});
    });
  }
  void ReduceUnit(int32_t unit, int32_t m, bool keep = false) {
    const bool skip = f_.skip_reduce_last && m == spec_.microbatches - 1;
    Mark(SPF_HOOK_ACCUMULATE, std::max(unit, 0), m);
    ForUnit(unit, [&](int32_t id) {
      Bucket& b = buckets_[size_t(id)];
      if (b.full_grad < 0) return;
      if (!f_.no_nan_guard && spec_.check_for_nan) {
        t_.Launch(s_, SPF_K_COUNT_NONFINITE, {Reads(b.full_grad, 0, P(id).numel * 4), Updates(acts_, 0, 8)});
      }
      if (!skip && !(f_.reduce_before_last && !keep && unit >= 0)) Reduce(id);
      if (keep) return;
      t_.Free(s_, b.full_grad);
      b.full_grad = -1;
    });
  }
  void Reduce(int32_t id) {
    Bucket& b = buckets_[size_t(id)];
    const int out = t_.Alloc(s_, b.shard * 4);
    CollectiveOptions options;
    if (f_.bf16_wire) options.dtype = SPF_BF16;
    t_.Collective(SPF_REDUCE_SCATTER, GroupOf(id, false), s_, b.shard,
                  {Reads(b.full_grad, 0, Members(id) * b.shard * 4), Writes(out, 0, b.shard * 4)}, options);
    for (int i = 0; i < (f_.add_reduced_twice ? 2 : 1); ++i) {
      t_.Launch(s_, SPF_K_AXPBY, {Reads(out, 0, b.shard * 4), Updates(b.grad, 0, b.shard * 4)});
    }
    t_.Free(s_, out);
  }
  void Outer() {
    if (spec_.outer <= 1) return;
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      Bucket& b = buckets_[size_t(id)];
      if (b.grad < 0) continue;
      t_.Collective(SPF_ALL_REDUCE, Named(P(id).expert ? "inter_expt_dp" : "inter_dp_cp"), s_, b.shard,
                    {Reads(b.grad, 0, b.shard * 4), Writes(b.grad, 0, b.shard * 4)});
    }
  }

  void FinishStep() {
    if (!f_.skip_outer && !f_.outer_each_microbatch) Outer();
    Mark(SPF_HOOK_FINISH_GRAD_SYNC, 0, -1);
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      if (!P(id).frozen) Publish(SPF_RESULT_GRAD, id, buckets_[size_t(id)].grad, MiniGrad);
    }
    if (spec_.grad_norm) t_.Publish(s_, SPF_RESULT_GRAD_NORM, 0, 0, 1, SPF_F64, 1, Reads(acts_, 0, 8), {2.0});
    if (spec_.zero_count) t_.Publish(s_, SPF_RESULT_ZERO_COUNT, 0, 0, 1, SPF_F64, 1, Reads(acts_, 8, 8), {3.0});
    Mark(SPF_HOOK_OPTIMIZER_STEP, 0, -1);
    for (Bucket& b : buckets_) {
      if (b.grad >= 0) t_.Launch(s_, SPF_K_AXPBY, {Reads(b.grad, 0, b.shard * 4), Updates(b.main, 0, b.shard * 4)});
    }
    Mark(SPF_HOOK_INSTALL_WEIGHTS, 0, -1);
    for (Bucket& b : buckets_) {
      if (f_.no_install || b.grad < 0) continue;
      t_.Copy(s_, Reads(b.main, 0, b.shard * 4), Writes(b.param, 0, b.shard * 4));
    }
    PublishParams(true);
  }

  void Destroy() {
    t_.CallBegin("destroy");
    for (Bucket& b : buckets_) {
      for (const int block : {b.param, b.main, b.grad, b.full}) {
        if (block >= 0) t_.Free(s_, block);
      }
    }
    for (const int block : drifted_) t_.Free(s_, block);
    if (!f_.leak) t_.Free(s_, acts_);
    t_.StreamDestroy(s_);
    if (spec_.grid) {
      for (const auto& [name, group] : groups_) t_.GroupDestroy(group);
      for (const int group : extra_groups_) t_.GroupDestroy(group);
    }
    t_.CallEnd("destroy");
  }

  const Case& c_;
  const InstanceFacts& facts_;
  const InstanceSpec& spec_;
  const int32_t rank_;
  MiniFaults f_;
  TraceBuilder t_;
  std::map<std::string, int> groups_;
  std::vector<int> extra_groups_, drifted_;
  int s_ = -1, acts_ = -1, world_ = -1;
  int32_t call_ = -1, version_ = 0;
  std::vector<Bucket> buckets_;
};

}  // namespace

Trace WriteMiniTrace(const Case& c, const InstanceFacts& facts, int32_t rank, const MiniFaults& faults) {
  return Engine(c, facts, rank, faults).Run();
}

}  // namespace shardproof
