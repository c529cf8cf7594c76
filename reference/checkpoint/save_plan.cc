#include "reference/checkpoint/save_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "reference/checkpoint/file_system.h"

namespace reference {
namespace {

struct Holding {
  int32_t rank = 0;
  const TensorSlice* slice = nullptr;
  bool Contains(int64_t begin, int64_t end) const {
    return slice->offset <= begin && end <= slice->offset + slice->count;
  }
};

[[noreturn]] void Refuse(const std::string& tensor, const std::string& what) {
  throw CheckpointError("cannot save tensor " + tensor + ": " + what);
}

void CheckFacts(const std::string& tensor, const std::vector<Holding>& holdings) {
  const Holding& first = holdings.front();
  for (const Holding& other : holdings) {
    if (other.slice->facts == first.slice->facts) continue;
    Refuse(tensor, "it is " + first.slice->facts.Text() + " on rank " + std::to_string(first.rank) +
                       " and " + other.slice->facts.Text() + " on rank " +
                       std::to_string(other.rank));
  }
}

// Cuts the tensor wherever some rank's part begins or ends.
void PlanTensor(const std::string& tensor, const std::vector<Holding>& holdings,
                std::vector<uint64_t>& load, SavePlan& plan) {
  CheckFacts(tensor, holdings);
  const TensorFacts& facts = holdings.front().slice->facts;
  std::set<int64_t> cuts{0, facts.numel()};
  for (const Holding& h : holdings) {
    cuts.insert(h.slice->offset);
    cuts.insert(h.slice->offset + h.slice->count);
  }
  if (*cuts.begin() < 0 || *cuts.rbegin() > facts.numel())
    Refuse(tensor, facts.Text() + " has no elements from " + std::to_string(*cuts.begin()) +
                       " to " + std::to_string(*cuts.rbegin()));
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    const int64_t begin = *cut, end = *std::next(cut);
    SavePart part{{tensor, facts, begin, end - begin}, {}, 0};
    for (const Holding& h : holdings) {
      if (h.Contains(begin, end)) part.holders.push_back(h.rank);
    }
    const std::string where = part.slice.Text() + " ";
    if (part.holders.empty()) Refuse(tensor, where + "are held by no rank");
    if (std::adjacent_find(part.holders.begin(), part.holders.end()) != part.holders.end())
      Refuse(tensor, where + "are held twice by one rank");
    const auto load_of = [&](int32_t rank) -> uint64_t& { return load[static_cast<size_t>(rank)]; };
    part.writer = std::ranges::min(part.holders, {}, load_of);
    load_of(part.writer) += static_cast<uint64_t>(end - begin) * facts.element_bytes();
    plan.push_back(std::move(part));
  }
}

}  // namespace

SavePlan PlanSave(const std::vector<std::vector<TensorSlice>>& held) {
  std::map<std::string, std::vector<Holding>> by_tensor;
  for (size_t rank = 0; rank < held.size(); ++rank) {
    for (const TensorSlice& slice : held[rank]) {
      if (slice.count > 0) by_tensor[slice.tensor].push_back({static_cast<int32_t>(rank), &slice});
    }
  }
  SavePlan plan;
  std::vector<uint64_t> load(held.size());
  for (const auto& [tensor, holdings] : by_tensor) PlanTensor(tensor, holdings, load, plan);
  return plan;
}

std::string SlicesText(const std::vector<TensorSlice>& slices) {
  std::ostringstream text;
  for (const TensorSlice& slice : slices) {
    text << slice.offset << ' ' << slice.count << ' ' << slice.facts.dtype << ' '
         << slice.facts.shape.size();
    for (int64_t extent : slice.facts.shape) text << ' ' << extent;
    text << ' ' << slice.tensor << '\n';
  }
  return text.str();
}

std::vector<TensorSlice> ParseSlices(const std::string& text) {
  std::vector<TensorSlice> slices;
  std::istringstream in(text);
  TensorSlice slice;
  size_t dims = 0;
  while (in >> slice.offset >> slice.count >> slice.facts.dtype >> dims) {
    slice.facts.shape.resize(dims);
    for (int64_t& extent : slice.facts.shape) in >> extent;
    in.get();
    std::getline(in, slice.tensor);
    slices.push_back(slice);
  }
  return slices;
}

}  // namespace reference
