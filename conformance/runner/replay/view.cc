#include "conformance/runner/replay/view.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/base/analysis.h"
#include "conformance/common/at.h"
#include "conformance/common/safe_text.h"
#include "conformance/report/folded.h"
#include "conformance/runner/replay/event_line.h"
#include "conformance/runner/replay/related.h"

namespace shardproof {

namespace {

constexpr size_t kRangesShown = 2;     // of one event
constexpr size_t kOtherRanks = 4;      // of one operation
constexpr size_t kAccesses = 3;        // before the event
constexpr size_t kHeld = 6;            // blocks, of device memory at the end of a call
constexpr size_t kReasonLength = 160;  // of a rank that ended early

bool IsCollective(const Event& event) {
  return event.group >= 0 || event.kind == EventKind::kGroupBegin ||
         event.kind == EventKind::kGroupEnd || event.kind == EventKind::kRequestWait;
}

bool IsMemory(const Event& event) {
  return event.kind == EventKind::kAlloc || GivesBack(event.kind) ||
         event.kind == EventKind::kNoMemory || event.kind == EventKind::kGroupRegister ||
         event.kind == EventKind::kGroupDeregister;
}

// Writes lines of one run.
class Shower {
 public:
  Shower(const Analysis& run, const ReplayView& view, std::ostream& out)
      : run_(run), view_(view), out_(out), lines_(run) {}

  void Mark(EventAt at, char mark) {
    if (at.event >= 0) marks_.try_emplace(at, mark);
  }
  // All events that the view selects.
  void List() {
    for (int32_t rank = 0; rank < run_.ranks(); ++rank) {
      if (view_.rank >= 0 && rank != view_.rank) continue;
      for (int64_t i = 0; i < Length(run_.trace(rank).events); ++i) {
        if (Selected({rank, i})) Line({rank, i}, SIZE_MAX);
      }
      End(rank);
    }
  }
  // Of one rank, so many selected events before and after each of the others in `centres`.
  void Windows(int32_t rank, const std::vector<int64_t>& centres, size_t before, size_t after) {
    std::set<int64_t> shown;
    for (const int64_t centre : centres) {
      shown.insert(centre);
      size_t left = before;
      for (int64_t i = centre - 1; i >= 0 && left > 0; --i) left -= Take({rank, i}, shown);
      left = after;
      for (int64_t i = centre + 1; i < Length(run_.trace(rank).events) && left > 0; ++i)
        left -= Take({rank, i}, shown);
    }
    int64_t last = -1;
    for (const int64_t i : shown) {
      if (last >= 0 && i > last + 1) out_ << "  ...\n";
      Line({rank, i}, kRangesShown);
      last = i;
    }
  }
  void Line(EventAt at, size_t ranges) {
    const auto mark = marks_.find(at);
    out_ << (mark == marks_.end() ? ' ' : mark->second) << " rank " << at.rank << " #" << at.event
         << "  " << VisibleLine(lines_.Text(at.rank, at.event, ranges)) << "\n";
  }
  // Where a rank ended, if it ended early.
  void End(int32_t rank) {
    const Trace& trace = run_.trace(rank);
    if (trace.end == TraceEnd::kComplete) return;
    std::string why = trace.end_reason;
    if (why.size() > kReasonLength && !view_.whole) why.replace(kReasonLength, why.npos, "...");
    out_ << "  rank " << rank << " ended early";
    if (!trace.events.empty())
      out_ << " behind #" << trace.events.size() - 1 << " "
           << VisibleLine(lines_.Text(rank, Length(trace.events) - 1, 1));
    out_ << (why.empty() ? "" : ": ") << VisibleLine(why) << "\n";
  }
  const EventLines& lines() const { return lines_; }

 private:
  size_t Take(EventAt at, std::set<int64_t>& shown) const {
    if (!Selected(at)) return 0;
    shown.insert(at.event);
    return 1;
  }
  bool Selected(EventAt at) const {
    const Trace& trace = run_.trace(at.rank);
    const Event& event = At(trace.events, at.event);
    if (!view_.stream.empty() &&
        (event.stream < 0 || At(trace.streams, event.stream) != view_.stream))
      return false;
    if (view_.only == "findings") return marks_.contains(at);
    return view_.only == "collectives" ? IsCollective(event)
           : view_.only == "memory"    ? IsMemory(event)
                                       : true;
  }

  const Analysis& run_;
  const ReplayView& view_;
  std::ostream& out_;
  const EventLines lines_;
  std::map<EventAt, char> marks_;
};

bool Has(const Run& run, int32_t rank, int64_t event) {
  return rank >= 0 && rank < Length(run.traces) && event >= 0 &&
         event < Length(At(run.traces, rank).events);
}

// The event that fails, and what is known of it.
struct Centre {
  EventAt at;
  int64_t begins = -1;  // the other side, on the same rank
};

void ShowOthers(const std::vector<EventAt>& others, Shower& shower, std::ostream& out) {
  if (others.empty()) return;
  out << "the same operation on the other ranks:\n";
  for (size_t i = 0; i < others.size() && i < kOtherRanks; ++i) {
    if (others[i].event >= 0) {
      shower.Line(others[i], 1);
    } else {
      out << "* rank " << others[i].rank << " never issues it\n";
    }
  }
  if (others.size() > kOtherRanks)
    out << "  and " << others.size() - kOtherRanks << " more ranks (--whole --only collectives)\n";
}

void ShowAccesses(const char* title, const std::vector<EventAt>& accesses, Shower& shower,
                  std::ostream& out) {
  if (accesses.empty()) return;
  out << title;
  for (const EventAt& access : accesses) shower.Line(access, kRangesShown);
}

void ShowOrder(const Analysis& run, const Centre& centre, std::ostream& out) {
  if (centre.begins >= 0) {
    const std::string missing =
        MissingOrder(run, centre.at.rank, std::min(centre.begins, centre.at.event),
                     std::max(centre.begins, centre.at.event));
    if (!missing.empty()) out << "missing order: " << VisibleLine(missing) << "\n";
  }
}

void ShowCentre(const Analysis& run, const Centre& centre, const ReplayView& view, Shower& shower,
                std::ostream& out) {
  const std::vector<EventAt> others = OnOtherRanks(run, centre.at);
  const std::vector<EventAt> accesses = LastAccesses(run, centre.at, kAccesses);
  const std::vector<EventAt> next = NextAccesses(run, centre.at, kAccesses);
  const std::vector<EventAt> held = HeldAt(run, centre.at, kHeld);
  shower.Mark(centre.at, '>');
  if (centre.begins >= 0) shower.Mark({centre.at.rank, centre.begins}, '*');
  for (const EventAt& other : others) shower.Mark(other, '*');
  for (const EventAt& access : accesses) shower.Mark(access, '*');
  for (const EventAt& access : next) shower.Mark(access, '*');
  for (const EventAt& block : held) shower.Mark(block, '*');
  const bool wide = view.around >= 0;
  std::vector<int64_t> centres = {centre.at.event};
  if (centre.begins >= 0) centres.push_back(centre.begins);
  shower.Windows(centre.at.rank, centres, wide ? 12 : 3, wide ? 12 : 2);
  ShowOrder(run, centre, out);
  ShowOthers(others, shower, out);
  if (centre.begins < 0)
    ShowAccesses("what it touches was last written, allocated or freed by:\n", accesses, shower,
                 out);
  ShowAccesses("what it allocates is next written or freed by:\n", next, shower, out);
  ShowAccesses("the largest blocks of device memory that are held then:\n", held, shower, out);
}

std::string Where(const EventAt& at) {
  return "rank " + std::to_string(at.rank) + ", event " + std::to_string(at.event);
}

// Where the finding is; if it names no event, where its rank's entry call failed. Event -1:
// nowhere.
EventAt PlaceOf(const Run& run, const Finding& finding) {
  if (Has(run, finding.rank, finding.event)) return {finding.rank, finding.event};
  if (!Has(run, finding.rank, 0)) return {};
  const std::vector<Event>& events = At(run.traces, finding.rank).events;
  for (int64_t i = 0; i < Length(events); ++i) {
    if (At(events, i).kind == EventKind::kCallEnd && At(events, i).status != SPF_OK)
      return {finding.rank, i};
  }
  return {};
}

void ShowWithoutEvent(const ReportedFinding& row, std::ostream& out) {
  const std::string message = VisibleLine(row.finding.message);
  if (row.partner.empty()) {
    out << "  the finding names no event: " << message << "\n";
  } else {
    out << "  " << message << "\n  replay shows this case's run; what the other one does:\n"
        << "    " << VisibleLine(row.partner) << "\n";
  }
}

// Answers whether there was anything to show.
bool ShowFinding(const Analysis& run, const CaseReport& report, const ReplayView& view,
                 Shower& shower, std::ostream& out) {
  const std::vector<ToldFinding> told = TellFindings(report, false);
  if (told.empty()) return false;
  const Finding& finding = told.front().finding();
  out << VisibleLine(report.id) << ": " << BrokenBy(told.front());
  const EventAt at = PlaceOf(run.run(), finding);
  if (at.event >= 0) out << " at " << Where(at);
  if (told.size() > 1)
    out << ", the first of " << told.size()
        << " findings (--around EVENT --rank RANK: another one)";
  out << "\n";
  if (at.event >= 0) {
    Centre centre{at, -1};
    if (finding.begins != at.event && Has(run.run(), finding.rank, finding.begins))
      centre.begins = finding.begins;
    ShowCentre(run, centre, view, shower, out);
  } else {
    ShowWithoutEvent(*told.front().row, out);
  }
  size_t ended = 0;
  for (int32_t rank = 0; rank < run.ranks(); ++rank) {
    if (run.trace(rank).end == TraceEnd::kComplete) continue;
    if (++ended <= kOtherRanks) shower.End(rank);
  }
  out << "(> fails, * has part in it; --whole: all events)\n\n";
  return true;
}

size_t AllEvents(const Run& run) {
  size_t events = 0;
  for (const Trace& trace : run.traces) events += trace.events.size();
  return events;
}

}  // namespace

std::pair<int32_t, int64_t> FirstPlace(const Run& run, const CaseReport& report) {
  const std::vector<ToldFinding> told = TellFindings(report, false);
  if (told.empty()) return {-1, -1};
  const EventAt at = PlaceOf(run, told.front().finding());
  return {at.rank, at.event};
}

void CheckView(const Run& run, const ReplayView& view) {
  if (view.rank >= Length(run.traces)) {
    throw std::invalid_argument("--rank " + std::to_string(view.rank) + ": the run has " +
                                std::to_string(run.traces.size()) + " ranks");
  }
  const int32_t rank = std::max(view.rank, 0);
  if (view.around >= 0 && !Has(run, rank, view.around)) {
    throw std::invalid_argument(
        "--around " + std::to_string(view.around) + ": rank " + std::to_string(rank) + " has " +
        std::to_string(run.traces.empty() ? 0 : At(run.traces, rank).events.size()) +
        " events (--rank chooses another rank)");
  }
  if (view.stream.empty()) return;
  std::set<std::string> streams;
  for (const Trace& trace : run.traces) streams.insert(trace.streams.begin(), trace.streams.end());
  if (streams.contains(view.stream)) return;
  std::string known;
  for (const std::string& stream : streams) known += (known.empty() ? "" : ", ") + stream;
  throw std::invalid_argument("--stream " + view.stream + ": the streams of the run are " + known);
}

void ShowRun(const Run& run, const CaseReport& report, const ReplayView& view, std::ostream& out) {
  const Analysis analysis(run);
  Shower shower(analysis, view, out);
  if (view.whole) {
    for (const ToldFinding& told : TellFindings(report, false))
      shower.Mark(PlaceOf(run, told.finding()), '>');
    return shower.List();
  }
  if (view.around >= 0) {
    const Centre centre{{std::max(view.rank, 0), view.around}, -1};
    out << VisibleLine(report.id) << ": " << Where(centre.at) << "\n";
    return ShowCentre(analysis, centre, view, shower, out);
  }
  if (ShowFinding(analysis, report, view, shower, out)) return;
  const bool selects = view.rank >= 0 || !view.stream.empty() || !view.only.empty();
  if (selects && view.only != "findings") return shower.List();
  out << VisibleLine(report.id) << ": nothing was found in " << AllEvents(run)
      << " events (--whole: all of them; --around EVENT --rank RANK: a neighbourhood)\n";
}

}  // namespace shardproof
