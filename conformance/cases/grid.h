// grid.h: which ranks of an instance are together, in closed form?
//
// A grid numbers its ranks in mixed radix: the leftmost axis has the smallest stride. For a set S
// of axes there is one group per combination of the digits outside S (leftmost of them fastest),
// and a group's members enumerate the digits inside S (leftmost fastest): rank = offset + sum of
// digit * stride. Requirements PG-*.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "conformance/cases/case.h"

namespace shardproof {

using RankList = std::vector<int32_t>;

struct GridAxis {
  std::string name;
  int32_t size = 1;
};

struct RankGrid {
  int32_t offset = 0;
  std::vector<GridAxis> axes;  // smallest stride first

  // All groups of this set of axes. Names without an axis count as axes of size 1.
  std::vector<RankList> Groups(const std::set<std::string>& names) const;
};

// The tokens of "tp-cp-dp", in order; an empty text has none.
std::vector<std::string> SplitOrder(const std::string& order);

// Why this instance's axes make no grid over its span (order, sizes, divisibility); empty: they do.
std::string GridProblem(const InstanceSpec& spec);

// The dense grid tp, cp, dp, pp (ep = 1) and the expert grid etp, ep, edp, pp with cp folded into
// edp; in both "dp" is what is left of the span. REQUIRES: GridProblem(spec).empty().
RankGrid DenseGrid(const InstanceSpec& spec);
RankGrid ExpertGrid(const InstanceSpec& spec);

// Cuts each list into n contiguous chunks (inner) or takes the same position of every chunk
// (outer). REQUIRES: n divides the length of each list.
std::vector<RankList> InnerChunks(const std::vector<RankList>& lists, int32_t n);
std::vector<RankList> OuterLists(const std::vector<RankList>& lists, int32_t n);

// What a twin of these reducing groups would be that is right, or wrong in this way. `full` are the
// same groups before the HSDP cut, `again` the reducing groups when derived with the default order.
std::vector<RankList> TwinLists(const Choice<GatherTwin>& twin,
                                const std::vector<RankList>& reducing,
                                const std::vector<RankList>& full,
                                const std::vector<RankList>& again);
// Why dense parameters cannot be shared out over so many ranks between forward and backward; empty:
// they can. REQUIRES: GridProblem(spec).empty().
std::string ReshardProblem(const InstanceSpec& spec);
// The twin that is wrong in a case with a wrong one: "dp_cp_ag" or "expt_dp_ag".
std::string WrongTwin(const InstanceSpec& spec);

// A family by world rank, for whoever asks often. The family outlives it.
class FamilyIndex {
 public:
  explicit FamilyIndex(const GroupFamily& family);
  // -1, null: the rank is in none of its lists.
  int32_t Index(int32_t world_rank) const;
  const RankList* List(int32_t world_rank) const;

 private:
  struct Seat {
    int32_t list = -1, index = -1;
  };
  const Seat* SeatOf(int32_t world_rank) const;
  const GroupFamily& family_;
  std::vector<Seat> seats_;  // by world rank
};

}  // namespace shardproof
