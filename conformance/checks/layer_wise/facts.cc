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

namespace {

// Elements that each member contributes.
std::vector<int64_t> SlotsOf(const Trace& trace, const Event& event, size_t members) {
  std::vector<int64_t> slots(members, event.count);
  for (size_t m = 0; m < members; ++m) {
    const bool counted = m < event.recv_counts.size();
    if (event.collective == SPF_ALL_GATHER_V)
      slots[m] = counted ? trace.numbers[event.recv_counts.begin + m] : 0;
    if (event.collective == SPF_BROADCAST && static_cast<int32_t>(m) != event.peer) slots[m] = 0;
  }
  return slots;
}

bool Within(const Range& inner, const Range& outer) {
  return inner.alloc == outer.alloc && inner.offset >= outer.offset &&
         inner.offset + inner.length <= outer.offset + outer.length;
}

// Which parameters are in what arrived, slot by slot.
std::vector<Share> SharesOf(const Gather& gather, const std::vector<Chunk>& arrived,
                            int64_t width) {
  std::vector<Share> shares;
  int64_t begin = 0;
  for (size_t m = 0; m < gather.slots.size(); ++m) {
    const int64_t end = begin + gather.slots[m] * width;
    for (const Chunk& chunk : arrived) {
      const int64_t from = std::max(begin, chunk.offset),
                    to = std::min(end, chunk.offset + chunk.length);
      if (from >= to) continue;
      const Content content = chunk.content.At(from - chunk.offset);
      shares.push_back({content.param, content.element,
                        (to - from) / std::max<int64_t>(1, content.width),
                        gather.group->world_ranks[m], content.tag, gather.to.offset + from,
                        gather.to.offset + to});
    }
    begin = end;
  }
  return shares;
}

}  // namespace

void Facts::AddGather(const Trace& trace, int64_t index, RankFacts& of) {
  const Event& event = trace.events[size_t(index)];
  const Range* recv = RecvRange(trace, event);
  if (recv == nullptr) return;
  const Range* send = SendRange(trace, event);
  Gather gather;
  gather.event = index;
  gather.instance = event.instance;
  gather.call = event.call;
  gather.epoch = EpochOf(of, event, index);
  gather.group = &trace.groups[size_t(event.group)];
  gather.to = *recv;
  gather.in_place = send != nullptr && send != recv && Within(*send, *recv);
  gather.slots = SlotsOf(trace, event, gather.group->world_ranks.size());
  const std::vector<Chunk>& after =
      a_.flow().At(trace.rank, index).after[RangeIndex(trace, event, recv)];
  gather.shares =
      SharesOf(gather, Only(after, Kind::kParam), static_cast<int64_t>(DtypeBytes(event.dtype)));
  if (gather.shares.empty()) return;
  gather.expert = Of(event.instance).ByKey(gather.shares[0].key).expert;
  of.gathers.push_back(std::move(gather));
}

void Facts::AddUpdates(const Trace& trace, int64_t index, RankFacts& of) {
  const Event& event = trace.events[size_t(index)];
  const EventFlow& flow = a_.flow().At(trace.rank, index);
  if (!flow.ran || (event.id != SPF_K_ADAMW && event.id != SPF_K_AXPBY && event.id != SPF_K_CUSTOM))
    return;
  const bool of_gradient =
      std::any_of(flow.before.begin(), flow.before.end(),
                  [](const auto& chunks) { return !Only(chunks, Kind::kGrad).empty(); });
  for (size_t k = 0; k < flow.after.size(); ++k) {
    const Range& range = trace.ranges[event.ranges.begin + k];
    if (range.access != (kRead | kWrite) || Only(flow.before[k], Kind::kParam).empty()) continue;
    for (const Chunk& chunk : Only(flow.after[k], Kind::kParam)) {
      of.updates.push_back({index, event.instance, event.call, chunk.content.param,
                            chunk.length / std::max<int64_t>(1, chunk.content.width), event.id,
                            of_gradient});
    }
  }
}

int64_t AlignmentShown(const RankFacts& of, int32_t instance, int64_t most) {
  auto bits = static_cast<uint64_t>(most);
  for (const Gather& gather : of.gathers) {
    if (gather.instance != instance || gather.group->world_ranks.size() < 2) continue;
    for (const int64_t slot : gather.slots) bits |= static_cast<uint64_t>(slot);
  }
  return static_cast<int64_t>(bits & -bits);
}

}  // namespace shardproof::layer_wise
