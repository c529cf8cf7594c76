// part_reader.h: how is a long run read in parts of which each can be judged alone?
//
// README.md says what a part is, and why it can.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/checks/parts/ledger.h"
#include "conformance/checks/parts/progress.h"
#include "conformance/checks/parts/rest.h"
#include "conformance/checks/parts/small_numbers.h"
#include "conformance/trace/trace_cursor.h"

namespace shardproof::parts {

struct PartSize {
  int64_t least = 20'000;  // events of a part, of all ranks together
  int64_t carried = 8;     // times what a rank's part repeats: tables, and rows for what lives
};

class PartReader {
 public:
  // ranks: by rank, all of one world.
  PartReader(std::vector<std::unique_ptr<TraceCursor>> ranks, const PartSize& size);

  // The traces of the next part, by rank; empty: there is none, or whole() says why not. From the
  // second part on blocks, events, requests and hand-overs have other numbers. Throws TraceError.
  std::vector<Trace> Next();
  // Empty: what was read can be judged in parts. Else why the run must be judged whole.
  const std::string& whole() const { return whole_; }
  // Parts that were given out; only one: it is the whole run.
  int64_t parts() const { return parts_; }
  bool done() const { return done_; }

  // Of each rank, when all is read: a trace of its entry calls alone, with its end.
  std::vector<Trace> Ends() const;

 private:
  struct Rank {
    std::unique_ptr<TraceCursor> cursor;
    std::unique_ptr<Ledger> ledger;
    RestWatch rest;
    SmallNames names;
    int64_t rows = 0;  // since the cut
    bool ended = false;
  };

  bool Read(Rank& rank);
  void ReadToRest(Rank& rank, int64_t least);
  bool ReadToMeeting();
  void ReadToEnd();
  int64_t LeastOf(const Rank& rank) const;
  void Whole(const std::string& why);
  void WholeAtTheEnd();
  std::vector<Trace> Cut();

  std::vector<Rank> ranks_;
  Progress progress_;
  const PartSize size_;
  int64_t parts_ = 0;
  bool done_ = false;
  std::string whole_;
};

}  // namespace shardproof::parts
