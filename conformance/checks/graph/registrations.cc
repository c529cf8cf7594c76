#include "conformance/checks/graph/registrations.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "conformance/checks/graph/finding_at.h"
#include "conformance/checks/graph/most_first.h"
#include "conformance/checks/graph/requirement_ids.h"
#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"

namespace shardproof::graph {

namespace {

constexpr size_t kFindingsMax = 20;
constexpr int64_t kOpen = std::numeric_limits<int64_t>::max();

void Add(Finding finding, CheckResult& result) {
  if (result.findings.size() < kFindingsMax) result.findings.push_back(std::move(finding));
}

}  // namespace

Registrations::Registrations(const Program& program, const Trace& trace) : trace_(trace) {
  std::unordered_map<std::string, size_t> communicators;
  for (size_t i = 0; i < program.communicators.size(); ++i)
    communicators.emplace(program.communicators[i].comm, i);
  groups_of_.resize(program.communicators.size());
  for (size_t group = 0; group < trace.groups.size(); ++group) {
    groups_of_[communicators.at(trace.groups[group].comm)].push_back(static_cast<int32_t>(group));
  }
  for (const Event& event : trace.events) {
    switch (event.kind) {
      case EventKind::kAlloc:
        blocks_[event.alloc] = {event.count, false, {}};
        break;
      case EventKind::kFree:
      case EventKind::kRelease:
        Free(event);
        break;
      case EventKind::kGroupRegister:
        Register(event);
        break;
      case EventKind::kGroupDeregister:
        Deregister(event);
        break;
      case EventKind::kGroupDestroy:
        Destroy(event);
        break;
      default:
        break;
    }
    ++event_;
  }
}

const std::string& Registrations::Name(int32_t group) const {
  return At(trace_.groups, group).name;
}

void Registrations::Add(std::string expected, std::string seen) {
  misuses_.push_back({event_, std::move(expected), std::move(seen)});
}

void Registrations::Register(const Event& event) {
  if (event.alloc < 0) return Add("a block", "a registration without one");
  Block& block = blocks_[event.alloc];
  const std::string name = "block " + std::to_string(event.alloc);
  if (block.bytes < 0) {
    Add("a live block",
        name + (block.freed ? ", which was freed before" : ", which was never allocated"));
  } else if (block.bytes != event.count) {
    Add("the whole of " + name + ", " + std::to_string(block.bytes) + " bytes",
        std::to_string(event.count) + " bytes");
  }
  if (std::find(block.groups.begin(), block.groups.end(), event.group) != block.groups.end()) {
    return Add("one registration of " + name + " with " + Name(event.group),
               "a second one before the first was ended");
  }
  block.groups.push_back(event.group);
  intervals_[Key(event.group, event.alloc)].push_back({event_, kOpen});
}

bool Registrations::End(Block& block, int32_t group, int32_t alloc) {
  const auto at = std::find(block.groups.begin(), block.groups.end(), group);
  if (at == block.groups.end()) return false;
  block.groups.erase(at);
  intervals_[Key(group, alloc)].back().end = event_;
  return true;
}

void Registrations::Deregister(const Event& event) {
  if (event.alloc >= 0 && End(blocks_[event.alloc], event.group, event.alloc)) return;
  Add("a block that is registered with " + Name(event.group),
      "block " + std::to_string(event.alloc) + ", which is not");
}

void Registrations::Free(const Event& event) {
  Block& block = blocks_[event.alloc];
  while (!block.groups.empty()) {
    const int32_t group = block.groups.front();
    Add("block " + std::to_string(event.alloc) + " deregistered from " + Name(group) +
            " before it is freed",
        "a registration that is still there");
    End(block, group, event.alloc);
  }
  block.bytes = -1;
  block.freed = true;
}

void Registrations::Destroy(const Event& event) {
  const auto last = intervals_.lower_bound(Key(event.group + 1, 0));
  for (auto at = intervals_.lower_bound(Key(event.group, 0)); at != last; ++at) {
    const auto alloc = static_cast<int32_t>(at->first & 0xffffffffu);
    if (!End(blocks_[alloc], event.group, alloc)) continue;
    Add("block " + std::to_string(alloc) + " deregistered from " + Name(event.group) +
            " before the group is destroyed",
        "a registration that is still there");
  }
}

const Registrations::Interval* Registrations::LastBefore(int32_t group, int32_t alloc,
                                                         int64_t event) const {
  const auto found = intervals_.find(Key(group, alloc));
  if (found == intervals_.end()) return nullptr;
  const auto after =
      std::lower_bound(found->second.begin(), found->second.end(), event,
                       [](const Interval& interval, int64_t at) { return interval.begin < at; });
  return after == found->second.begin() ? nullptr : &*(after - 1);
}

bool Registrations::Has(int32_t communicator, int32_t alloc, int64_t event) const {
  for (const int32_t group : At(groups_of_, communicator)) {
    const Interval* last = LastBefore(group, alloc, event);
    if (last != nullptr && event < last->end) return true;
  }
  return false;
}

std::string Registrations::WhyNot(int32_t communicator, int32_t alloc, int64_t event) const {
  for (const int32_t group : At(groups_of_, communicator)) {
    const Interval* last = LastBefore(group, alloc, event);
    if (last != nullptr) return " (deregistered at event " + std::to_string(last->end) + ")";
    const auto found = intervals_.find(Key(group, alloc));
    if (found == intervals_.end()) continue;
    return " (registered only at event " + std::to_string(found->second.front().begin) + ")";
  }
  for (size_t other = 0; other < groups_of_.size(); ++other) {
    if (!Has(static_cast<int32_t>(other), alloc, event)) continue;
    return " (but with " + Name(groups_of_[other].front()) + ")";
  }
  return "";
}

bool JudgeRegistrationSizes(const Program& program, CheckResult& result) {
  bool alike = true;
  for (const Sequence& sequence : program.sequences) {
    if (sequence.kind != Sequence::Kind::kRegisters) continue;
    result.judged.insert(kRegisteredAlike);
    size_t common = sequence.length;
    for (const auto& list : sequence.parts) common = std::min(common, list.size());
    for (size_t i = 0; i < common; ++i) {
      std::vector<const Part*> parts;
      for (const auto& list : sequence.parts) parts.push_back(&program.parts[list[i]]);
      const auto by_size =
          MostFirst(parts, [&](const Part& part) { return program.event(part).count; });
      if (by_size.size() < 2) continue;
      const Part& odd = *by_size[1].second[0];
      std::vector<int32_t> ranks;
      for (const Part* part : by_size[0].second) ranks.push_back(part->rank);
      Finding finding = FindingAt(kRegisteredAlike, program, odd.rank, odd.event);
      finding.expected = std::to_string(by_size[0].first) + " bytes";
      finding.seen = std::to_string(by_size[1].first) + " bytes";
      finding.message = DescribeOperation(program, program.operation(odd)) + ": rank " +
                        std::to_string(odd.rank) + " registers " + finding.seen + ", " +
                        DescribeRanks(ranks) + " " + finding.expected +
                        ". Let all members register blocks of the same sizes in the same order";
      Add(std::move(finding), result);
      alike = false;
      break;
    }
  }
  return alike;
}

void JudgeRegistrationCalls(const Program& program, const std::vector<Registrations>& registrations,
                            CheckResult& result) {
  result.judged.insert(kRegisteredWhileLive);
  for (size_t rank = 0; rank < registrations.size(); ++rank) {
    for (const Registrations::Misuse& misuse : registrations[rank].misuses()) {
      Finding finding =
          FindingAt(kRegisteredWhileLive, program, static_cast<int32_t>(rank), misuse.event);
      finding.expected = misuse.expected;
      finding.seen = misuse.seen;
      finding.message = "rank " + std::to_string(rank) + ", " + finding.operation + ": expected " +
                        misuse.expected + ", seen " + misuse.seen +
                        ". Register a live block once, and deregister it before its end";
      Add(std::move(finding), result);
    }
  }
}

}  // namespace shardproof::graph
