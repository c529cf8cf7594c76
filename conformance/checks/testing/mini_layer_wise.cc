#include "conformance/checks/testing/mini_layer_wise.h"

#include <algorithm>

#include "conformance/checks/testing/mini_deal.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {

namespace {

class Engine : private MiniDeal {
 public:
  Engine(const Case& c, const InstanceFacts& facts, int32_t rank, const LayerWiseFaults& faults)
      : MiniDeal(c, facts, rank, faults) {}

  Trace Run() {
    for (const ScriptCall& call : facts_.calls()) {
      ++call_;
      if (call.letter == 'c') Create();
      if (call.letter == 'd') Destroy();
      if (call.letter == 't' || call.letter == 'e') Step(call.step, call.letter == 't');
      if (call.letter == 's') Nothing("save");
      if (call.letter == 'l') Load();
    }
    Destroy();
    return t_.Done();
  }

 private:
  bool Overlap() const { return spec_.overlap_param_gather != f_.other_time; }

  void Create() {
    t_.CallBegin("create");
    for (const GroupFamily& family : facts_.families()) Named(family.name);
    s_ = t_.Stream("compute");
    g_ = t_.Stream("gather");
    r_ = t_.Stream("reduce");
    acts_ = t_.Alloc(s_, 1 << 12);
    MakeBuckets();
    AllocAll();
    // Buckets with the first parameters are needed first.
    for (const bool expert : {false, true}) {
      for (size_t b = buckets_.size(); b-- > 0;) {
        if (buckets_[b].expert == expert) chains_[expert].push_back(b);
      }
      launched_[expert] = published_[expert] = f_.at_create ? 0 : chains_[expert].size();
    }
    Publish(true);
    t_.CallEnd("create");
  }
  void Destroy() {
    t_.CallBegin("destroy");
    FreeAll();
    params_.clear();
    buckets_.clear();
    for (auto& chain : chains_) chain.clear();
    t_.Free(s_, acts_);
    for (const int stream : {s_, g_, r_}) t_.StreamDestroy(stream);
    t_.CallEnd("destroy");
  }
  void Nothing(const char* name) {
    t_.CallBegin(name);
    t_.CallEnd(name);
  }
  // Files have no names: bytes become parameters again when they are published.
  void Load() {
    t_.CallBegin("load");
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      if (P(id).frozen || !Has(id)) continue;
      t_.Launch(s_, SPF_K_CUSTOM, {Writes(params_[size_t(id)].main, 0, P(id).numel * 4)});
    }
    if (!f_.install_unnamed) Publish(false);
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) Install(id);
    if (f_.install_unnamed) Publish(false);
    FinishStep();
    t_.CallEnd("load");
  }

  void Rearm() { launched_[0] = launched_[1] = published_[0] = published_[1] = 0; }
  void LaunchNext(bool expert) {
    const size_t at = launched_[expert]++;
    const bool last = at + 1 == chains_[expert].size();
    if (!(f_.no_gather && last)) Launch(buckets_[chains_[expert][at]]);
    if (f_.wait_at_once) Wait(buckets_[chains_[expert][at]]);
  }
  void PublishNext(bool expert, bool ahead) {
    const size_t n = chains_[expert].size(), at = published_[expert];
    if (launched_[expert] == at) LaunchNext(expert);
    Wait(buckets_[chains_[expert][at]]);
    const size_t until = f_.all_ahead ? n : std::min(n, at + (f_.two_ahead ? 3 : 2));
    while (ahead && launched_[expert] < until) LaunchNext(expert);
    if (f_.zero_next && at + 1 < n) ZeroGrads(buckets_[chains_[expert][at + 1]]);
    MiniDeal::Install(buckets_[chains_[expert][at]]);
    ++published_[expert];
  }
  void Need(int32_t id) {
    const bool expert = P(id).expert && !f_.mix_kinds;
    for (size_t at = 0; at < chains_[expert].size(); ++at) {
      const Bucket& b = buckets_[chains_[expert][at]];
      const bool here = std::any_of(b.items.begin(), b.items.end(),
                                    [&](const Item& item) { return item.id == id; });
      if (!here) continue;
      if (f_.late_install && at + 1 == chains_[expert].size()) return;
      while (published_[expert] <= at) PublishNext(expert, true);
      return;
    }
  }
  void PublishAll(bool ahead) {
    for (const bool expert : {false, true}) {
      while (published_[expert] < chains_[expert].size()) PublishNext(expert, ahead);
    }
  }

  void Compute(const spf_node& node, int phase, int32_t m) {
    const spf_uses& uses = node.uses[phase];
    std::vector<Range> ranges;
    for (int32_t i = 0; i < uses.n; ++i) {
      const spf_use& use = uses.use[i];
      if (use.table == SPF_IN_PARAM) {
        if (!f_.late_need && phase == SPF_FWD) Need(use.id);
        ranges.push_back(Home(use.id, kRead));
      } else if (use.table == SPF_IN_GRAD) {
        ranges.push_back(Grad(use.id, kRead | kWrite));
      } else {
        Range range = Reads(acts_, (use.id % 64) * 64, 64);
        range.access = use.access;
        ranges.push_back(range);
      }
    }
    t_.Compute(s_, node.id, phase, m, ranges);
    if (node.kind == SPF_NODE_INPUT)
      t_.Last().sample = int64_t{m} * DpCpSize(spec_) + facts_.DataRank(rank_);
    for (int32_t i = 0; f_.late_need && phase == SPF_FWD && i < uses.n; ++i) {
      if (uses.use[i].table == SPF_IN_PARAM) Need(uses.use[i].id);
    }
  }

  void Step(int64_t step, bool train) {
    const char* name = train ? "train_step" : "eval_step";
    t_.CallBegin(name, static_cast<int>(step));
    train_steps_ += train;
    for (size_t b = 0; train && b < buckets_.size(); ++b) ZeroGrads(buckets_[b]);
    if (!train && f_.sync_eval) PublishAll(true);
    if (f_.eval_too && !train) Rearm();
    for (int32_t m = 0; m < spec_.microbatches; ++m) {
      if (f_.each_microbatch && m > 0) Rearm();
      Microbatch(step, m, train);
    }
    if (train) Optimize();
    t_.CallEnd(name, static_cast<int>(step));
  }

  void Microbatch(int64_t step, int32_t m, bool train) {
    const int64_t sample = int64_t{m} * DpCpSize(spec_) + facts_.DataRank(rank_);
    const spf_program& program = facts_.model().Program(step, sample, facts_.Place(rank_));
    for (int32_t i = 0; i < program.n_nodes; ++i) {
      const spf_node& node = program.nodes[i];
      if (node.kind != SPF_NODE_EXCHANGE && node.uses[SPF_FWD].n > 0) Compute(node, SPF_FWD, m);
    }
    if (!train) return;
    if (!f_.late_install) PublishAll(true);
    size_t reduced = 0;
    const bool last = m == spec_.microbatches - 1;
    for (int32_t i = program.n_nodes; i-- > 0;) {
      const spf_node& node = program.nodes[i];
      if (node.kind != SPF_NODE_EXCHANGE && node.uses[SPF_BWD].n > 0) Compute(node, SPF_BWD, m);
      if (f_.late_install && i == program.n_nodes / 2) PublishAll(true);
      while (last && reduced < buckets_.size() && Complete(program, i, buckets_[reduced]))
        Reduce(buckets_[reduced++]);
    }
  }

  // Nothing before node i adds to the bucket's gradients; or reductions do not overlap, and
  // backward is through.
  bool Complete(const spf_program& program, int32_t i, const Bucket& b) const {
    if (i > 0 && !spec_.overlap_grad_reduce) return false;
    for (int32_t k = 0; k < i; ++k) {
      const spf_uses& uses = program.nodes[k].uses[SPF_BWD];
      for (int32_t u = 0; u < uses.n; ++u) {
        const auto here = [&](const Item& item) { return item.id == uses.use[u].id; };
        if (uses.use[u].table != SPF_IN_GRAD) continue;
        if (std::any_of(b.items.begin(), b.items.end(), here)) return false;
      }
    }
    return true;
  }

  void Optimize() {
    if (!f_.gather_beside_reduction) Order(r_, s_);
    const bool skips = f_.skip_update && train_steps_ == 2;
    if (!skips) {
      if (!f_.silent_update || train_steps_ != 2) PublishGrads();
      if (f_.before_install) Rearm(), PublishAll(false);
      Update();
      if (!f_.silent_update || train_steps_ != 2) Publish(false);
    }
    if (!f_.before_install) FinishStep();
  }
  void FinishStep() {
    Rearm();
    if (!Overlap()) PublishAll(false);
  }
  bool LeftOut(int32_t id) const {
    return f_.leave_out && train_steps_ == 2 && id == facts_.n_params(rank_) - 1;
  }
  void Update() {
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      const Param& p = params_[size_t(id)];
      if (P(id).frozen || !Has(id) || LeftOut(id)) continue;
      const Range main = Updates(p.main, 0, P(id).numel * 4);
      const bool adamw = (spec_.optimizer != Optimizer::kSgd) != f_.other_optimizer;
      for (int times = 0; times < (f_.step_twice ? 2 : 1); ++times) {
        if (adamw) {
          t_.Launch(
              s_, SPF_K_ADAMW,
              {main, Updates(p.m, 0, main.length), Updates(p.v, 0, main.length), Grad(id, kRead)});
        } else {
          if (spec_.weight_decay > 0) {
            t_.Launch(s_, SPF_K_AXPBY, {Reads(p.main, 0, main.length), Grad(id, kRead | kWrite)});
          }
          t_.Launch(s_, SPF_K_AXPBY, {Grad(id, kRead), main});
        }
      }
      Install(id);
    }
  }
  void Install(int32_t id) {
    if (f_.no_install || !Owns(id)) return;
    t_.Copy(s_, Reads(params_[size_t(id)].main, 0, P(id).numel * 4), Home(id, kWrite));
  }

  void PublishGrads() {
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      if (!P(id).frozen && Owns(id)) PublishOne(SPF_RESULT_GRAD, id, Grad(id, kRead), P(id).numel);
    }
  }
  void Publish(bool frozen) {
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      if (P(id).frozen) {
        if (frozen && Me(P(id).expert) == 0)
          PublishOne(SPF_RESULT_PARAM, id, Home(id, kRead), P(id).numel);
      } else {
        PublishTrained(id, frozen);
      }
    }
  }
  void PublishTrained(int32_t id, bool frozen) {
    const bool first = id == 0 || (P(0).frozen && id == 1);
    if (f_.publish_none && first && !frozen) return;
    const bool half = f_.publish_half && first;
    if (!Publishes(id) && !half && !f_.publish_all) return;
    const int block = params_[size_t(id)].main;
    const int64_t count = half ? P(id).numel / 2 : P(id).numel;
    PublishOne(SPF_RESULT_PARAM, id, block < 0 ? Home(id, kRead) : Reads(block, 0, P(id).numel * 4),
               count);
  }
  bool Publishes(int32_t id) const {
    if (!f_.owner_moves) return Owns(id) || (f_.publish_all && Has(id));
    const auto n = static_cast<int32_t>(List(P(id).expert).size());
    return (params_[size_t(id)].owner + call_) % n == Me(P(id).expert);
  }
  void PublishOne(int result, int32_t id, Range from, int64_t count) {
    from.length = count * 4;
    std::vector<double> values;
    const int32_t made = f_.value_stays && LeftOut(id) ? call_ - 1 : call_;
    for (int64_t i = 0; i < count; ++i) values.push_back(double{MiniValue(made, P(id).key, i)});
    t_.Publish(s_, result, id, 0, count, SPF_F32, 1, from, values);
  }

  int32_t call_ = -1;
  std::vector<size_t> chains_[2];  // dense, experts: buckets in the order of gathers
  size_t launched_[2] = {0, 0}, published_[2] = {0, 0};
};

}  // namespace

Case LayerWiseCase(int32_t world, const std::function<void(InstanceSpec&)>& edit) {
  Case c;
  c.world = world;
  InstanceSpec& spec = c.instances[0];
  spec.strategy = ShardingStrategy::kLayerWise;
  spec.script = "ttt";
  spec.optimizer = Optimizer::kAdamw;
  spec.bucket_size = 600;
  spec.microbatches = 2;
  if (edit) edit(spec);
  Derive(c);
  return c;
}

LayerWiseRun RunLayerWise(Case c, const LayerWiseFaults& faults) {
  return WriteRun(std::move(c), [&](const Case& of, const InstanceFacts& facts, int32_t rank) {
    return WriteLayerWiseTrace(of, facts, rank, faults);
  });
}

Trace WriteLayerWiseTrace(const Case& c, const InstanceFacts& facts, int32_t rank,
                          const LayerWiseFaults& faults) {
  return Engine(c, facts, rank, faults).Run();
}

}  // namespace shardproof
