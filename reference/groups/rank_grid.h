// rank_grid.h: which ranks form which group?
//
// A grid names the axes of parallelism, the leftmost with the smallest stride. A rank is a
// mixed-radix number:
//     rank = offset + sum over axes of digit(axis) * stride(axis)
// The groups of a set of axes S: one group per combination of the axes outside S (leftmost
// fastest); its members run through the axes in S (leftmost fastest). The set is a set: the order
// of its names does not matter. Requirements PG-*; Megatron-LM parallel_state.RankGenerator and
// hyper_comm_grid.HyperCommGrid enumerate alike.
#pragma once
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace reference {

// A grid, a view or a group cannot exist. what() names the offending name and value.
struct GridError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

using RankList = std::vector<int32_t>;
using RankLists = std::vector<RankList>;
using AxisSizes = std::map<std::string, int32_t>;

// "tp-cp-ep" -> {tp, cp, ep}, lower-cased. Throws GridError on an empty or repeated name.
std::vector<std::string> SplitAxes(std::string_view text);

class RankGrid {
 public:
  // names[i] has sizes[i] coordinates. The grid covers ranks [offset, offset + product of sizes) of
  // the world.
  RankGrid(const std::vector<int32_t>& sizes, const std::vector<std::string>& names, int32_t offset,
           int32_t world);

  // From an order such as "tp-cp-ep-dp-pp". Axes of size 1 that the order does not name are
  // appended; an axis with more than one coordinate must be named (by its whole name: "tp" is not
  // in "gtp").
  static RankGrid FromOrder(std::string_view order, const AxisSizes& sizes, int32_t offset,
                            int32_t world);
  // The same for a view.
  void AddViewInOrder(const std::string& view, std::string_view order, const AxisSizes& sizes,
                      const std::vector<std::string>& shared);

  // Another factorisation of the same span of ranks, for instance the expert grid over the dense
  // one. Every shared axis, and all of them together, must enumerate the same groups in both.
  void AddView(const std::string& view, const std::vector<int32_t>& sizes,
               const std::vector<std::string>& names, const std::vector<std::string>& shared);

  // All groups of a set of axes ("dp-cp") of the base grid (view "") or of a view, in canonical
  // order.
  RankLists Groups(std::string_view axes, std::string_view view = "") const;

 private:
  struct Axes {
    std::vector<int32_t> sizes;
    std::vector<std::string> names, shared;
    int32_t size() const;
    size_t IndexOf(const std::string& name) const;  // names.size() if absent
  };
  static Axes InOrder(std::string_view order, const AxisSizes& sizes);
  static void CheckAxes(const Axes& axes, const std::string& what);
  static std::vector<bool> Mask(const Axes& axes, std::string_view set);
  static RankLists Enumerate(const Axes& axes, const std::vector<bool>& in_set, int32_t offset);
  const Axes& Find(std::string_view view) const;

  Axes base_;
  std::map<std::string, Axes, std::less<>> views_;
  int32_t offset_;
};

// The list that contains the rank, or an empty one.
RankList ListOf(const RankLists& lists, int32_t rank);

}  // namespace reference
