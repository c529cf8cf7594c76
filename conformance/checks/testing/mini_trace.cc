#include "conformance/checks/testing/mini_trace.h"

#include <algorithm>
#include <set>
#include <utility>

#include "conformance/checks/testing/mini_rank.h"
#include "conformance/common/at.h"
#include "conformance/trace/digest.h"

namespace shardproof {

namespace {

class Engine : private MiniRank {
 public:
  Engine(const Case& c, const InstanceFacts& facts, int32_t rank, const MiniFaults& faults)
      : MiniRank(c, facts, rank, faults) {}

  Trace Run() {
    for (const ScriptCall& call : facts_.calls()) {
      ++call_;
      if (call.letter == 'c') Create();
      if (call.letter == 't') Train(call.step, true);
      if (call.letter == 'e') Train(call.step, false);
      if (call.letter == 's') Save();
      if (call.letter == 'l') Load();
    }
    Destroy();
    return t_.Done();
  }

 private:
  void Create() {
    t_.CallBegin("create");
    for (const auto& [name, value] : Knobs(spec_, c_.world)) t_.Knob(name, true);
    std::vector<int32_t> all;
    for (int32_t r = 0; r < c_.world; ++r) all.push_back(r);
    world_ = t_.Group("world", all, "world");
    for (const GroupFamily& family : facts_.families()) Named(family.name);
    s_ = t_.Stream("s");
    acts_ = t_.Alloc(s_, 1 << 12);
    CreateBuckets();
    PublishParams(false);
    t_.CallEnd("create");
  }

  int32_t UnitAfter(int32_t unit, int32_t steps) const {
    const auto& units = facts_.units(rank_);
    const auto at = std::find(units.begin(), units.end(), unit) + steps;
    return at < units.end() && at >= units.begin() ? *at : -1;
  }

  void Compute(const spf_node& node, int phase, int32_t m) {
    const spf_uses& uses = node.uses[phase];
    if (node.kind != SPF_NODE_COMPUTE && node.kind != SPF_NODE_INPUT)
      return MeetOverTp(node, phase);
    std::vector<Range> ranges;
    std::vector<ParamRead> reads;
    for (int32_t i = 0; i < uses.n; ++i) {
      const spf_use& use = uses.use[i];
      if (use.table == SPF_IN_PARAM) {
        ranges.push_back(Reads(At(buckets_, use.id).full, 0, P(use.id).numel * 4));
        reads.push_back({use.id, DigestOf(use.id), -1, P(use.id).numel});
      } else if (use.table == SPF_IN_GRAD) {
        ranges.push_back(Updates(At(buckets_, use.id).full_grad, 0, P(use.id).numel * 4));
      } else {
        Range range = Reads(acts_, (use.id % 64) * 64, 64);
        range.access = use.access;
        ranges.push_back(range);
      }
    }
    t_.Compute(s_, node.id, phase, m, ranges, reads);
    if (node.kind == SPF_NODE_INPUT)
      t_.Last().sample = int64_t{m} * DpCpSize(spec_) + facts_.DataRank(rank_);
    if (f_.host_waits) t_.StreamSync(s_);
  }
  uint64_t DigestOf(int32_t id) const {
    const int32_t version = P(id).frozen ? 0 : version_;
    std::vector<float> values;
    for (int64_t i = 0; i < P(id).numel; ++i) values.push_back(MiniValue(version, P(id).key, i));
    return DigestValues(values.data(), SPF_F32, 0, P(id).numel);
  }

  void Train(int64_t step, bool train) {
    const char* name = train ? "train_step" : "eval_step";
    trains_ = train;
    t_.CallBegin(name, static_cast<int>(step));
    if (train) Mark(SPF_HOOK_ZERO_GRAD, 0, -1);
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      Bucket& b = At(buckets_, id);
      if (train && b.grad >= 0 && !(f_.no_zero_grad && call_ > 1)) {
        t_.Launch(s_, SPF_K_FILL, {Writes(b.grad, 0, b.shard * 4)});
      }
    }
    GatherUnit(-1);
    for (int32_t m = 0; m < spec_.microbatches; ++m) Microbatch(step, m, train || f_.eval_reduces);
    if (!f_.no_release_at_end) ReleaseUnit(-1);
    if (train) FinishStep();
    if (f_.drift) drifted_.push_back(t_.Alloc(s_, 64));
    if (train ? f_.pinned_drift : f_.pinned_eval_drift)
      drifted_.push_back(t_.Alloc(s_, 64, {}, SPF_PINNED));
    t_.CallEnd(name, static_cast<int>(step));
  }

  void Microbatch(int64_t step, int32_t m, bool train) {
    const int64_t sample = int64_t{m} * DpCpSize(spec_) + facts_.DataRank(rank_);
    const spf_program& program = facts_.model().Program(step, sample, facts_.Place(rank_));
    Mark(SPF_HOOK_FORWARD, 0, m);
    if (f_.gather_reversed) {
      for (size_t u = facts_.units(rank_).size(); u-- > 0;) GatherUnit(facts_.units(rank_)[u]);
    }
    Pass(program, m, true);
    t_.Publish(s_, SPF_RESULT_LOSS, m, 0, 1, SPF_F32, 1, Reads(acts_, 0, 4),
               {static_cast<double>(sample) + 0.5});
    if (!train) return;
    Mark(SPF_HOOK_ROOT_PRE_BACKWARD, 0, m);
    if (f_.root_pre_backward_twice) Mark(SPF_HOOK_ROOT_PRE_BACKWARD, 0, m);
    AllocGrads(-1);
    Pass(program, m, false);
    for (const int32_t unit : late_) ReduceUnit(unit, m);
    ReduceUnit(-1, m);
    for (const int block : sent_) t_.Free(s_, block);
    late_.clear();
    sent_.clear();
    if (f_.outer_each_microbatch) Outer();
    Mark(SPF_HOOK_ROOT_POST_BACKWARD, 0, m);
  }

  // Forward or backward over the program, unit by unit.
  void Pass(const spf_program& program, int32_t m, bool forward) {
    int32_t in = -1;
    second_ = !forward || (f_.eval_copy && !trains_);
    std::set<int32_t> entered;
    for (int32_t i = 0; i < program.n_nodes; ++i) {
      const spf_node& node = program.nodes[forward ? i : program.n_nodes - 1 - i];
      const int phase = forward ? SPF_FWD : SPF_BWD;
      if (node.kind == SPF_NODE_EXCHANGE || node.uses[phase].n == 0) continue;
      const int32_t unit = facts_.UnitOfModule(node.module, rank_);
      if (unit != in) {
        if (in >= 0) Leave(in, m, forward);
        if (unit >= 0) PassBy(unit, m, forward, entered);
        if (unit >= 0) Enter(unit, m, forward);
        in = unit;
      }
      if (LastOfUnit(program, i, forward, unit) && DepartAtLast(unit, m, forward)) continue;
      Compute(node, phase, m);
    }
    if (in >= 0) Leave(in, m, forward);
    PassBy(-1, m, forward, entered);
  }
  // Faults at the last node of a unit; true: the node is left out.
  bool DepartAtLast(int32_t unit, int32_t m, bool forward) {
    GatherUnit(unit);  // in pieces: the last one
    if (forward && f_.release_early) ReleaseParam(FirstParam(unit));
    if (!forward && f_.reduce_before_last) ReduceUnit(unit, m, true);
    return forward && f_.release_early;
  }
  // Units before this one that this rank's program leaves out: others gather and reduce them, so it
  // takes part.
  void PassBy(int32_t unit, int32_t m, bool forward, std::set<int32_t>& entered) {
    std::vector<int32_t> order = facts_.units(rank_);
    if (!forward) std::reverse(order.begin(), order.end());
    for (const int32_t other : order) {
      if (other == unit) break;
      if (!entered.insert(other).second || (f_.skip_unused && !forward)) continue;
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
  int32_t LastParam(int32_t unit) const {
    int32_t last = 0;
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      if (P(id).unit == unit) last = id;
    }
    return last;
  }
  bool LastOfUnit(const spf_program& program, int32_t i, bool forward, int32_t unit) const {
    if (unit < 0) return false;
    for (int32_t k = i + 1; k < program.n_nodes; ++k) {
      const spf_node& node = program.nodes[forward ? k : program.n_nodes - 1 - k];
      if (facts_.UnitOfModule(node.module, rank_) == unit &&
          node.uses[forward ? SPF_FWD : SPF_BWD].n > 0)
        return false;
    }
    return true;
  }

  void Enter(int32_t unit, int32_t m, bool forward) {
    Mark(forward ? SPF_HOOK_PRE_FORWARD : SPF_HOOK_PRE_BACKWARD, unit, m);
    ForUnit(unit, [&](int32_t id) {
      if (!f_.in_pieces || !forward || id != LastParam(unit)) Gather(id);
    });
    const bool prefetches = forward && (f_.prefetch_call < 0 || f_.prefetch_call == call_);
    for (int32_t ahead = 1; prefetches && ahead <= f_.prefetch; ++ahead) {
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
      if (!f_.no_release_forward) trains_ ? ReleaseAfterForward(unit) : ReleaseUnit(unit);
      return Mark(SPF_HOOK_POST_FORWARD, unit, m);
    }
    ReleaseUnit(unit);
    Mark(SPF_HOOK_POST_BACKWARD, unit, m);
    if (f_.late_rest) {
      late_.push_back(unit);
      first_only_ = true;
      ReduceUnit(unit, m);
      first_only_ = false;
      return;
    }
    if (f_.late_reduce) return late_.push_back(unit);
    ReduceUnit(unit, m);
  }

  void ReduceUnit(int32_t unit, int32_t m, bool keep = false) {
    const bool skip = f_.skip_reduce_last && m == spec_.microbatches - 1;
    Mark(SPF_HOOK_ACCUMULATE, std::max(unit, 0), m);
    bool another = false;
    ForUnit(unit, [&](int32_t id) {
      Bucket& b = At(buckets_, id);
      if (b.full_grad < 0 || std::exchange(another, first_only_)) return;
      if (f_.tp_parts_unlooked) SumPart(id);
      if (!f_.no_nan_guard && spec_.check_for_nan) {
        t_.Launch(s_, SPF_K_COUNT_NONFINITE,
                  {Reads(b.full_grad, 0, P(id).numel * 4), Updates(acts_, 0, 8)});
      }
      if (!skip && !(f_.reduce_before_last && !keep && unit >= 0)) Reduce(id);
      if (keep) return;
      if (f_.late_free) {
        sent_.push_back(b.full_grad);
      } else {
        Give(id, true, b.full_grad);
      }
      b.full_grad = -1;
    });
  }
  void FinishStep() {
    if (!f_.skip_outer && !f_.outer_each_microbatch) Outer();
    ReduceFlag();
    SumParts();
    Mark(SPF_HOOK_FINISH_GRAD_SYNC, 0, -1);
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      if (!P(id).frozen) Publish(SPF_RESULT_GRAD, id, At(buckets_, id).grad, Grad());
    }
    if (spec_.grad_norm)
      t_.Publish(s_, SPF_RESULT_GRAD_NORM, 0, 0, 1, SPF_F64, 1, Reads(acts_, 0, 8), {2.0});
    if (spec_.zero_count)
      t_.Publish(s_, SPF_RESULT_ZERO_COUNT, 0, 0, 1, SPF_F64, 1, Reads(acts_, 8, 8), {3.0});
    Mark(SPF_HOOK_OPTIMIZER_STEP, 0, -1);
    for (Bucket& b : buckets_) {
      if (b.grad >= 0)
        t_.Launch(s_, SPF_K_AXPBY,
                  {Reads(b.grad, 0, b.shard * 4), Updates(b.main, 0, b.shard * 4)});
    }
    Mark(SPF_HOOK_INSTALL_WEIGHTS, 0, -1);
    for (Bucket& b : buckets_) {
      if (f_.no_install || b.grad < 0) continue;
      t_.Copy(s_, Reads(b.main, 0, b.shard * 4), Writes(b.param, 0, b.shard * 4));
      if (b.copy < 0 || f_.stale_copy || f_.blank_copy) continue;
      t_.Copy(s_, Reads(b.main, 0, b.shard * 4), Writes(b.copy, 0, b.shard * 4));
    }
    PublishParams(true);
  }

  using Value = float (*)(int32_t, int32_t, int64_t);
  Value Grad() const {
    if (!f_.grads_off_by_one) return MiniGrad;
    return
        [](int32_t call, int32_t key, int64_t element) { return MiniGrad(call, key, element) + 1; };
  }

  // Files are no part of a trace; what is loaded has no name before it is published.
  void Save() {
    t_.CallBegin("save");
    t_.CallEnd("save");
  }
  void Load() {
    t_.CallBegin("load");
    PublishParams(true);
    t_.CallEnd("load");
  }

  void Destroy() {
    t_.CallBegin("destroy");
    FreeBuckets();
    for (const int block : drifted_) t_.Free(s_, block);
    if (!f_.leak) t_.Free(s_, acts_);
    t_.StreamDestroy(s_);
    DestroyGroups();
    t_.CallEnd("destroy");
  }

  std::vector<int> drifted_, sent_;  // blocks
  std::vector<int32_t> late_;        // units
  bool first_only_ = false;          // ReduceUnit
  bool trains_ = false;              // the entry call
};

}  // namespace

Trace WriteMiniTrace(const Case& c, const InstanceFacts& facts, int32_t rank,
                     const MiniFaults& faults) {
  return Engine(c, facts, rank, faults).Run();
}

}  // namespace shardproof
