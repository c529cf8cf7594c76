// Which collectives were issued on each communicator, in which order.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/base/analysis.h"
#include "conformance/checks/base/facts.h"
#include "conformance/checks/metamorphic/metamorphic.h"
#include "conformance/checks/program/collective_kinds.h"
#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"
#include "conformance/trace/names.h"

namespace shardproof {

namespace {

struct Issued {
  int64_t event = -1;
  std::string key;  // what must be the same in both runs
};

// Whatever its stream, its bytes and what they are for.
std::string KeyOf(const Trace& trace, const Event& event, const GroupInfo& group) {
  std::string key;
  for (const int64_t number : {int64_t{event.collective}, int64_t{event.dtype},
                               int64_t{event.reduction}, event.count, int64_t{event.peer}})
    key += std::to_string(number) + " ";
  key += ListText(group.world_ranks);
  for (const Slice& counts : {event.send_counts, event.recv_counts}) {
    key += "|";
    for (uint32_t i = counts.begin; i < counts.end; ++i)
      key += std::to_string(trace.numbers[i]) + " ";
  }
  return key;
}

std::map<std::string, std::vector<Issued>> Sequences(const Trace& trace, const CommLabel& label) {
  std::map<std::string, std::vector<Issued>> sequences;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != EventKind::kCollective || event.group < 0) continue;
    const GroupInfo& group = At(trace.groups, event.group);
    sequences[label ? label(group) : group.comm].push_back(
        {static_cast<int64_t>(i), KeyOf(trace, event, group)});
  }
  return sequences;
}

std::string CountsText(const Trace& trace, const Slice& counts, const char* name) {
  std::string text;
  for (uint32_t i = counts.begin; i < counts.end; ++i)
    text += (text.empty() ? "" : ", ") + std::to_string(trace.numbers[i]);
  return text.empty() ? "" : std::string(", ") + name + " [" + text + "]";
}

// "all_gather_v of full parameters on dp_cp (stream ag), f32 x 768, receives [768, 16]"
std::string Text(const Trace& trace, int64_t index, const graph::Names& names) {
  const Event& event = At(trace.events, index);
  std::string text = graph::Describe(trace, event, names);
  if (IsDtype(event.dtype))
    text += ", " + DtypeName(event.dtype) + " x " + std::to_string(event.count);
  const bool reduces = event.collective == SPF_REDUCE_SCATTER ||
                       event.collective == SPF_ALL_REDUCE || event.collective == graph::kReduce;
  if (reduces && event.reduction < trace_names::kReductions.size())
    text += ", " + std::string(trace_names::kReductions[event.reduction]);
  const bool message = event.collective == SPF_SEND || event.collective == SPF_RECV;
  if (event.peer >= 0) text += (message ? ", peer " : ", root ") + std::to_string(event.peer);
  text += CountsText(trace, event.send_counts, "sends");
  text += CountsText(trace, event.recv_counts, "receives");
  const GroupInfo& group = At(trace.groups, event.group);
  return text + ", over ranks " + ListText(group.world_ranks);
}

// What modules are called, once somebody asks.
class NamesOf {
 public:
  explicit NamesOf(const Run& run) : run_(run) {}
  const graph::Names& Get() {
    if (!analysis_) analysis_.emplace(run_);
    const graph::Program* program = analysis_->lowered().program();
    return program == nullptr ? none_ : program->names;
  }

 private:
  const Run& run_;
  std::optional<Analysis> analysis_;
  const graph::Names none_;
};

// The first difference of two sequences of one communicator, if there is one.
class FirstDifference {
 public:
  FirstDifference(const Run& a, const Run& b, bool twins)
      : a_(a), b_(b), names_a_(a), names_b_(b), twins_(twins) {}

  std::optional<Finding> Find(size_t rank, const std::vector<Issued>& left,
                              const std::vector<Issued>& right) {
    for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
      const bool in_a = i < left.size(), in_b = i < right.size();
      if (in_a && in_b && left[i].key == right[i].key) continue;
      return FindingOf(rank, i, in_a ? left[i].event : -1, in_b ? right[i].event : -1);
    }
    return std::nullopt;
  }

 private:
  // event -1: there is none more.
  Finding FindingOf(size_t rank, size_t place, int64_t event_a, int64_t event_b) {
    const Trace &a = a_.traces[rank], &b = b_.traces[rank];
    const bool in_a = event_a >= 0;
    const Trace& shown = in_a ? a : b;
    const Event& event = At(shown.events, in_a ? event_a : event_b);
    Finding finding;
    finding.rank = static_cast<int>(rank);
    finding.event = event_a;
    finding.operation = graph::Describe(shown, event, in_a ? names_a_.Get() : names_b_.Get());
    finding.expected = in_a ? Text(a, event_a, names_a_.Get()) : "nothing more";
    finding.seen = event_b >= 0 ? Text(b, event_b, names_b_.Get()) : "nothing more";
    finding.message = "two runs that must agree issue different collectives: number " +
                      std::to_string(place + 1) + " of those on " +
                      Group(At(shown.groups, event.group)) + " is the first that differs";
    return finding;
  }

  // Twins count as the group that they copy.
  std::string Group(const GroupInfo& group) const {
    return twins_ ? "ranks " + ListText(group.world_ranks) + ", group and twin together,"
                  : group.name;
  }

  const Run& a_;
  const Run& b_;
  NamesOf names_a_, names_b_;
  const bool twins_;  // count as the group that they copy
};

}  // namespace

std::string TwinAsReducingGroup(const GroupInfo& group) {
  return "instance " + std::to_string(group.instance) + " over " + ListText(group.world_ranks) +
         (group.name.find("expt") != std::string::npos ? " (expert)" : "");
}

CheckResult CompareCollectiveSequences(const Run& a, const Run& b, const std::string& requirement,
                                       const CommLabel& label) {
  CheckResult result;
  if (a.traces.size() != b.traces.size()) {
    result.not_checkable.push_back({requirement, "the runs have different numbers of ranks"});
    return result;
  }
  FindingSink sink(result);
  FirstDifference difference(a, b, static_cast<bool>(label));
  for (size_t rank = 0; rank < a.traces.size(); ++rank) {
    const auto of_a = Sequences(a.traces[rank], label), of_b = Sequences(b.traces[rank], label);
    result.judged.insert(requirement);
    std::map<std::string, int> labels;
    for (const auto& [name, sequence] : of_a) labels[name];
    for (const auto& [name, sequence] : of_b) labels[name];
    for (const auto& [name, unused] : labels) {
      const auto x = of_a.find(name), y = of_b.find(name);
      const std::vector<Issued> none;
      auto finding = difference.Find(rank, x == of_a.end() ? none : x->second,
                                     y == of_b.end() ? none : y->second);
      if (!finding) continue;
      finding->requirement = requirement;
      sink.Add(std::move(*finding));
    }
  }
  return result;
}

}  // namespace shardproof
