#include "conformance/checks/parts/part_reader.h"

#include <algorithm>
#include <map>
#include <utility>

#include "conformance/common/at.h"

namespace shardproof::parts {

PartReader::PartReader(std::vector<std::unique_ptr<TraceCursor>> ranks, const PartSize& size)
    : progress_(ranks.size()), size_(size) {
  for (std::unique_ptr<TraceCursor>& cursor : ranks) {
    Rank& rank = ranks_.emplace_back();
    rank.cursor = std::move(cursor);
    rank.ledger = std::make_unique<Ledger>(rank.cursor->trace());
  }
}

void PartReader::Whole(const std::string& why) {
  if (whole_.empty()) whole_ = why;
}

// Reads a row. False: there was none, or the run must be judged whole.
bool PartReader::Read(Rank& rank) {
  if (rank.ended || !whole_.empty()) return false;
  if (!rank.cursor->Next()) {
    rank.ended = true;
    return false;
  }
  ++rank.rows;
  Trace& trace = rank.cursor->trace();
  Event& event = trace.events.back();
  rank.ledger->See(event);
  rank.rest.See(event);
  progress_.See(trace, event);
  if (parts_ > 0) rank.names.Rename(trace, event);
  if (!rank.ledger->whole().empty()) Whole(rank.ledger->whole());
  if (!rank.rest.broken().empty())
    Whole("rank " + std::to_string(trace.rank) + ": " + rank.rest.broken());
  if (progress_.disputed()) Whole("ranks do not agree on the members of a communicator");
  return whole_.empty();
}

// What a part repeats must be small beside what it holds.
int64_t PartReader::LeastOf(const Rank& rank) const {
  const Trace& trace = rank.cursor->trace();
  const size_t carried = rank.ledger->live() + trace.groups.size() + trace.strings.size();
  return std::max(size_.least / static_cast<int64_t>(ranks_.size()),
                  size_.carried * static_cast<int64_t>(carried));
}

void PartReader::ReadToRest(Rank& rank, int64_t least) {
  while (Read(rank)) {
    if (rank.rows >= least && rank.ledger->may_cut() && rank.rest.AtRest()) return;
  }
}

// Where all ranks are at rest and in the same place. False: one has come to its end.
bool PartReader::ReadToMeeting() {
  for (Rank& rank : ranks_) {
    ReadToRest(rank, LeastOf(rank));
    if (rank.ended || !whole_.empty()) return false;
  }
  for (int32_t behind = progress_.Behind(); behind >= 0; behind = progress_.Behind()) {
    Rank& rank = At(ranks_, behind);
    ReadToRest(rank, 0);
    if (rank.ended || !whole_.empty()) return false;
  }
  return true;
}

void PartReader::ReadToEnd() {
  for (Rank& rank : ranks_) {
    while (Read(rank)) {
    }
  }
  done_ = whole_.empty();
  if (done_) WholeAtTheEnd();
}

// What only all ranks, or the end, can tell. Of a run in one part nothing is lost.
void PartReader::WholeAtTheEnd() {
  if (parts_ == 0) return;
  std::map<std::string, int> uses;
  for (Rank& rank : ranks_) {
    rank.ledger->SeeTables();
    if (!rank.ledger->whole().empty()) Whole(rank.ledger->whole());
    if (rank.cursor->trace().end != TraceEnd::kComplete) Whole("the run was ended early");
    for (const auto& [comm, how] : rank.ledger->UsesOfCommunicators()) uses[comm] |= how;
  }
  for (const auto& [comm, how] : uses) {
    if (how == 3) Whole("communicator \"" + comm + "\" is used by the host and from streams");
  }
}

std::vector<Trace> PartReader::Cut() {
  std::vector<Trace> part;
  ++parts_;
  for (Rank& rank : ranks_) {
    part.push_back(rank.cursor->Take());
    rank.rows = 0;
    if (done_) continue;
    part.back().end = TraceEnd::kComplete;
    rank.ledger->Cut();
    rank.rest.Cut();
    rank.names.Cut();
    Trace& next = rank.cursor->trace();
    rank.ledger->Begin(next, rank.rest.thread());
    for (Event& event : next.events) rank.names.Rename(next, event);
  }
  progress_.Cut();
  return part;
}

std::vector<Trace> PartReader::Next() {
  if (done_ || !whole_.empty()) return {};
  if (!ReadToMeeting()) ReadToEnd();
  if (!whole_.empty()) return {};
  return Cut();
}

std::vector<Trace> PartReader::Ends() const {
  std::vector<Trace> ends;
  for (const Rank& rank : ranks_) {
    Trace& end = ends.emplace_back();
    const Trace& trace = rank.cursor->trace();
    end.rank = trace.rank;
    end.world = trace.world;
    end.case_id = trace.case_id;
    end.provides = trace.provides;
    end.end = trace.end;
    end.end_reason = trace.end_reason;
    end.strings = trace.strings;
    end.events = rank.ledger->calls();
  }
  return ends;
}

}  // namespace shardproof::parts
