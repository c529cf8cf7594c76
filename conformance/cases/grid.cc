#include "conformance/cases/grid.h"

#include <algorithm>
#include <map>

namespace shardproof {
namespace {

int32_t Product(const std::vector<GridAxis>& axes) {
  int32_t product = 1;
  for (const GridAxis& axis : axes) product *= axis.size;
  return product;
}

// Sums of digit * stride over these axes, first axis fastest.
RankList Offsets(const std::vector<GridAxis>& axes, const std::vector<int32_t>& strides) {
  RankList offsets(static_cast<size_t>(Product(axes)), 0);
  for (size_t i = 0; i < offsets.size(); ++i) {
    int32_t rest = static_cast<int32_t>(i);
    for (size_t a = 0; a < axes.size(); ++a) {
      offsets[i] += rest % axes[a].size * strides[a];
      rest /= axes[a].size;
    }
  }
  return offsets;
}

RankGrid MakeGrid(const InstanceSpec& spec, const std::map<std::string, int32_t>& sizes) {
  RankGrid grid;
  grid.offset = spec.offset;
  for (const std::string& token : SplitOrder(spec.order))
    grid.axes.push_back({token, sizes.at(token)});
  for (const auto& [name, size] : sizes) {
    const bool listed =
        std::any_of(grid.axes.begin(), grid.axes.end(),
                    [&name = name](const GridAxis& axis) { return axis.name == name; });
    if (!listed) grid.axes.push_back({name, size});
  }
  return grid;
}

std::string OrderProblem(const InstanceSpec& spec) {
  std::set<std::string> seen;
  for (const std::string& token : SplitOrder(spec.order)) {
    if (!std::set<std::string>{"tp", "cp", "ep", "dp", "pp"}.count(token)) {
      return "order " + spec.order + ": there is no axis '" + token +
             "'; use tp, cp, ep, dp and pp";
    }
    if (!seen.insert(token).second)
      return "order " + spec.order + ": axis " + token + " is listed twice";
  }
  return "";
}

}  // namespace

std::vector<RankList> RankGrid::Groups(const std::set<std::string>& names) const {
  std::vector<GridAxis> inside, outside;
  std::vector<int32_t> inside_strides, outside_strides;
  int32_t stride = 1;
  for (const GridAxis& axis : axes) {
    const bool in = names.count(axis.name) != 0;
    (in ? inside : outside).push_back(axis);
    (in ? inside_strides : outside_strides).push_back(stride);
    stride *= axis.size;
  }
  const RankList members = Offsets(inside, inside_strides);
  std::vector<RankList> groups;
  for (int32_t base : Offsets(outside, outside_strides)) {
    RankList group;
    for (int32_t member : members) group.push_back(offset + base + member);
    groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<std::string> SplitOrder(const std::string& order) {
  std::vector<std::string> tokens;
  for (size_t at = 0; at < order.size();) {
    const size_t end = std::min(order.find('-', at), order.size());
    tokens.push_back(order.substr(at, end - at));
    at = end + 1;
  }
  return tokens;
}

std::string GridProblem(const InstanceSpec& spec) {
  if (std::string problem = OrderProblem(spec); !problem.empty()) return problem;
  const std::map<std::string, int32_t> sizes{
      {"tp", spec.tp}, {"cp", spec.cp}, {"ep", spec.ep}, {"pp", spec.pp}, {"etp", spec.etp}};
  for (const auto& [name, size] : sizes) {
    if (size < 1) return name + " = " + std::to_string(size) + ": an axis has at least one rank";
  }
  const std::string span = std::to_string(spec.span) + " ranks";
  const int32_t dense = spec.tp * spec.cp * spec.pp, expert = spec.etp * spec.ep * spec.pp;
  if (spec.span % dense != 0)
    return span + " are not divisible by tp * cp * pp = " + std::to_string(dense);
  if (spec.span % expert != 0)
    return span + " are not divisible by etp * ep * pp = " + std::to_string(expert);
  const std::vector<std::string> tokens = SplitOrder(spec.order);
  const auto missing = [&](const char* axis) {
    return std::count(tokens.begin(), tokens.end(), axis) == 0;
  };
  for (const char* axis : {"tp", "cp", "ep", "pp"}) {
    if (sizes.at(axis) > 1 && missing(axis)) {
      return "order " + spec.order + " does not list " + axis + ", whose size is " +
             std::to_string(sizes.at(axis));
    }
  }
  if (spec.etp > 1 && missing("tp"))
    return "order " + spec.order + " does not list tp, but etp is larger than 1";
  if (missing("dp") && (spec.span != dense || spec.span != expert)) {
    return "order " + spec.order + " does not list dp, whose size is larger than 1";
  }
  if (DenseGrid(spec).Groups({"pp"}) != ExpertGrid(spec).Groups({"pp"})) {
    return "order " + spec.order + ": the pp groups of the dense and of the expert grid differ";
  }
  return "";
}

RankGrid DenseGrid(const InstanceSpec& spec) {
  return MakeGrid(spec, {{"tp", spec.tp},
                         {"cp", spec.cp},
                         {"ep", 1},
                         {"dp", spec.span / (spec.tp * spec.cp * spec.pp)},
                         {"pp", spec.pp}});
}

RankGrid ExpertGrid(const InstanceSpec& spec) {
  return MakeGrid(spec, {{"tp", spec.etp},
                         {"cp", 1},
                         {"ep", spec.ep},
                         {"dp", spec.span / (spec.etp * spec.ep * spec.pp)},
                         {"pp", spec.pp}});
}

std::vector<RankList> InnerChunks(const std::vector<RankList>& lists, int32_t n) {
  std::vector<RankList> chunks;
  for (const RankList& list : lists) {
    const auto size = static_cast<std::ptrdiff_t>(list.size()) / n;
    for (auto at = list.begin(); at != list.end(); at += size) chunks.emplace_back(at, at + size);
  }
  return chunks;
}

std::vector<RankList> OuterLists(const std::vector<RankList>& lists, int32_t n) {
  std::vector<RankList> result;
  for (const RankList& list : lists) {
    const size_t size = list.size() / static_cast<size_t>(n);
    for (size_t position = 0; position < size; ++position) {
      RankList outer;
      for (size_t at = position; at < list.size(); at += size) outer.push_back(list[at]);
      result.push_back(std::move(outer));
    }
  }
  return result;
}

std::vector<RankList> TwinLists(const Choice<GatherTwin>& twin,
                                const std::vector<RankList>& reducing,
                                const std::vector<RankList>& full,
                                const std::vector<RankList>& again) {
  if (twin == GatherTwin::kFullSpan) return full;
  if (twin == GatherTwin::kDefaultOrder) return again;
  std::vector<RankList> twins = reducing;
  for (RankList& list : twins) {
    if (twin == GatherTwin::kPermuted) std::rotate(list.begin(), list.begin() + 1, list.end());
    if (twin == GatherTwin::kShort && list.size() > 1) list.pop_back();
  }
  return twins;
}

}  // namespace shardproof
