#include "conformance/checks/symmetry/random_world.h"

#include <algorithm>
#include <string>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof::symmetry {
namespace {

enum class Kind : uint8_t { kGather, kReduce, kBroadcast, kExchange, kShift, kHandOver, kSync };

// One step of the program, the same words on each rank.
struct Step {
  Kind kind = Kind::kGather;
  int comm = 0;  // 0 row, 1 column, 2 all, 3 pair of neighbours
  int stream = 0, other_stream = 0;
  int count = 4, root = 0;
  int only = -1;  // ranks of this column parity (0, 1) take the other stream; -1: none do
};

class Drawer {
 public:
  explicit Drawer(std::mt19937& random) : random_(random) {}

  std::vector<Trace> Draw() {
    static constexpr int kSides[] = {1, 2, 2, 3, 4, 4, 8};
    do {
      rows_ = kSides[Pick(7)];
      columns_ = kSides[Pick(7)];
    } while (rows_ * columns_ < 2);
    streams_ = 2 + Pick(2);
    std::vector<Step> program;
    const int steps = 2 + Pick(8);
    for (int i = 0; i < steps; ++i) program.push_back(Draw1());
    std::vector<std::vector<Step>> ranks(static_cast<size_t>(rows_ * columns_), program);
    const int changed = Pick(4);  // 0: none
    for (int i = 0; i < changed; ++i) Change(ranks);
    std::vector<Trace> traces;
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      traces.push_back(Write(static_cast<int>(rank), ranks[rank]));
    return traces;
  }

 private:
  int Pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  Step Draw1() {
    Step step;
    static constexpr Kind kKinds[] = {Kind::kGather,    Kind::kGather,   Kind::kReduce,
                                      Kind::kBroadcast, Kind::kExchange, Kind::kHandOver,
                                      Kind::kHandOver,  Kind::kSync,     Kind::kShift};
    step.kind = kKinds[Pick(Pick(4) == 0 ? 9 : 8)];
    step.comm = Pick(4);
    step.stream = Pick(streams_);
    step.other_stream = Pick(streams_);
    if (Pick(6) == 0) step.only = Pick(2);
    return step;
  }

  // Of one rank, or of all of a row.
  void Change(std::vector<std::vector<Step>>& ranks) {
    const int rank = Pick(rows_ * columns_), how = Pick(5);
    const bool row = Pick(5) == 0;
    const auto a = static_cast<size_t>(Pick(static_cast<int>(ranks[0].size()))),
               b = static_cast<size_t>(Pick(static_cast<int>(ranks[0].size())));
    const int stream = Pick(streams_);
    for (int other = 0; other < rows_ * columns_; ++other) {
      if (other != rank && !(row && other / columns_ == rank / columns_)) continue;
      std::vector<Step>& steps = ranks[static_cast<size_t>(other)];
      if (a >= steps.size() || b >= steps.size()) continue;
      if (how <= 1) std::swap(steps[a], steps[b]);
      if (how == 2 && steps.size() > 1) steps.erase(steps.begin() + static_cast<long>(a));
      if (how == 3) (Pick(2) ? steps[a].root : steps[a].count) += 1;
      if (how == 4) steps[a].stream = stream;
    }
  }

  std::vector<int32_t> Members(int comm, int rank) const {
    const int row = rank / columns_, column = rank % columns_;
    std::vector<int32_t> members;
    for (int other = 0; other < rows_ * columns_; ++other) {
      const int r = other / columns_, c = other % columns_;
      const bool in = comm == 0   ? r == row
                      : comm == 1 ? c == column
                      : comm == 2 ? true
                                  : r == row && c / 2 == column / 2;
      if (in) members.push_back(other);
    }
    return members;
  }

  Trace Write(int rank, const std::vector<Step>& steps) const {
    TraceBuilder t(rank, rows_ * columns_);
    std::vector<int> groups;
    std::vector<std::vector<int32_t>> members;
    for (int comm = 0; comm < 4; ++comm) {
      members.push_back(Members(comm, rank));
      groups.push_back(t.Group("c" + std::to_string(comm), members.back()));
    }
    std::vector<int> streams;
    for (int s = 0; s < streams_; ++s) streams.push_back(t.Stream("s" + std::to_string(s)));
    for (const Step& step : steps) {
      const int parity = rank % columns_ % 2;
      const int on =
          streams[static_cast<size_t>(step.only == parity ? step.other_stream : step.stream)];
      const auto comm = static_cast<size_t>(step.comm);
      const int n = static_cast<int>(members[comm].size());
      CollectiveOptions options;
      switch (step.kind) {
        case Kind::kGather:
          t.Collective(SPF_ALL_GATHER, groups[comm], on, step.count);
          break;
        case Kind::kReduce:
          t.Collective(SPF_ALL_REDUCE, groups[comm], on, step.count);
          break;
        case Kind::kBroadcast:
          options.peer = step.root % n;
          t.Collective(SPF_BROADCAST, groups[comm], on, step.count, {}, options);
          break;
        case Kind::kExchange:
          options.send_counts = options.recv_counts =
              std::vector<int64_t>(static_cast<size_t>(n), step.count);
          t.Collective(SPF_ALL_TO_ALL_V, groups[comm], on, 0, {}, options);
          break;
        case Kind::kShift:
          Shift(t, rank, groups[0], on, step.count);
          break;
        case Kind::kHandOver: {
          const int event = t.EventCreate();
          t.Record(event, streams[static_cast<size_t>(step.other_stream)]);
          t.Wait(event, on);
          break;
        }
        case Kind::kSync:
          t.StreamSync(on);
          break;
      }
    }
    return t.Done();
  }

  // To the right along the row: evens send, odds receive.
  void Shift(TraceBuilder& t, int rank, int row, int stream, int count) const {
    const int column = rank % columns_;
    CollectiveOptions options;
    const bool sends = column % 2 == 0;
    options.peer = sends ? column + 1 : column - 1;
    if (options.peer >= columns_) return;
    t.Collective(sends ? SPF_SEND : SPF_RECV, row, stream, count, {}, options);
  }

  std::mt19937& random_;
  int rows_ = 1, columns_ = 1, streams_ = 2;
};

}  // namespace

std::vector<Trace> DrawWorld(std::mt19937& random) { return Drawer(random).Draw(); }

}  // namespace shardproof::symmetry
