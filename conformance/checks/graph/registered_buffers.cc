// What NCCL promises for user buffers, and so what is judged here.
//
// NCCL user guide, usage/bufferreg: for all communication functions, all-reduce and send/recv named
// among them, if one rank of a communicator passes registered buffers then all others must; mixing
// is undefined. In collectives the offset of a buffer to the head address is the same on every rank
// (NVLS; of windows NCCL_WIN_COLL_SYMMETRIC, api/flags); a large buffer may be registered once and
// used in chunks that keep to this. Source and destination are both registered, or nothing is
// gained; that this would be undefined is not said.
//
// So send and recv are judged apart, each over all members: registered everywhere or nowhere and,
// in collectives, at one offset. A message is one function's two ends: its send is judged against
// its recv. Not judged:
// - sides that only the root has: send of broadcast and scatter, recv of reduce and gather;
// - the offset of a slice of the member's own larger buffer, which differs by definition (in place:
//   send of all_gather, recv of reduce_scatter); the larger buffer is judged;
// - offsets in what NCCL makes of messages (all_to_all_v) or of broadcasts, where a send meets no
//   other (all_gather_v);
// - buffers of no bytes.
#include "conformance/checks/graph/registered_buffers.h"

#include <algorithm>
#include <set>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/graph/finding_at.h"
#include "conformance/checks/graph/most_first.h"
#include "conformance/checks/graph/registrations.h"
#include "conformance/checks/graph/requirement_ids.h"
#include "conformance/checks/program/collective_kinds.h"
#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"

namespace shardproof::graph {

namespace {

constexpr size_t kFindingsMax = 20;

enum class Rule : uint8_t { kNone, kRegistered, kSameOffset };

Rule RuleOfSend(uint8_t kind) {
  switch (kind) {
    case SPF_ALL_GATHER:
    case SPF_REDUCE_SCATTER:
    case SPF_ALL_REDUCE:
    case kReduce:
    case kGather:
      return Rule::kSameOffset;
    case SPF_BROADCAST:
    case kScatter:
      return Rule::kNone;
    default:
      return Rule::kRegistered;
  }
}

Rule RuleOfRecv(uint8_t kind) {
  switch (kind) {
    case SPF_ALL_GATHER:
    case SPF_ALL_GATHER_V:
    case SPF_REDUCE_SCATTER:
    case SPF_ALL_REDUCE:
    case SPF_BROADCAST:
    case kScatter:
      return Rule::kSameOffset;
    case kReduce:
    case kGather:
      return Rule::kNone;
    default:
      return Rule::kRegistered;
  }
}

// One side of one member's part.
struct Buffer {
  const Part* part = nullptr;
  const char* side = "";
  Range range;
  bool registered = false;
  bool slice = false;  // of the member's own other buffer
};

// Null: no bytes. A send is read and the first such range, a recv is written and the last.
const Range* SideOf(const Trace& trace, const Event& event, uint8_t access) {
  const Range* found = nullptr;
  for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
    const Range& range = trace.ranges[i];
    if ((range.access & access) == 0) continue;
    if (found == nullptr || access == kWrite) found = &range;
  }
  return found != nullptr && found->alloc >= 0 && found->length > 0 ? found : nullptr;
}

bool Inside(const Range& slice, const Range& whole) {
  return slice.alloc == whole.alloc && slice.length < whole.length &&
         slice.offset >= whole.offset && slice.offset < whole.offset + whole.length;
}

class Judge {
 public:
  Judge(const Program& program, const std::vector<Registrations>& registrations,
        CheckResult& result)
      : program_(program), registrations_(registrations), result_(result) {}

  void Run();

 private:
  void Visit(const Sequence& sequence);
  void AddSide(const Part& part, uint8_t access, std::vector<Buffer>& to) const;
  // False, and a finding, if the buffers are not what the rule demands.
  bool Agree(const std::vector<Buffer>& buffers, Rule rule);
  void Report(const Buffer& odd, const std::vector<const Buffer*>& others, std::string expected,
              std::string seen, const char* advice);
  int32_t CommunicatorOf(const Part& part) const {
    return At(program_.sequences, part.sequence).communicator;
  }
  void Add(Finding finding) {
    if (result_.findings.size() < kFindingsMax) result_.findings.push_back(std::move(finding));
  }

  const Program& program_;
  const std::vector<Registrations>& registrations_;  // by rank
  CheckResult& result_;
  size_t operations_ = 0, uses_ = 0;  // that were judged; that use a registered buffer
};

void Judge::AddSide(const Part& part, uint8_t access, std::vector<Buffer>& to) const {
  const Trace& trace = program_.trace(part.rank);
  const Event& event = program_.event(part);
  const Range* range = SideOf(trace, event, access);
  if (range == nullptr) return;
  const Range* other = SideOf(trace, event, access == kRead ? kWrite : kRead);
  const Registrations& registrations = At(registrations_, part.rank);
  to.push_back({&part, access == kRead ? "send" : "recv", *range,
                registrations.Has(CommunicatorOf(part), range->alloc, part.event),
                other != nullptr && Inside(*range, *other)});
}

void Judge::Visit(const Sequence& sequence) {
  const bool messages = sequence.kind == Sequence::Kind::kMessages;
  size_t common = sequence.length;
  for (const auto& list : sequence.parts) common = std::min(common, list.size());
  std::vector<Buffer> sends, recvs;
  for (size_t i = 0; i < common; ++i) {
    sends.clear();
    recvs.clear();
    for (size_t member = 0; member < sequence.parts.size(); ++member) {
      const Part& part = program_.parts[sequence.parts[member][i]];
      if (!messages || member == 0) AddSide(part, kRead, sends);
      if (!messages || member == 1) AddSide(part, kWrite, messages ? sends : recvs);
    }
    if (sends.empty() && recvs.empty()) continue;
    const auto registered = [](const Buffer& buffer) { return buffer.registered; };
    ++operations_;
    if (std::any_of(sends.begin(), sends.end(), registered) ||
        std::any_of(recvs.begin(), recvs.end(), registered)) {
      ++uses_;
    }
    result_.judged.insert(kRegisteredTogether);
    const uint8_t kind = program_.event(program_.parts[sequence.parts[0][i]]).collective;
    // The first of a sequence is enough: what follows is likely the same mistake.
    if (!Agree(sends, messages ? Rule::kRegistered : RuleOfSend(kind))) return;
    if (!messages && !Agree(recvs, RuleOfRecv(kind))) return;
  }
}

bool Judge::Agree(const std::vector<Buffer>& buffers, Rule rule) {
  if (rule == Rule::kNone) return true;
  std::vector<const Buffer*> with, without, whole;
  for (const Buffer& buffer : buffers) {
    (buffer.registered ? with : without).push_back(&buffer);
    if (!buffer.slice) whole.push_back(&buffer);
  }
  if (with.empty()) return true;
  if (!without.empty()) {
    const bool lacks = without.size() <= with.size();
    const Part& bare = *without[0]->part;
    const int32_t communicator = CommunicatorOf(bare);
    const std::string& group = At(program_.communicators, communicator).name;
    const std::string in = "in a block registered with " + group,
                      out = "in a block not registered with " + group +
                            At(registrations_, bare.rank)
                                .WhyNot(communicator, without[0]->range.alloc, bare.event);
    Report(lacks ? *without[0] : *with[0], lacks ? with : without, lacks ? in : out,
           lacks ? out : in, "Register the buffers of all members with the group, or of none");
    return false;
  }
  if (rule == Rule::kRegistered) return true;
  const auto by_offset = MostFirst(whole, [](const Buffer& one) { return one.range.offset; });
  if (by_offset.size() < 2) return true;
  Report(*by_offset[1].second[0], by_offset[0].second,
         "at offset " + std::to_string(by_offset[0].first) + " of its registered block",
         "at offset " + std::to_string(by_offset[1].first) + " of its registered block",
         "Place it at the same offset in the block of every member");
  return false;
}

void Judge::Report(const Buffer& odd, const std::vector<const Buffer*>& others,
                   std::string expected, std::string seen, const char* advice) {
  const Part& part = *odd.part;
  Finding finding = FindingAt(kRegisteredTogether, program_, part.rank, part.event);
  std::vector<int32_t> ranks;
  for (const Buffer* other : others) ranks.push_back(other->part->rank);
  finding.message = DescribeOperation(program_, program_.operation(part)) + ": " + odd.side +
                    " of rank " + std::to_string(part.rank) + " (" +
                    std::to_string(odd.range.length) + " bytes at " +
                    std::to_string(odd.range.offset) + " of block " +
                    std::to_string(odd.range.alloc) + ") lies " + seen + ", " + others[0]->side +
                    " of " + DescribeRanks(ranks) + " " + expected + ". " + advice;
  finding.expected = std::move(expected);
  finding.seen = std::move(seen);
  Add(std::move(finding));
}

void Judge::Run() {
  std::set<int32_t> registering;  // communicators
  for (const Sequence& sequence : program_.sequences) {
    if (sequence.kind == Sequence::Kind::kRegisters) registering.insert(sequence.communicator);
  }
  for (const Sequence& sequence : program_.sequences) {
    const bool moves =
        sequence.kind == Sequence::Kind::kCollectives || sequence.kind == Sequence::Kind::kMessages;
    if (moves && sequence.parts.size() > 1 && registering.contains(sequence.communicator))
      Visit(sequence);
  }
  if (operations_ == 0) return;
  result_.notes.push_back("registered buffers: used by " + std::to_string(uses_) + " of " +
                          std::to_string(operations_) + " operations on groups with registrations");
}

}  // namespace

void JudgeRegisteredBuffers(const Program& program, bool matched, CheckResult& result) {
  if (!program.registrations) return;
  const bool alike = JudgeRegistrationSizes(program, result) && matched;
  for (const Trace& trace : *program.traces) {
    if (trace.provides.memory) continue;
    for (const char* requirement : {kRegisteredTogether, kRegisteredWhileLive}) {
      result.not_checkable.push_back({requirement, "the trace of rank " +
                                                       std::to_string(trace.rank) +
                                                       " does not provide memory and byte ranges"});
    }
    return;
  }
  std::vector<Registrations> registrations;  // by rank
  for (const Trace& trace : *program.traces) registrations.emplace_back(program, trace);
  JudgeRegistrationCalls(program, registrations, result);
  if (!alike) {
    result.not_checkable.push_back(
        {kRegisteredTogether, "operations or registrations that meet are not the same"});
    return;
  }
  Judge(program, registrations, result).Run();
}

}  // namespace shardproof::graph
