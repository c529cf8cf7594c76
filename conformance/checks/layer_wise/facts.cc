#include "conformance/checks/layer_wise/facts.h"

#include <algorithm>
#include <cstring>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/published.h"
#include "conformance/common/dtype.h"

namespace shardproof::layer_wise {

using Kind = Content::Kind;

namespace {

bool StepsUpdate(const InstanceSpec& of) {
  return of.skip_norm <= 0 && of.script.find('t') != std::string::npos;
}

// Does an engine come to one of these calls after a train step?
bool CallsAfterAStep(const std::string& script, const char* calls) {
  bool stepped = false;
  for (const char letter : script) {
    if (stepped && std::strchr(calls, letter) != nullptr) return true;
    stepped = letter != 'r' && (stepped || letter == 't');
  }
  return false;
}

}  // namespace

bool Brings(uint8_t collective) {
  return collective == SPF_ALL_GATHER || collective == SPF_ALL_GATHER_V ||
         collective == SPF_BROADCAST;
}

Facts::Facts(const Analysis& a) : a_(a), values_(a), ranks_(size_t(a.ranks())) {
  for (const Trace& trace : a.traces()) CollectPublished(trace);
  for (const Trace& trace : a.traces()) CollectRank(trace);
}

char Facts::Letter(int32_t instance, int32_t call) const {
  const auto& calls = Of(instance).calls();
  return call >= 0 && size_t(call) < calls.size() ? calls[size_t(call)].letter : '?';
}

std::string Facts::ModuleOf(int32_t instance, int32_t rank, int32_t key) const {
  return Of(instance).ModuleName(Of(instance).ByKey(key).module, rank);
}

const std::vector<int32_t>* Facts::List(int32_t instance, int32_t rank, int32_t key) const {
  return Of(instance).FullList(Of(instance).ByKey(key).expert, rank);
}

bool Facts::Deals(int32_t instance) const {
  for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
    if (!Of(instance).InGrid(rank)) continue;
    for (int32_t id = 0; id < Of(instance).n_params(rank); ++id) {
      const ParamFacts& param = Of(instance).Param(rank, id);
      const std::vector<int32_t>* list = List(instance, rank, param.key);
      if (!param.frozen && param.numel > 0 && list != nullptr && list->size() > 1) return true;
    }
  }
  return false;
}

bool Facts::Deals() const {
  for (size_t i = 0; i < a_.n_instances(); ++i) {
    const auto instance = static_cast<int32_t>(i);
    if (LayerWise(instance) && Deals(instance)) return true;
  }
  return false;
}

bool Facts::Updates() const {
  for (size_t i = 0; i < a_.n_instances(); ++i) {
    if (LayerWise(static_cast<int32_t>(i)) && StepsUpdate(spec(static_cast<int32_t>(i))))
      return true;
  }
  return false;
}

bool Facts::Gathers(bool in_train_step) const {
  for (size_t i = 0; i < a_.n_instances(); ++i) {
    const auto instance = static_cast<int32_t>(i);
    const InstanceSpec& of = spec(instance);
    if (!LayerWise(instance) || !StepsUpdate(of)) continue;
    if (!of.overlap_param_gather || CallsAfterAStep(of.script, in_train_step ? "t" : "te"))
      return true;
  }
  return false;
}

void Facts::CollectPublished(const Trace& trace) {
  for (const Event& event : trace.events) {
    if (!LayerWise(event.instance)) continue;
    const int32_t version = VersionMade(Of(event.instance), event);
    if (version < 0) continue;
    const int32_t key = Of(event.instance).Param(trace.rank, event.id).key;
    versions_[{event.instance, key}].insert(version);
    if (event.kind != EventKind::kPublish) continue;
    const std::vector<int32_t>* list = List(event.instance, trace.rank, key);
    if (list == nullptr) continue;
    published_[{event.instance, key, list->front()}][event.call][trace.rank] += event.count;
  }
}

const std::map<int32_t, int64_t>& Facts::Publishers(int32_t instance, int32_t rank, int32_t key,
                                                    int32_t call) const {
  static const std::map<int32_t, int64_t> none;
  const std::vector<int32_t>* list = List(instance, rank, key);
  if (list == nullptr) return none;
  const auto at = published_.find({instance, key, list->front()});
  if (at == published_.end()) return none;
  const auto of_call = at->second.find(call);
  return of_call == at->second.end() ? none : of_call->second;
}

int32_t Facts::Owner(int32_t instance, int32_t rank, int32_t key) const {
  const std::vector<int32_t>* list = List(instance, rank, key);
  if (list == nullptr || Of(instance).ByKey(key).frozen) return -1;
  if (list->size() == 1) return rank;
  const auto at = published_.find({instance, key, list->front()});
  if (at == published_.end()) return -1;
  for (const auto& [call, ranks] : at->second) {
    if (ranks.size() == 1) return ranks.begin()->first;
  }
  return -1;
}

int32_t Facts::VersionBefore(int32_t instance, int32_t key, int32_t call) const {
  const auto at = versions_.find({instance, key});
  if (at == versions_.end()) return -1;
  const auto next = at->second.lower_bound(call);
  return next == at->second.begin() ? -1 : *std::prev(next);
}

bool Facts::Publishes(int32_t instance, int32_t key, int32_t call) const {
  if (Letter(instance, call) == 'c' && InitsLater(spec(instance))) return false;
  const auto at = versions_.find({instance, key});
  return at != versions_.end() && at->second.contains(call);
}

void Facts::CollectRank(const Trace& trace) {
  RankFacts& of = ranks_[size_t(trace.rank)];
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != EventKind::kCompute || event.phase == SPF_FWD) continue;
    const auto index = static_cast<int64_t>(i);
    of.backward.try_emplace({event.instance, event.call}, index, index).first->second.second =
        index;
  }
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (!LayerWise(event.instance)) continue;
    if (event.kind == EventKind::kCollective) AddCollective(trace, static_cast<int64_t>(i), of);
    if (event.kind == EventKind::kLaunch) AddUpdates(trace, static_cast<int64_t>(i), of);
  }
  SetRounds(trace, of);
}

namespace {

// Which parameters share a bucket: those that a rank reduces together.
class ReducedTogether {
 public:
  explicit ReducedTogether(const std::vector<Reduction>& reductions) {
    for (const Reduction& reduction : reductions) {
      for (const Chunk& chunk : reduction.grads) {
        with_[{reduction.instance, chunk.content.param}].insert(reduction.grads[0].content.param);
      }
    }
  }
  bool Knows(const Gather& gather) const {
    return with_.contains({gather.instance, gather.shares[0].key});
  }
  bool operator()(int32_t instance, int32_t one, int32_t other) const {
    const auto a = with_.find({instance, one}), b = with_.find({instance, other});
    if (a == with_.end() || b == with_.end()) return false;
    return std::any_of(a->second.begin(), a->second.end(),
                       [&](int32_t key) { return b->second.contains(key); });
  }

 private:
  std::map<std::pair<int32_t, int32_t>, std::set<int32_t>>
      with_;  // -> first parameters of its reductions
};

// The group operation that each collective is in: the event that begins it.
std::map<int64_t, int64_t> GroupOperations(const Trace& trace) {
  std::map<int64_t, int64_t> of;
  int64_t open = -1;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind == EventKind::kGroupBegin) open = static_cast<int64_t>(i);
    if (event.kind == EventKind::kGroupEnd) open = -1;
    if (open >= 0 && event.kind == EventKind::kCollective) of[static_cast<int64_t>(i)] = open;
  }
  return of;
}

}  // namespace

// Broadcasts are of one bucket if one group operation has them, or if what they bring is reduced
// together. One that is in no group operation, and of what is never reduced as far as the trace
// tells, is counted with its neighbour.
void Facts::SetRounds(const Trace& trace, RankFacts& of) const {
  const ReducedTogether together(of.reductions);
  const std::map<int64_t, int64_t> operations = GroupOperations(trace);
  const auto operation = [&](const Gather& gather) {
    const auto at = operations.find(gather.event);
    return at == operations.end() ? -1 : at->second;
  };
  const auto kind = [&](const Gather& gather) {
    return trace.events[size_t(gather.event)].collective;
  };
  const auto same = [&](const Gather& x, const Gather& y) {
    if (kind(x) != SPF_BROADCAST || kind(y) != SPF_BROADCAST || x.group != y.group) return false;
    if (x.instance != y.instance || x.call != y.call || x.epoch != y.epoch) return false;
    if (operation(x) >= 0 || operation(y) >= 0) {
      if (operation(x) == operation(y)) return true;
    } else if (!together.Knows(x) || !together.Knows(y)) {
      return true;
    }
    return together(x.instance, x.shares[0].key, y.shares[0].key);
  };
  int32_t rounds = 0;
  for (size_t i = 0; i < of.gathers.size(); ++i) {
    Gather& gather = of.gathers[i];
    for (size_t k = kind(gather) == SPF_BROADCAST ? i : 0; k-- > 0 && gather.round < 0;) {
      if (same(gather, of.gathers[k])) gather.round = of.gathers[k].round;
    }
    if (gather.round < 0) gather.round = rounds++;
  }
}

// What a train_step does after its last gradient belongs to what it made; all else to the
// train_step or load before.
int32_t Facts::EpochOf(const RankFacts& of, const Event& event, int64_t index) const {
  const char letter = Letter(event.instance, event.call);
  const auto backward = of.backward.find({event.instance, event.call});
  const bool after =
      letter == 't' && backward != of.backward.end() && index > backward->second.second;
  if (letter == 'l' || after) return event.call;
  for (int32_t call = event.call - 1; call >= 0; --call) {
    const char before = Letter(event.instance, call);
    if (before == 't' || before == 'l') return call;
    if (before == 'c') return -1;
  }
  return -1;
}

void Facts::AddCollective(const Trace& trace, int64_t index, RankFacts& of) {
  const Event& event = trace.events[size_t(index)];
  if (event.group < 0 || !a_.flow().At(trace.rank, index).ran) return;
  if (IsReduction(event.collective)) {
    AddReduction(trace, index, of);
  } else if (Brings(event.collective)) {
    AddGather(trace, index, of);
  }
}

void Facts::AddReduction(const Trace& trace, int64_t index, RankFacts& of) {
  const Event& event = trace.events[size_t(index)];
  const Range* send = SendRange(trace, event);
  if (send == nullptr) return;
  const std::vector<Chunk>& sent =
      a_.flow().At(trace.rank, index).before[RangeIndex(trace, event, send)];
  Reduction reduction{index, event.instance, event.call, &trace.groups[size_t(event.group)], {}};
  reduction.grads = Only(sent, Kind::kGrad);
  if (SumsParts(a_, trace.rank, event, reduction.grads)) return;
  if (!reduction.grads.empty()) of.reductions.push_back(std::move(reduction));
}

}  // namespace shardproof::layer_wise
