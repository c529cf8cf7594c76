// Happens-before under the schedule: what must be ordered is, and what should hide is not.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/carried.h"
#include "conformance/checks/schedule/expected.h"
#include "conformance/checks/schedule/ordering.h"
#include "conformance/checks/schedule/residency.h"
#include "conformance/checks/schedule/schedule.h"

namespace shardproof::schedule {

namespace {

class Hiding {
 public:
  Hiding(const Facts& facts, const Step& step, Ordering& ordering, CheckResult& result, FindingSink& sink)
      : facts_(facts),
        a_(facts.a()),
        step_(step),
        trace_(a_.traces()[size_t(step.rank)]),
        spec_(facts.spec(size_t(step.instance))),
        ordering_(ordering),
        result_(result),
        sink_(sink) {}

  void Run() {
    // To look at gradients before they are sent the host waits for compute: then nothing of this can be asked.
    if (step_.train && !spec_.check_for_nan) JudgePairs();
    JudgeCauses();
  }

  size_t hidden = 0, pairs = 0;

 private:
  void Add(const char* requirement, int64_t event, std::string expected, std::string seen, std::string message) {
    Finding finding = a_.At(requirement, step_.rank, event);
    finding.expected = std::move(expected);
    finding.seen = std::move(seen);
    finding.message = std::move(message);
    sink_.Add(std::move(finding));
  }
  std::vector<int64_t> EventsOf(const Token& token, EventKind kind) const {
    std::vector<int64_t> events;
    for (const int64_t index : token.events) {
      if (trace_.events[size_t(index)].kind == kind) events.push_back(index);
    }
    return events;
  }

  void JudgePairs() {
    for (size_t k = 1; k < step_.nodes.size(); ++k) {
      const auto f = static_cast<int32_t>(k), b = f - 1;
      const auto& backward = step_.nodes[k - 1]->layers();
      for (const Pair& pair : PairsOf(step_.nodes[k]->layers(), backward)) {
        if (pair.forward < 0 || pair.backward < 0) continue;
        const auto forward = [&](Part part) { return Key{part, Side::kForward, pair.forward, f}; };
        const auto back = [&](Part part, Side side = Side::kBackward) { return Key{part, side, pair.backward, b}; };
        JudgePair(back(Part::kCombine), forward(Part::kPreDispatch));
        JudgePair(forward(Part::kDispatch), back(Part::kMlp));
        if (!spec_.early_release) {  // else attention's backward, on the stream of compute, waits for the dispatch
          JudgePair(back(Part::kDispatch), forward(Part::kMlp));
          JudgePair(forward(Part::kCombine), back(Part::kPreDispatch));
        }
        if (!spec_.delay_wgrad) continue;
        JudgePair(back(Part::kDispatch), back(Part::kMlp, Side::kWeights));
        if (pair.backward != backward.front()) {
          JudgePair(forward(Part::kCombine), back(Part::kPreDispatch, Side::kWeights));
        }
      }
    }
    for (size_t k = 0; spec_.delay_wgrad && k < step_.nodes.size(); ++k) {
      for (const int32_t layer : step_.nodes[k]->layers()) JudgeWeights(static_cast<int32_t>(k), layer);
    }
  }

  // Some all-to-all of the one and some compute of the other can be in progress at the same time.
  void JudgePair(const Key& moves, const Key& computes) {
    const Token* communication = step_.Find(moves);
    const Token* compute = step_.Find(computes);
    if (communication == nullptr || compute == nullptr) return;
    const std::vector<int64_t> from = EventsOf(*communication, EventKind::kCollective);
    const std::vector<int64_t> beside = EventsOf(*compute, EventKind::kCompute);
    if (from.empty() || beside.empty()) return;
    Judge(result_, {"EP-33"});
    ++pairs;
    for (const int64_t one : from) {
      for (const int64_t other : beside) {
        if (!ordering_.Unordered(step_.rank, one, other)) continue;
        ++hidden;
        return;
      }
    }
    const bool before = ordering_.Precedes(step_.rank, from.front(), beside.front());
    const std::string path = before ? ordering_.Path(step_.rank, from.front(), beside.front())
                                    : ordering_.Path(step_.rank, beside.front(), from.front());
    Add("EP-33", communication->first(), Text(moves) + " beside " + Text(computes), "ordered: " + path,
        "the all-to-all of " + Text(moves) + " cannot hide behind " + Text(computes) + ": something orders them");
  }

  // A dispatch's backward does not wait for delayed weight gradients of its experts.
  void JudgeWeights(int32_t microbatch, int32_t layer) {
    const Token* weights = step_.Find({Part::kMlp, Side::kWeights, layer, microbatch});
    const Token* dispatch = step_.Find({Part::kDispatch, Side::kBackward, layer, microbatch});
    if (weights == nullptr || dispatch == nullptr) return;
    Judge(result_, {"EP-06"});
    for (const int64_t one : weights->events) {
      if (!ordering_.Precedes(step_.rank, one, dispatch->first())) continue;
      Add("EP-06", dispatch->first(), Text(dispatch->key) + " free of " + Text(weights->key),
          "ordered: " + ordering_.Path(step_.rank, one, dispatch->first()),
          "delayed weight gradients got into the chain of their microbatch: the dispatch waits for them");
      return;
    }
  }

  // What an all-to-all sends is written before it starts, and what it brings is read after it.
  void JudgeCauses() {
    std::map<std::tuple<int, int32_t, int32_t>, std::vector<int64_t>> writes, reads;  // (table, value, microbatch)
    for (const Token& token : step_.tokens) {
      for (const int64_t index : EventsOf(token, EventKind::kCompute)) {
        const Event& event = trace_.events[size_t(index)];
        const spf_uses& uses = a_.Facts(event.instance).Node(event.id, step_.rank).uses[event.phase];
        for (int32_t u = 0; u < uses.n; ++u) {
          const std::tuple<int, int32_t, int32_t> value{uses.use[u].table, uses.use[u].id, event.microbatch};
          if ((uses.use[u].access & SPF_READ) != 0) reads[value].push_back(index);
          if ((uses.use[u].access & SPF_WRITE) != 0) writes[value].push_back(index);
        }
      }
    }
    for (const Exchange& exchange : facts_.exchanges()[size_t(step_.rank)]) {
      if (exchange.instance != step_.instance || exchange.call != step_.call || exchange.node < 0 || exchange.again) continue;
      const spf_node& node = a_.Facts(size_t(step_.instance)).Node(exchange.node, step_.rank);
      const spf_uses& uses = node.uses[exchange.backward ? SPF_BWD : SPF_FWD];
      for (int32_t u = 0; u < uses.n; ++u) {
        const std::tuple<int, int32_t, int32_t> value{uses.use[u].table, uses.use[u].id, exchange.microbatch};
        const bool sent = uses.use[u].access == SPF_READ;
        for (const int64_t other : (sent ? writes : reads)[value]) JudgeCause(exchange.event, other, sent);
      }
    }
  }
  void JudgeCause(int64_t exchange, int64_t other, bool sent) {
    Judge(result_, {"EP-06"});
    const bool ordered = sent ? ordering_.Precedes(step_.rank, other, exchange) : ordering_.Precedes(step_.rank, exchange, other);
    if (ordered) return;
    Add("EP-06", sent ? exchange : other,
        "after " + a_.Describe(step_.rank, sent ? other : exchange), "nothing orders the two",
        sent ? "an all-to-all can start before what it sends is computed" : "compute can start before its rows arrived");
  }

  const Facts& facts_;
  const Analysis& a_;
  const Step& step_;
  const Trace& trace_;
  const InstanceSpec& spec_;
  Ordering& ordering_;
  CheckResult& result_;
  FindingSink& sink_;
};

// Memory of gathered parameters and of gradients: nobody touches it before all who use it are through.
class Buffers {
 public:
  Buffers(const Facts& facts, int32_t rank, Ordering& ordering, CheckResult& result, FindingSink& sink)
      : facts_(facts),
        a_(facts.a()),
        rank_(rank),
        trace_(a_.traces()[size_t(rank)]),
        ordering_(ordering),
        result_(result),
        sink_(sink) {}

  void Run() {
    for (const Resident& resident : FindResidents(a_, rank_)) {
      if (!facts_.Overlaps(size_t(resident.instance)) || resident.release < 0) continue;
      Judge(result_, {"EP-10", "EP-12"});
      JudgeOrder("EP-10", resident.last_gather, resident.release, Text(a_, resident) + " are released while their gather is in flight");
      std::map<int32_t, int64_t> last;  // by stream
      for (const int64_t read : resident.reads) last[trace_.events[size_t(read)].stream] = read;
      for (const auto& [stream, read] : last) {
        JudgeOrder("EP-12", read, resident.release, "memory of " + Text(a_, resident) + " is given back before a stream has read it");
      }
    }
    std::map<int32_t, std::vector<int64_t>> touched;  // alloc -> events
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (event.kind == EventKind::kFree) touched[event.alloc].push_back(static_cast<int64_t>(i));
      for (uint32_t r = event.ranges.begin; r < event.ranges.end; ++r) {
        touched[trace_.ranges[r].alloc].push_back(static_cast<int64_t>(i));
      }
    }
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      const bool reduces = event.kind == EventKind::kCollective && IsReduction(event.collective) && event.group >= 0 &&
                           trace_.groups[size_t(event.group)].world_ranks.size() > 1;
      if (!reduces || !facts_.Overlaps(event.instance)) continue;
      Judge(result_, {"EP-19", "EP-24"});
      for (const Range* range : {SendRange(trace_, event), RecvRange(trace_, event)}) {
        if (range != nullptr) JudgeAround(static_cast<int64_t>(i), *range, touched[range->alloc]);
      }
    }
    JudgeValues(touched);
  }

 private:
  void JudgeOrder(const char* requirement, int64_t first, int64_t second, const std::string& message) {
    if (first == second || ordering_.Precedes(rank_, first, second)) return;
    Finding finding = a_.At(requirement, rank_, second);
    finding.expected = "after " + a_.Describe(rank_, first);
    finding.seen = "nothing orders the two";
    finding.message = message;
    sink_.Add(std::move(finding));
  }
  // Memory of values goes back after every stream that uses them.
  void JudgeValues(const std::map<int32_t, std::vector<int64_t>>& touched) {
    std::set<int32_t> values;  // allocations
    for (const Event& event : trace_.events) {
      if (event.kind != EventKind::kCompute || !facts_.Overlaps(event.instance)) continue;
      const spf_uses& uses = a_.Facts(event.instance).Node(event.id, rank_).uses[event.phase];
      if (static_cast<uint32_t>(uses.n) != event.ranges.size()) continue;
      for (int32_t u = 0; u < uses.n; ++u) {
        const bool value = uses.use[u].table == SPF_IN_ACT || uses.use[u].table == SPF_IN_DACT;
        if (value) values.insert(trace_.ranges[event.ranges.begin + size_t(u)].alloc);
      }
    }
    for (const auto& [alloc, events] : touched) {
      if (values.count(alloc) == 0) continue;
      std::map<int32_t, int64_t> last;  // by stream
      for (const int64_t index : events) {
        const Event& event = trace_.events[size_t(index)];
        if (event.kind != EventKind::kFree) last[event.stream] = index;
        for (const auto& [stream, use] : last) {
          if (event.kind != EventKind::kFree || stream == event.stream) continue;
          JudgeOrder("EP-07", use, index, "memory of a value is given back while a stream still uses it");
        }
      }
    }
  }
  bool Writes(const Event& event, const Range& range) const {
    if (event.kind == EventKind::kFree) return true;
    for (uint32_t r = event.ranges.begin; r < event.ranges.end; ++r) {
      const Range& other = trace_.ranges[r];
      const bool meets = other.alloc == range.alloc && other.offset < range.offset + range.length &&
                         range.offset < other.offset + other.length;
      if (meets && (other.access & kWrite) != 0) return true;
    }
    return false;
  }
  // What clears the gradient's memory, the first and the last compute that add to it; after the reduction the first that
  // writes or frees its memory.
  void JudgeAround(int64_t reduction, const Range& range, const std::vector<int64_t>& touched) {
    int64_t clears = -1, first = -1, before = -1, after = -1;
    for (const int64_t index : touched) {
      const Event& event = trace_.events[size_t(index)];
      if (index == reduction || !Writes(event, range)) continue;
      if (index < reduction && event.kind == EventKind::kCompute) before = index;
      if (first < 0 && before >= 0) first = before;
      if (first < 0 && event.kind == EventKind::kLaunch) clears = index;
      if (index > reduction && after < 0) after = index;
    }
    if (clears >= 0 && first >= 0) {
      JudgeOrder("EP-24", clears, first, "a gradient is added to memory that may not be cleared yet");
    }
    if (before >= 0) JudgeOrder("EP-19", before, reduction, "a reduction can start before the gradient is complete");
    if (after >= 0) JudgeOrder("EP-24", reduction, after, "memory of a gradient is reused or freed while it is reduced");
  }

  const Facts& facts_;
  const Analysis& a_;
  const int32_t rank_;
  const Trace& trace_;
  Ordering& ordering_;
  CheckResult& result_;
  FindingSink& sink_;
};

}  // namespace

CheckResult CheckHiding(const Facts& facts) {
  CheckResult result;
  Ordering ordering(facts.a());
  if (!ordering.usable()) {
    CannotJudge(result, {"EP-06", "EP-12", "EP-24", "EP-33"}, ordering.why());
    return result;
  }
  FindingSink sink(result);
  size_t hidden = 0, pairs = 0;
  for (const Step& step : facts.steps()) {
    if (!facts.Overlaps(size_t(step.instance)) || step.end < 0) continue;
    Hiding hiding(facts, step, ordering, result, sink);
    hiding.Run();
    hidden += hiding.hidden;
    pairs += hiding.pairs;
  }
  if (pairs > 0) {
    result.notes.push_back("schedule: " + std::to_string(hidden) + " of " + std::to_string(pairs) +
                           " pairs of all-to-all and compute can run side by side");
  }
  if (!facts.a().has_flow()) {
    CannotJudge(result, {"EP-12", "EP-24"}, facts.a().flow_why());
    return result;
  }
  for (int32_t rank = 0; rank < facts.a().ranks(); ++rank) Buffers(facts, rank, ordering, result, sink).Run();
  return result;
}

}  // namespace shardproof::schedule
