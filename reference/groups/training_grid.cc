#include "reference/groups/training_grid.h"

namespace reference {
namespace {

int32_t Quotient(int32_t ranks, int32_t product, const std::string& what) {
  if (product < 1 || ranks < 1 || ranks % product != 0) {
    throw GridError("a grid of " + std::to_string(ranks) + " ranks is not divisible by " + what +
                    " = " + std::to_string(product));
  }
  return ranks / product;
}

}  // namespace

std::vector<GroupFamily> FamiliesOf(const GridSizes& s, int32_t world) {
  for (const auto& [name, size] :
       AxisSizes{{"tp", s.tp}, {"cp", s.cp}, {"ep", s.ep}, {"pp", s.pp}, {"etp", s.etp}}) {
    if (size < 1) throw GridError(name + " = " + std::to_string(size) + "; it must be at least 1");
  }
  const int32_t dp = Quotient(s.span, s.tp * s.cp * s.pp, "tp * cp * pp");
  const int32_t edp = Quotient(s.span, s.etp * s.ep * s.pp, "etp * ep * pp");
  RankGrid grid = RankGrid::FromOrder(
      s.order, {{"tp", s.tp}, {"cp", s.cp}, {"ep", 1}, {"dp", dp}, {"pp", s.pp}}, s.offset, world);
  // Both factorisations share the pipeline groups; an order that makes them differ is refused here.
  grid.AddViewInOrder("expert", s.order,
                      {{"tp", s.etp}, {"cp", 1}, {"ep", s.ep}, {"dp", edp}, {"pp", s.pp}}, {"pp"});
  std::vector<GroupFamily> families = {
      {"dp_cp", grid.Groups("dp-cp")},
      {"dp", grid.Groups("dp")},
      {"cp", grid.Groups("cp")},
      {"tp", grid.Groups("tp")},
      {"pp", grid.Groups("pp")},
      {"ep", grid.Groups("ep", "expert")},
      {"expt_dp", grid.Groups("dp", "expert")},
      {"expt_tp", grid.Groups("tp", "expert")},
  };
  if (s.optimizer_instances < 1) {
    throw GridError("num_optimizer_instances = " + std::to_string(s.optimizer_instances) +
                    "; it must be at least 1");
  }
  if (s.optimizer_instances == 1) return families;
  for (const char* name : {"dp_cp", "expt_dp"}) {
    const RankLists& full = FamilyNamed(families, name).lists;
    HybridSplit split = SplitHybrid(full, s.optimizer_instances, name);
    families.push_back({std::string("intra_") + name, std::move(split.inner)});
    families.push_back({std::string("inter_") + name, std::move(split.outer)});
  }
  return families;
}

const GroupFamily& FamilyNamed(const std::vector<GroupFamily>& families, const std::string& name) {
  for (const GroupFamily& family : families) {
    if (family.name == name) return family;
  }
  throw GridError("there is no group family " + name);
}

namespace {

const GroupFamily& ReducingOf(const std::vector<GroupFamily>& families, const std::string& name) {
  for (const GroupFamily& family : families) {
    if (family.name == "intra_" + name) return family;
  }
  return FamilyNamed(families, name);
}

}  // namespace

GroupFamily TwinOf(const std::vector<GroupFamily>& families, bool expert) {
  const std::string name = expert ? "expt_dp" : "dp_cp";
  return {name + "_ag", ReducingOf(families, name).lists};
}

GroupFamily ReshardOf(const std::vector<GroupFamily>& families, int32_t n) {
  const GroupFamily& reducing = ReducingOf(families, "dp_cp");
  return {"dp_cp_reshard", SplitForBackward(reducing.lists, n, reducing.name)};
}

}  // namespace reference
