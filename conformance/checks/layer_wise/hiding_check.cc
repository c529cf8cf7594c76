// Can the gather of the next bucket travel while modules of this one compute?
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/ordering.h"
#include "conformance/checks/layer_wise/layer_wise.h"

namespace shardproof::layer_wise {

namespace {

// The gathers of one bucket.
struct Bucket {
  int32_t round = -1;
  int64_t first = -1, last = -1;  // events
  bool expert = false;
  std::set<int32_t> keys;
  int64_t read = -1;  // first compute of the first microbatch's forward that reads what they bring
};

class Hiding {
 public:
  Hiding(const Facts& facts, const Ordering& order, int32_t instance)
      : facts_(facts), order_(order), instance_(instance) {}

  void Collect(int32_t rank) {
    std::map<int32_t, std::vector<Bucket>> chains;  // by train_step, in issue order
    for (const Gather& gather : facts_.At(rank).gathers) {
      if (gather.instance != instance_ || gather.group->world_ranks.size() < 2 ||
          gather.call == gather.epoch)
        continue;
      // An evaluation may gather everything before it starts.
      if (facts_.Letter(instance_, gather.call) != 't') continue;
      std::vector<Bucket>& chain = chains[gather.call];
      auto bucket = std::find_if(chain.begin(), chain.end(),
                                 [&](const Bucket& b) { return b.round == gather.round; });
      if (bucket == chain.end()) {
        bucket = chain.insert(chain.end(),
                              {gather.round, gather.event, gather.event, gather.expert, {}, -1});
      }
      bucket->last = gather.event;
      for (const Share& share : gather.shares) bucket->keys.insert(share.key);
    }
    for (auto& [call, chain] : chains) {
      const std::vector<int64_t> computes = FindReads(rank, call, chain);
      for (size_t i = 1; i < chain.size(); ++i) {
        // Each kind may have a chain of its own, whose first gather nothing precedes.
        const bool first = std::none_of(
            chain.begin(), chain.begin() + static_cast<ptrdiff_t>(i),
            [&, &chain = chain](const Bucket& before) { return before.expert == chain[i].expert; });
        // Where one further on is read no later than the one before, this one has to be there by
        // then.
        const auto next = chain.begin() + static_cast<ptrdiff_t>(i) + 1;
        const bool overtaken =
            std::any_of(next, chain.end(), [&, &chain = chain](const Bucket& later) {
              return later.read >= 0 && later.read <= chain[i - 1].read;
            });
        if (!first && !overtaken) Try(rank, i, chain[i - 1], chain[i], computes);
      }
    }
  }

  void Tell(Report& report, CheckResult& result) const {
    size_t hidden = 0;
    for (const auto& [place, pair] : pairs_) hidden += pair.hides;
    if (pairs_.empty()) {
      if (!facts_.Deals(instance_)) return;
      report.NotAsked({"LW-38"},
                      "by the engine's layout no two buckets follow one another in a train_step "
                      "with compute of the first between them");
      return;
    }
    report.Judged({"LW-38"});
    result.notes.push_back("layer-wise overlap: " + std::to_string(hidden) + " of " +
                           std::to_string(pairs_.size()) +
                           " gathers can travel while the bucket before computes");
    for (const auto& [place, pair] : pairs_) {
      if (pair.hides) continue;
      report.Add("LW-38", pair.rank, pair.gather,
                 "no order between it and the compute of the bucket before",
                 "always after, or before, all of it: " + pair.path,
                 "the next bucket's gather never runs beside the modules of this one: launch it "
                 "before this bucket is "
                 "installed, and wait for it only where its parameters are read");
    }
  }

 private:
  struct Pair {
    bool hides = false;
    int32_t rank = -1;
    int64_t gather = -1;
    std::string path;
  };

  // Forward compute of the call's first microbatch that reads parameters; and which of it is the
  // first to read a bucket.
  std::vector<int64_t> FindReads(int32_t rank, int32_t call, std::vector<Bucket>& chain) const {
    const Trace& trace = facts_.a().trace(rank);
    std::vector<int64_t> computes;
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.kind != EventKind::kCompute || event.instance != instance_ || event.call != call)
        continue;
      if (event.phase != SPF_FWD || event.microbatch != 0) continue;
      const spf_uses& uses = facts_.Of(instance_).Node(event.id, rank).uses[SPF_FWD];
      for (int32_t k = 0; k < uses.n; ++k) {
        if (uses.use[k].table != SPF_IN_PARAM) continue;
        const auto index = static_cast<int64_t>(i);
        if (computes.empty() || computes.back() != index) computes.push_back(index);
        const int32_t key = facts_.Of(instance_).Param(rank, uses.use[k].id).key;
        for (Bucket& bucket : chain) {
          if (bucket.read < 0 && bucket.keys.contains(key)) bucket.read = index;
        }
      }
    }
    return computes;
  }

  // Between the first read of the bucket before and the first of this one.
  void Try(int32_t rank, size_t place, const Bucket& before, const Bucket& now,
           const std::vector<int64_t>& computes) {
    if (before.read < 0 || now.read <= before.read) return;
    Pair& pair = pairs_[place];
    for (const int64_t compute : computes) {
      if (pair.hides || compute < before.read || compute >= now.read) continue;
      pair.hides = order_.Unordered(rank, now.last, compute);
    }
    if (pair.hides || pair.rank >= 0) return;
    pair.rank = rank;
    pair.gather = now.first;
    const bool ahead = order_.Precedes(rank, now.last, before.read);
    pair.path = ahead ? order_.Path(rank, now.last, before.read)
                      : order_.Path(rank, before.read, now.first);
  }

  const Facts& facts_;
  const Ordering& order_;
  const int32_t instance_;
  std::map<size_t, Pair> pairs_;  // by position in the chain
};

}  // namespace

CheckResult CheckHidden(const Facts& facts) {
  CheckResult result;
  Report report(facts, result);
  bool asked = false;
  for (size_t i = 0; i < facts.a().n_instances(); ++i) {
    const auto instance = static_cast<int32_t>(i);
    asked |= facts.LayerWise(instance) && facts.spec(instance).overlap_param_gather;
  }
  if (!asked) return result;
  const Ordering order(facts.a());
  if (!order.usable()) {
    report.Cannot({"LW-38"}, order.why());
    return result;
  }
  for (size_t i = 0; i < facts.a().n_instances(); ++i) {
    const auto instance = static_cast<int32_t>(i);
    if (!facts.LayerWise(instance) || !facts.spec(instance).overlap_param_gather) continue;
    Hiding hiding(facts, order, instance);
    for (int32_t rank = 0; rank < facts.a().ranks(); ++rank) hiding.Collect(rank);
    hiding.Tell(report, result);
  }
  return result;
}

}  // namespace shardproof::layer_wise
