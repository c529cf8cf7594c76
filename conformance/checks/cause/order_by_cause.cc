#include "conformance/checks/cause/order_by_cause.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "conformance/checks/cause/kind_of_mistake.h"
#include "conformance/checks/cause/place.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

using cause::Kind;
using cause::Place;
using cause::Places;
using cause::Traits;

struct Row {
  const Finding* finding = nullptr;
  Traits traits;
  Place place;
  bool repeats = false;        // it says what an earlier finding of another requirement says
  Kind told = Kind::kAnswers;  // among which kind it is told
  bool late = false;           // and behind those of this kind
};

bool SameEvent(const Finding& a, const Finding& b) {
  return a.rank == b.rank && a.event == b.event && a.step == b.step && a.seen == b.seen;
}

class Sorter {
 public:
  Sorter(const graph::Lowered& lowered, const std::vector<Finding>& findings) : places_(lowered) {
    for (const Finding& finding : findings) {
      Row row;
      row.finding = &finding;
      row.traits = cause::TraitsOf(finding.requirement);
      row.place = places_.Of(finding);
      row.repeats = std::any_of(rows_.begin(), rows_.end(), [&](const Row& other) {
        return SameEvent(*other.finding, finding) &&
               other.finding->requirement != finding.requirement &&
               finding.message.starts_with(other.finding->message);
      });
      rows_.push_back(std::move(row));
    }
    for (Row& row : rows_) Assign(row);
  }

  std::vector<Finding> Run() {
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const Row& a, const Row& b) { return KeyOf(a) < KeyOf(b); });
    std::vector<Finding> sorted;
    for (const Row& row : rows_) {
      const int32_t cause = CauseOf(row, sorted);
      sorted.push_back(*row.finding);
      sorted.back().follows = cause;
    }
    return sorted;
  }

 private:
  static std::tuple<Kind, bool, uint64_t, bool, int> KeyOf(const Row& row) {
    return {row.told, row.late, row.place.time, row.repeats, row.traits.order};
  }

  // Among which kind a finding is told: its own, or the later one of what it follows from.
  void Assign(Row& row) const {
    row.told = row.traits.kind;
    if (row.finding->ended >= 0) {
      row.told = Kind::kNumbers;
      row.late = true;
      return;
    }
    for (const Row& other : rows_) {
      if (other.traits.kind < row.told || !BringsAboutEarlierKind(other, row)) continue;
      row.told = other.traits.kind;
      row.late = true;
    }
  }

  // Of an earlier kind than `why`, and still its consequence.
  bool BringsAboutEarlierKind(const Row& why, const Row& row) const {
    if (why.finding->ended >= 0) return false;
    const Kind kind = why.traits.kind;
    switch (row.traits.kind) {
      case Kind::kFailures:
        return (kind == Kind::kMatching || (kind == Kind::kSynchronisation && IsHang(row))) &&
               !places_.Before(row.place, why.place);
      case Kind::kSynchronisation:  // the work that races is not what it should be, or where
        return ((kind == Kind::kStructure && !why.traits.by_bytes) || IsOnNoBlock(why)) &&
               OneOfTwo(*why.finding, row);
      case Kind::kLifetime:
        if (IsInstall(why) && IsStale(row)) return true;
        // What was wrong before it was saved is wrong when it is loaded.
        if (kind == Kind::kNumbers && IsStale(row))
          return places_.PublishTheSame(*why.finding, *row.finding) &&
                 places_.Before(why.place, row.place);
        return kind == Kind::kStructure && why.traits.by_bytes && row.traits.by_bytes &&
               places_.Before(why.place, row.place);
      default:
        return false;
    }
  }

  // Where an owner itself reads old values, others get them for that reason.
  static bool IsInstall(const Row& row) { return row.finding->requirement == "LW-35"; }
  static bool IsStale(const Row& row) {
    const std::string& id = row.finding->requirement;
    return id == "LW-10" || id == "LW-11" || id == "FS-23";
  }
  // Gathers too many bring the same values again.
  static bool IsTraffic(const Row& row) { return row.finding->requirement == "FS-35"; }
  static bool IsOnNoBlock(const Row& row) { return row.finding->requirement == "GE-18"; }
  static bool IsHang(const Row& row) { return row.finding->requirement == "GE-27"; }
  static bool OneOfTwo(const Finding& why, const Row& row) {
    const Finding& finding = *row.finding;
    return why.rank == finding.rank && why.event >= 0 && finding.begins >= 0 &&
           (why.event == finding.event || why.event == finding.begins);
  }

  int32_t CauseOf(const Row& row, const std::vector<Finding>& sorted) const {
    for (int32_t i = 0; i < Length(sorted); ++i) {
      if (At(sorted, i).follows < 0 && Explains(At(rows_, i), row)) return i;
    }
    return -1;
  }

  bool Explains(const Row& why, const Row& row) const {
    if (BringsAboutEarlierKind(why, row)) return true;
    const bool same = SameEvent(*why.finding, *row.finding);
    if (same && (row.repeats || row.finding->event >= 0)) return true;
    if (row.finding->ended >= 0 && why.traits.kind == Kind::kFailures) return true;
    return MayBringAbout(why, row) && !places_.Before(row.place, why.place);
  }

  bool MayBringAbout(const Row& why, const Row& row) const {
    const Kind kind = row.traits.kind;
    const bool bytes = row.traits.by_bytes;
    switch (why.traits.kind) {
      case Kind::kAnswers:
        return true;
      case Kind::kFailures:
        return kind >= Kind::kFailures;
      case Kind::kMatching:
        return why.finding->ended < 0 && kind >= Kind::kMatching;
      case Kind::kSynchronisation:
        return bytes || (kind == Kind::kSynchronisation && SameWait(why, row)) ||
               SpoilsWhatIsCarried(why, row);
      case Kind::kLifetime:
      case Kind::kStructure:
        if (IsTraffic(why) && kind == Kind::kNumbers) return false;
        return kind >= why.traits.kind && (bytes || kind == Kind::kTotals);
      case Kind::kHiding:
      case Kind::kTotals:
      case Kind::kNumbers:
        return kind == why.traits.kind;
    }
    return false;
  }

  bool SameWait(const Row& why, const Row& row) const {
    return why.place.rank != row.place.rank || places_.OnStreamOf(*why.finding, *row.finding) ||
           places_.SameStreams(*why.finding, *row.finding) ||
           places_.ShareBlocks(*why.finding, *row.finding);
  }

  // By the event alone: sums of memory are else known at the end only.
  bool SpoilsWhatIsCarried(const Row& why, const Row& row) const {
    Place at = row.place;
    at.last = at.first;
    return cause::CountsWhatIsCarried(row.finding->requirement) && !places_.Before(at, why.place);
  }

  Places places_;
  std::vector<Row> rows_;
};

}  // namespace

void OrderByCause(const graph::Lowered& lowered, CheckResult& result) {
  if (result.findings.empty()) return;  // else the graph is searched for nothing
  result.findings = Sorter(lowered, result.findings).Run();
}

}  // namespace shardproof
