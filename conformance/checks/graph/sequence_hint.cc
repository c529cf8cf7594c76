#include "conformance/checks/graph/sequence_hint.h"

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/graph/list_alignment.h"
#include "conformance/checks/graph/operation_signature.h"
#include "conformance/checks/program/describe.h"

namespace shardproof::graph {

namespace {

constexpr size_t kWindow = 256;  // operations, before and behind the first difference
constexpr size_t kRangesMax = 4;

const char* const kSameSequenceFix = ". Let every member issue the same sequence";

using Ranks = std::vector<int32_t>;

std::string Issue(const Ranks& ranks) {
  return DescribeRanks(ranks) + (ranks.size() == 1 ? " issues " : " issue ");
}

// "#1, #3 and #5 to #7"
std::string Positions(const std::vector<size_t>& positions) {
  std::vector<std::string> ranges;
  for (size_t i = 0; i < positions.size();) {
    size_t end = i + 1;
    while (end < positions.size() && positions[end] == positions[end - 1] + 1) ++end;
    if (end == i + 2) --end;  // two are named each
    std::string range = "#" + std::to_string(positions[i]);
    if (end > i + 1) range += " to #" + std::to_string(positions[end - 1]);
    ranges.push_back(range);
    i = end;
  }
  if (ranges.size() > kRangesMax) return "from #" + std::to_string(positions[0]) + " on";
  std::string text;
  for (size_t i = 0; i < ranges.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranges.size() ? " and " : ", ") + ranges[i];
  return text;
}

std::string DoNot(const Ranks& ranks) {
  return DescribeRanks(ranks) + (ranks.size() == 1 ? " does not" : " do not");
}

std::string Operations(size_t n) {
  return std::to_string(n) + (n == 1 ? " operation" : " operations");
}

// Two members' lists from the beginning of an entry call to its end, or, where a trace does not
// tell calls, for kWindow operations around the first difference.
class Hint {
 public:
  Hint(const Program& program, const Sequence& sequence, const Odd& odd)
      : program_(program), sequence_(sequence), odd_(odd.odd) {
    Find(odd);
    odd_list_ = ListOf(odd.odd);
    usual_list_ = ListOf(odd.usual[0]);
    for (size_t member = 0; member < sequence.parts.size(); ++member) {
      if (sequence.parts[member].size() <= first_) continue;
      const std::vector<Signature> operations = ListOf(member).operations;
      const int32_t rank = sequence.ranks[member];
      if (operations == odd_list_.operations) odd_ranks_.push_back(rank);
      if (operations == usual_list_.operations) usual_ranks_.push_back(rank);
    }
  }

  std::string Say() const {
    const Alignment alignment = Align(odd_list_, usual_list_);
    if (std::string text = Lacks(alignment); !text.empty()) return text + kSameSequenceFix;
    if (std::string text = Order(); !text.empty()) return text + kSameSequenceFix;
    if (std::string text = Differ(alignment); !text.empty()) return text + kSameSequenceFix;
    if (!OnlyCounts()) return kSameSequenceFix;
    const bool lists = program_.event(At(odd_, first_)).collective == SPF_ALL_GATHER_V;
    return std::string(". Only counts differ: let every member compute the same counts") +
           (lists ? " (owners, split sizes)" : "");
  }

 private:
  const Part& At(size_t member, size_t position) const {
    return program_.parts[sequence_.parts[member][position]];
  }
  int32_t CallAt(size_t member, size_t position) const {
    return program_.event(At(member, position)).call;
  }
  Signature Of(size_t member, size_t position) const {
    const Part& part = At(member, position);
    return SignatureOf(program_.trace(part.rank), program_.event(part), /*labels=*/true);
  }
  size_t first() const { return first_ - begin_; }
  bool open() const { return odd_list_.open || usual_list_.open; }

  void Find(const Odd& odd);
  List ListOf(size_t member) const;
  bool Ended(size_t member) const;
  std::string Lacks(const Alignment& alignment) const;
  std::string Order() const;
  std::string Differ(const Alignment& alignment) const;
  bool OnlyCounts() const;
  bool Moves(const Alignment& alignment) const;
  std::string InCall() const;
  std::string Which(std::vector<size_t> positions) const;
  size_t Agreeing(const Alignment& alignment) const;
  Alignment FromFirst() const;

  const Program& program_;
  const Sequence& sequence_;
  const size_t odd_;
  size_t begin_ = 0, first_ = 0;  // positions: of the lists, of the first difference
  int32_t call_ = -1;             // -1: unknown
  const Part* part_ = nullptr;    // of call_
  List odd_list_, usual_list_;
  Ranks odd_ranks_, usual_ranks_;
};

// Equal shapes may hide an earlier difference that labels show, and equal operations that one
// member has not yet ended the entry call that another one has.
void Hint::Find(const Odd& odd) {
  const size_t a = odd.odd, b = odd.usual[0];
  while (first_ < odd.position && Of(a, first_) == Of(b, first_)) ++first_;
  const auto known = [&](size_t i) { return CallAt(a, i) >= 0 && CallAt(b, i) >= 0; };
  while (first_ > 0 && known(first_ - 1) && CallAt(a, first_ - 1) != CallAt(b, first_ - 1))
    --first_;
  begin_ = first_;
  if (known(first_)) {
    call_ = std::min(CallAt(a, first_), CallAt(b, first_));
    part_ = &At(CallAt(a, first_) == call_ ? a : b, first_);
  }
  const auto within = [&](size_t i) {
    return call_ < 0 || (CallAt(a, i) == call_ && CallAt(b, i) == call_);
  };
  while (begin_ > 0 && first_ - begin_ < kWindow && within(begin_ - 1)) --begin_;
}

List Hint::ListOf(size_t member) const {
  List list;
  const size_t size = sequence_.parts[member].size();
  size_t i = begin_;
  const auto within = [&] { return i < size && (call_ < 0 || CallAt(member, i) == call_); };
  for (; within() && i < first_ + kWindow; ++i) list.operations.push_back(Of(member, i));
  list.open = within() || (i == size && !Ended(member));
  return list;
}

// Nothing can follow on the member's list that is still of call_. Traces from elsewhere, which do
// not tell calls, may end anywhere.
bool Hint::Ended(size_t member) const {
  const Part& last = At(member, sequence_.parts[member].size() - 1);
  const Trace& trace = program_.trace(last.rank);
  if (trace.end == TraceEnd::kComplete && trace.provides.calls) return true;
  const uint16_t instance = program_.event(last).instance;
  return call_ >= 0 &&
         std::any_of(trace.events.begin() + last.event, trace.events.end(), [&](const Event& e) {
           return e.kind == EventKind::kCallEnd && e.call == call_ && e.instance == instance;
         });
}

// "in train_step 1 ", or nothing.
std::string Hint::InCall() const {
  if (call_ < 0) return "";
  const Trace& trace = program_.trace(part_->rank);
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kCallBegin || event.call != call_ ||
        event.instance != program_.event(*part_).instance)
      continue;
    return "in " + std::string(trace.Text(event.text)) +
           (event.id < 0 ? " " : " " + std::to_string(event.id) + " ");
  }
  return "";
}

// Operations that agree behind the first difference.
size_t Hint::Agreeing(const Alignment& alignment) const {
  const size_t all = alignment.end_a - alignment.only_a.size();
  return all - std::min(all, first());
}

// Without what is equal before the first difference: of two equal operations it does not matter
// which one is left out.
Alignment Hint::FromFirst() const {
  const auto tail = [&](const List& list) {
    return List{{list.operations.begin() + static_cast<int64_t>(first()), list.operations.end()},
                list.open};
  };
  return Align(tail(odd_list_), tail(usual_list_));
}

std::string Hint::Which(std::vector<size_t> positions) const {
  for (size_t& position : positions) position += begin_;
  return Positions(positions);
}

// One list is the other without some.
std::string Hint::Lacks(const Alignment& alignment) const {
  if (alignment.only_a.empty() == alignment.only_b.empty()) return "";
  const bool odd = alignment.only_b.empty();  // has more
  const std::vector<size_t>& extra = odd ? alignment.only_a : alignment.only_b;
  const Ranks &who = odd ? odd_ranks_ : usual_ranks_, &whom = odd ? usual_ranks_ : odd_ranks_;
  if (open() && (!FromFirst().unique || Agreeing(alignment) < 2 * extra.size())) return "";
  const std::string text = "; " + InCall() + Issue(who) + Operations(extra.size());
  if (!alignment.unique) return text + " more than " + DescribeRanks(whom);
  return text + " that " + DoNot(whom) + ": " + Which(extra);
}

// The lists have the same operations, or agree again behind those that are in another order.
std::string Hint::Order() const {
  const std::vector<Signature>&a = odd_list_.operations, &b = usual_list_.operations;
  const size_t size = std::min(a.size(), b.size());
  const bool same = !open() && a.size() == b.size() &&
                    Reordered(odd_list_, usual_list_, first(), /*all=*/true) > 0;
  const size_t n = Reordered(odd_list_, usual_list_, first(), /*all=*/false);
  size_t end = first() + n;
  while (end < size && a[end] == b[end]) ++end;
  if (n == 0 || (!same && end < first() + 3 * n)) return "";
  return "; " + Issue(odd_ranks_) + "operations " +
         (n == 2 ? Which({first(), first() + 1}) + " in the other order"
                 : "#" + std::to_string(first_) + " to #" + std::to_string(first_ + n - 1) +
                       " in another order");
}

// Each has some that the other has not.
std::string Hint::Differ(const Alignment& alignment) const {
  const std::vector<size_t>&a = alignment.only_a, &b = alignment.only_b;
  if (a.empty() || b.empty() || a[0] == b[0] || !alignment.unique || Moves(alignment) ||
      Agreeing(alignment) < 2 * (a.size() + b.size()))
    return "";
  const bool odd = a[0] < b[0];  // differs first
  const Ranks &who = odd ? odd_ranks_ : usual_ranks_, &whom = odd ? usual_ranks_ : odd_ranks_;
  const std::vector<size_t>&theirs = odd ? a : b, &others = odd ? b : a;
  return "; " + InCall() + Issue(who) + Operations(theirs.size()) + " that " + DoNot(whom) + ": " +
         Which(theirs) + "; " + Issue(whom) + std::to_string(others.size()) + " that " +
         DoNot(who) + ": " + Which(others);
}

// What one leaves out here it has there.
bool Hint::Moves(const Alignment& alignment) const {
  return std::any_of(alignment.only_a.begin(), alignment.only_a.end(), [&](size_t i) {
    return std::any_of(alignment.only_b.begin(), alignment.only_b.end(), [&](size_t j) {
      return odd_list_.operations[i] == usual_list_.operations[j];
    });
  });
}

bool Hint::OnlyCounts() const {
  const std::vector<Signature>&a = odd_list_.operations, &b = usual_list_.operations;
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Signature& x, const Signature& y) { return x.shape == y.shape; });
}

}  // namespace

std::string SequenceHint(const Program& program, const Sequence& sequence, const Odd& odd) {
  return Hint(program, sequence, odd).Say();
}

}  // namespace shardproof::graph
