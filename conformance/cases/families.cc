// The named groups of an instance: case.h's GroupFamilies and what is read off them.
#include <algorithm>

#include "conformance/cases/grid.h"

namespace shardproof {
namespace {

// The lists that reduce the gradients of a buffer: the inner ones when HSDP cuts the full ones.
std::vector<RankList> Reducing(const std::vector<RankList>& full, int32_t outer) {
  return outer > 1 ? InnerChunks(full, outer) : full;
}

bool Divides(int32_t outer, const std::vector<RankList>& lists) {
  return outer >= 1 && static_cast<int32_t>(lists.front().size()) % outer == 0;
}

// The reducing lists as an implementation gets them that forgets the order that was asked for.
InstanceSpec WithDefaultOrder(InstanceSpec spec) {
  spec.order = InstanceSpec{}.order;
  return spec;
}

}  // namespace

int32_t DpCpSize(const InstanceSpec& spec) {
  return std::max(1, spec.span / std::max(1, spec.tp * spec.pp));
}

std::string ReshardProblem(const InstanceSpec& spec) {
  const int32_t ranks = DpCpSize(spec) / std::max(1, spec.outer);
  const int32_t n = spec.reshard_after_forward;
  if (n == 0 || n == 1 || (n > 1 && n < ranks && ranks % n == 0)) return "";
  return "reshard_after_forward = " + std::to_string(n) + " must divide the " +
         std::to_string(ranks) + " ranks that shard dense parameters, and be less";
}

std::vector<GroupFamily> GroupFamilies(const InstanceSpec& given, int32_t world) {
  InstanceSpec spec = given;
  if (spec.span == 0) spec.span = world - spec.offset;
  if (!GridProblem(spec).empty()) return {};
  const RankGrid dense = DenseGrid(spec), expert = ExpertGrid(spec);
  const std::vector<RankList> dp_cp = dense.Groups({"dp", "cp"}), expt_dp = expert.Groups({"dp"});
  std::vector<GroupFamily> families{
      {"dp_cp", dp_cp},
      {"dp", dense.Groups({"dp"})},
      {"cp", dense.Groups({"cp"})},
      {"tp", dense.Groups({"tp"})},
      {"pp", dense.Groups({"pp"})},
      {"ep", expert.Groups({"ep"})},
      {"expt_dp", expt_dp},
      {"expt_tp", expert.Groups({"tp"})},
  };
  if (!Divides(spec.outer, dp_cp) || !Divides(spec.outer, expt_dp)) return families;
  if (spec.outer > 1) {
    families.push_back({"intra_dp_cp", InnerChunks(dp_cp, spec.outer)});
    families.push_back({"inter_dp_cp", OuterLists(dp_cp, spec.outer)});
    families.push_back({"intra_expt_dp", InnerChunks(expt_dp, spec.outer)});
    families.push_back({"inter_expt_dp", OuterLists(expt_dp, spec.outer)});
  }
  if (ReshardsToFewer(spec) && ReshardProblem(spec).empty()) {
    const auto n = static_cast<int32_t>(Reducing(dp_cp, spec.outer).front().size());
    families.push_back({"dp_cp_reshard",
                        InnerChunks(Reducing(dp_cp, spec.outer), n / spec.reshard_after_forward)});
  }
  if (spec.twin == GatherTwin::kNone) return families;
  const InstanceSpec forgetful = WithDefaultOrder(spec);
  const auto twins = [&](const Choice<GatherTwin>& how, const std::vector<RankList>& full,
                         const std::vector<RankList>& again) {
    return TwinLists(how, Reducing(full, spec.outer), full, Reducing(again, spec.outer));
  };
  if (HasTwin(spec, false)) {
    families.push_back(
        {"dp_cp_ag", twins(spec.twin, dp_cp, DenseGrid(forgetful).Groups({"dp", "cp"}))});
  }
  if (!HasExperts(spec) || !HasTwin(spec, true)) return families;
  if (spec.twin == GatherTwin::kExpertDense) {
    families.push_back({"expt_dp_ag", Reducing(dp_cp, spec.outer)});
    return families;
  }
  Choice<GatherTwin> how = spec.twin;
  if (how == GatherTwin::kExpertPermuted) how = GatherTwin::kPermuted;
  families.push_back({"expt_dp_ag", twins(how, expt_dp, ExpertGrid(forgetful).Groups({"dp"}))});
  return families;
}

std::string WrongTwin(const InstanceSpec& spec) {
  const bool experts =
      spec.twin == GatherTwin::kExpertPermuted || spec.twin == GatherTwin::kExpertDense;
  return experts ? "expt_dp_ag" : "dp_cp_ag";
}

FamilyIndex::FamilyIndex(const GroupFamily& family) : family_(family) {
  for (size_t list = 0; list < family.lists.size(); ++list) {
    const RankList& ranks = family.lists[list];
    for (size_t index = 0; index < ranks.size(); ++index) {
      const auto rank = static_cast<size_t>(ranks[index]);
      if (seats_.size() <= rank) seats_.resize(rank + 1);
      if (seats_[rank].list >= 0) continue;  // as IndexIn: the first list that has it
      seats_[rank] = {static_cast<int32_t>(list), static_cast<int32_t>(index)};
    }
  }
}

const FamilyIndex::Seat* FamilyIndex::SeatOf(int32_t world_rank) const {
  const auto rank = static_cast<size_t>(world_rank);
  return rank < seats_.size() && seats_[rank].list >= 0 ? &seats_[rank] : nullptr;
}

int32_t FamilyIndex::Index(int32_t world_rank) const {
  const Seat* seat = SeatOf(world_rank);
  return seat == nullptr ? -1 : seat->index;
}

const RankList* FamilyIndex::List(int32_t world_rank) const {
  const Seat* seat = SeatOf(world_rank);
  return seat == nullptr ? nullptr : &family_.lists[static_cast<size_t>(seat->list)];
}

int32_t IndexIn(const GroupFamily& family, int32_t world_rank, const std::vector<int32_t>** list) {
  if (list != nullptr) *list = nullptr;
  for (const RankList& candidate : family.lists) {
    const auto at = std::find(candidate.begin(), candidate.end(), world_rank);
    if (at == candidate.end()) continue;
    if (list != nullptr) *list = &candidate;
    return static_cast<int32_t>(at - candidate.begin());
  }
  return -1;
}

}  // namespace shardproof
