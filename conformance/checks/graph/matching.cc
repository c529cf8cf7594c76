#include "conformance/checks/graph/matching.h"

#include <algorithm>
#include <map>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/graph/finding_at.h"
#include "conformance/checks/graph/labels.h"
#include "conformance/checks/graph/operation_signature.h"
#include "conformance/checks/graph/registered_buffers.h"
#include "conformance/checks/graph/requirement_ids.h"
#include "conformance/checks/graph/sequence_hint.h"
#include "conformance/checks/program/collective_kinds.h"
#include "conformance/checks/program/describe.h"

namespace shardproof::graph {

namespace {

constexpr size_t kFindingsMax = 20;

// " only 2", of some ranks that issue so many operations.
std::string Only(size_t ranks, size_t operations) {
  if (operations > 0) return " only " + std::to_string(operations);
  return ranks == 1 ? " issues none" : " issue none";
}

class Judge {
 public:
  Judge(const Program& program, CheckResult& result) : program_(program), result_(result) {
    for (const Trace& trace : *program.traces) early_ = early_ || trace.end != TraceEnd::kComplete;
  }

  Matching Run() {
    if (!program_.inconsistent_groups.empty()) {
      Finding finding;
      finding.requirement = kGroupsCreatedAlike;
      finding.message =
          program_.inconsistent_groups + ": give all members the same list in the same order";
      Add(std::move(finding));
    }
    for (const Sequence& sequence : program_.sequences) Visit(sequence);
    JudgeRegisteredBuffers(program_, matching_.ok, result_);
    return matching_;
  }

 private:
  bool HasRoom() const { return result_.findings.size() < kFindingsMax; }

  void Add(Finding finding) {
    matching_.ok = false;
    if (HasRoom()) result_.findings.push_back(std::move(finding));
  }

  const Part& At(const Sequence& sequence, size_t member, size_t position) const {
    return program_.parts[sequence.parts[member][position]];
  }

  std::string Where(const Sequence& sequence, size_t position) const {
    return "operation #" + std::to_string(position) + " of communicator " +
           program_.communicators[static_cast<size_t>(sequence.communicator)].name;
  }

  void Visit(const Sequence& sequence);
  void VisitCollectives(const Sequence& sequence);
  void VisitLabels(const Sequence& sequence);
  void Differ(const Sequence& sequence, size_t position);
  Finding Differs(const Sequence& sequence, const Odd& odd, const char* requirement) const;
  void VisitExchanges(const Sequence& sequence);
  void VisitMessages(const Sequence& sequence);
  void VisitMicrobatches(const Sequence& sequence);
  void VisitCreates(const Sequence& sequence);
  void VisitLengths(const Sequence& sequence, const char* requirement);
  const Program& program_;
  CheckResult& result_;
  Matching matching_;
  bool early_ = false;
};

void Judge::Visit(const Sequence& sequence) {
  const size_t before = result_.findings.size();
  switch (sequence.kind) {
    case Sequence::Kind::kCollectives:
      result_.judged.insert(kSameSequence);
      VisitCollectives(sequence);
      if (result_.findings.size() == before) VisitExchanges(sequence);
      if (result_.findings.size() == before) VisitLabels(sequence);
      if (result_.findings.size() == before) VisitLengths(sequence, kSameSequence);
      break;
    case Sequence::Kind::kMessages:
      result_.judged.insert(kMessagesPair);
      VisitMessages(sequence);
      if (result_.findings.size() == before) VisitLengths(sequence, kMessagesPair);
      if (result_.findings.size() == before) VisitMicrobatches(sequence);
      break;
    case Sequence::Kind::kCreates:
      result_.judged.insert(kGroupsCreatedAlike);
      VisitCreates(sequence);
      if (result_.findings.size() == before) VisitLengths(sequence, kGroupsCreatedAlike);
      break;
    case Sequence::Kind::kDestroys:
      VisitLengths(sequence, kGroupsCreatedAlike);
      break;
    case Sequence::Kind::kRegisters:
      VisitLengths(sequence, kRegisteredAlike);
      break;
  }
}

// Hashes of whole lists first: only if they differ, the first difference is searched.
void Judge::VisitCollectives(const Sequence& sequence) {
  size_t common = sequence.length;
  for (const auto& list : sequence.parts) common = std::min(common, list.size());
  bool equal = true;
  uint64_t first = 0;
  for (size_t member = 0; member < sequence.parts.size(); ++member) {
    uint64_t hash = 0;
    for (size_t i = 0; i < common; ++i) {
      const Part& part = At(sequence, member, i);
      const Signature signature =
          SignatureOf(program_.trace(part.rank), program_.event(part), /*labels=*/false);
      hash = HashOn(HashOn(hash, signature.shape), signature.counts);
    }
    if (member == 0) first = hash;
    equal = equal && hash == first;
  }
  if (equal) return;
  for (size_t i = 0; i < common; ++i) {
    const Part& reference = At(sequence, 0, i);
    const Signature signature =
        SignatureOf(program_.trace(reference.rank), program_.event(reference), /*labels=*/false);
    for (size_t member = 1; member < sequence.parts.size(); ++member) {
      const Part& part = At(sequence, member, i);
      if (SignatureOf(program_.trace(part.rank), program_.event(part), false) == signature)
        continue;
      Differ(sequence, i);
      return;
    }
  }
}

// Says whose operation is the odd one: the one that fewest members have.
void Judge::Differ(const Sequence& sequence, size_t position) {
  std::vector<std::pair<Signature, std::vector<size_t>>> kinds;
  for (size_t member = 0; member < sequence.parts.size(); ++member) {
    const Part& part = At(sequence, member, position);
    const Signature signature =
        SignatureOf(program_.trace(part.rank), program_.event(part), /*labels=*/false);
    auto at = std::find_if(kinds.begin(), kinds.end(),
                           [&](const auto& kind) { return kind.first == signature; });
    if (at == kinds.end()) at = kinds.insert(at, {signature, {}});
    at->second.push_back(member);
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  const Odd odd{position, kinds[1].second[0], kinds[0].second};
  const bool v = kinds[0].first.shape == kinds[1].first.shape &&
                 program_.event(At(sequence, odd.odd, position)).collective == SPF_ALL_GATHER_V;
  if (v) result_.judged.insert(kCountsAgree);
  Finding finding = Differs(sequence, odd, v ? kCountsAgree : kSameSequence);
  if (HasRoom()) finding.message += SequenceHint(program_, sequence, odd);
  Add(std::move(finding));
}

// Equal shapes, but not the same work by its labels. Where sequences differ in length, or a run was
// ended, that is where the one that is left out belongs.
void Judge::VisitLabels(const Sequence& sequence) {
  const bool uneven = std::any_of(sequence.parts.begin(), sequence.parts.end(),
                                  [&](const auto& l) { return l.size() != sequence.length; });
  const std::optional<Odd> odd = FirstLabelsThatDiffer(program_, sequence, uneven || early_);
  if (!odd) return;
  const bool ok = matching_.ok;
  Finding finding = Differs(sequence, *odd, kSameSequence);
  if (uneven || early_) {
    if (HasRoom()) finding.message += SequenceHint(program_, sequence, *odd);
  } else {
    finding.message +=
        ". Their shapes are equal, so one gets the other's data and no hang shows it: let every "
        "member issue the same sequence, with the same labels";
  }
  Add(std::move(finding));
  if (!uneven && !early_) matching_.ok = ok;  // they do meet, so orders have a meaning
}

Finding Judge::Differs(const Sequence& sequence, const Odd& odd, const char* requirement) const {
  const Part& expected = At(sequence, odd.usual[0], odd.position);
  const Part& seen = At(sequence, odd.odd, odd.position);
  Finding finding = FindingAt(requirement, program_, seen.rank, seen.event);
  std::vector<int32_t> ranks;
  for (const size_t member : odd.usual) ranks.push_back(sequence.ranks[member]);
  finding.expected = DescribeFully(program_, expected);
  finding.seen = DescribeFully(program_, seen);
  finding.message = Where(sequence, odd.position);
  if (const std::string roots = OtherRoots(program_, seen, expected, ranks); !roots.empty()) {
    finding.message += roots;
    return finding;
  }
  finding.message += " differs: rank " + std::to_string(seen.rank) + " issues " + finding.seen +
                     "; " + DescribeRanks(ranks) + (ranks.size() == 1 ? " issues " : " issue ") +
                     finding.expected;
  return finding;
}

void Judge::VisitExchanges(const Sequence& sequence) {
  const size_t members = sequence.parts.size();
  size_t common = sequence.length;
  for (const auto& list : sequence.parts) common = std::min(common, list.size());
  for (size_t i = 0; i < common; ++i) {
    const uint8_t kind = program_.event(At(sequence, 0, i)).collective;
    if (kind == SPF_ALL_GATHER_V) result_.judged.insert(kCountsAgree);
    if (kind != SPF_ALL_TO_ALL_V) continue;
    result_.judged.insert(kCountsAgree);
    for (size_t from = 0; from < members; ++from) {
      const Part& sender = At(sequence, from, i);
      const Event& send = program_.event(sender);
      for (size_t to = 0; to < members; ++to) {
        const Part& receiver = At(sequence, to, i);
        const Event& receive = program_.event(receiver);
        if (send.send_counts.size() != members || receive.recv_counts.size() != members) continue;
        const int64_t sent = program_.trace(sender.rank).numbers[send.send_counts.begin + to];
        const int64_t expected =
            program_.trace(receiver.rank).numbers[receive.recv_counts.begin + from];
        if (sent == expected) continue;
        Finding finding = FindingAt(kCountsAgree, program_, receiver.rank, receiver.event);
        finding.expected =
            std::to_string(sent) + " elements from rank " + std::to_string(sender.rank);
        finding.seen =
            std::to_string(expected) + " elements from rank " + std::to_string(sender.rank);
        finding.message = Where(sequence, i) + ": rank " + std::to_string(sender.rank) + " sends " +
                          std::to_string(sent) + " elements to rank " +
                          std::to_string(receiver.rank) + ", which expects " +
                          std::to_string(expected) + ". Derive both from the same counts";
        Add(std::move(finding));
        return;
      }
    }
  }
}

void Judge::VisitMessages(const Sequence& sequence) {
  const size_t common = std::min(sequence.parts[0].size(), sequence.parts[1].size());
  for (size_t i = 0; i < common; ++i) {
    const Part& sender = At(sequence, 0, i);
    const Part& receiver = At(sequence, 1, i);
    const Event& send = program_.event(sender);
    const Event& receive = program_.event(receiver);
    if (send.count == receive.count && send.dtype == receive.dtype) continue;
    Finding finding = FindingAt(kMessagesPair, program_, receiver.rank, receiver.event);
    finding.expected = DescribeFully(program_, sender);
    finding.seen = DescribeFully(program_, receiver);
    finding.message = "message " + Where(sequence, i) + " from rank " +
                      std::to_string(sender.rank) + " to rank " + std::to_string(receiver.rank) +
                      ": " + finding.expected + " meets " + finding.seen +
                      ". Let both name the same count and dtype";
    Add(std::move(finding));
    return;
  }
}

// One message for another: they do meet, so orders have a meaning.
void Judge::VisitMicrobatches(const Sequence& sequence) {
  const std::optional<size_t> at = FirstOfAnotherMicrobatch(program_, sequence);
  if (!at) return;
  const Part& sender = At(sequence, 0, *at);
  const Part& receiver = At(sequence, 1, *at);
  const auto microbatch = [&](const Part& part) {
    return "microbatch " + std::to_string(program_.event(part).microbatch);
  };
  const bool ok = matching_.ok;
  Finding finding = FindingAt(kMessagesPair, program_, receiver.rank, receiver.event);
  finding.expected = DescribeFully(program_, sender);
  finding.seen = DescribeFully(program_, receiver);
  finding.message = "message " + Where(sequence, *at) + " from rank " +
                    std::to_string(sender.rank) + " to rank " + std::to_string(receiver.rank) +
                    ": what is sent for " + microbatch(sender) + " is received for " +
                    microbatch(receiver) +
                    ". Messages between two ranks meet in the order of issue: issue both sides in "
                    "one order";
  Add(std::move(finding));
  matching_.ok = ok;
}

// Call i of each member: the lists must partition, and members of one list must have given the
// same.
void Judge::VisitCreates(const Sequence& sequence) {
  size_t common = sequence.length;
  for (const auto& list : sequence.parts) common = std::min(common, list.size());
  for (size_t i = 0; i < common; ++i) {
    const auto list = [&](size_t member) {
      const Part& part = At(sequence, member, i);
      const Trace& trace = program_.trace(part.rank);
      const Slice ranks = program_.event(part).ranks;
      return std::vector<int64_t>(trace.numbers.begin() + ranks.begin,
                                  trace.numbers.begin() + ranks.end);
    };
    for (size_t member = 0; member < sequence.parts.size(); ++member) {
      const std::vector<int64_t> mine = list(member);
      for (const int64_t other : mine) {
        if (other >= 0 && static_cast<size_t>(other) < sequence.parts.size() &&
            list(static_cast<size_t>(other)) == mine)
          continue;
        const Part& part = At(sequence, member, i);
        Finding finding = FindingAt(kGroupsCreatedAlike, program_, part.rank, part.event);
        finding.message =
            "creation #" + std::to_string(i) + " under " +
            program_.communicators[static_cast<size_t>(sequence.communicator)].name + ": rank " +
            std::to_string(part.rank) + " names member " + std::to_string(other) +
            ", which names other members or another order in its creation #" + std::to_string(i) +
            ". Let all members create groups in the same order with the same lists";
        finding.seen = finding.operation;
        Add(std::move(finding));
        return;
      }
    }
  }
}

void Judge::VisitLengths(const Sequence& sequence, const char* requirement) {
  size_t shortest = sequence.length;
  for (const auto& list : sequence.parts) shortest = std::min(shortest, list.size());
  if (shortest == sequence.length) return;
  std::vector<int32_t> with, without;
  size_t holder = 0;
  bool excused = true;
  for (size_t member = 0; member < sequence.parts.size(); ++member) {
    if (sequence.parts[member].size() > shortest) {
      if (with.empty()) holder = member;
      with.push_back(sequence.ranks[member]);
      continue;
    }
    without.push_back(sequence.ranks[member]);
    const auto rank = static_cast<size_t>(sequence.ranks[member]);
    excused = excused && rank < program_.traces->size() &&
              (*program_.traces)[rank].end != TraceEnd::kComplete;
  }
  if (excused) {
    const uint32_t operation = sequence.first_operation + static_cast<uint32_t>(shortest);
    if (!matching_.cut) matching_.first_missing = operation;
    matching_.cut = true;
    return;
  }
  const Part& part = At(sequence, holder, shortest);
  Finding finding = FindingAt(requirement, program_, part.rank, part.event);
  finding.expected = finding.operation + " on " + DescribeRanks(without);
  finding.seen = std::to_string(shortest) + " operations";
  finding.message = Where(sequence, shortest) + " is missing: " + DescribeRanks(with) +
                    (with.size() == 1 ? " issues " : " issue ") + finding.operation + ", " +
                    DescribeRanks(without) + Only(without.size(), shortest) +
                    (sequence.kind == Sequence::Kind::kMessages ? " on its side" : "") +
                    ". Issue it there too, or nowhere";
  Add(std::move(finding));
}

}  // namespace

Matching JudgeMatching(const Program& program, CheckResult& result) {
  return Judge(program, result).Run();
}

}  // namespace shardproof::graph
