#include "reference/groups/rank_grid.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace reference {
namespace {

bool HasDuplicate(const std::vector<std::string>& names) {
  return std::set<std::string>(names.begin(), names.end()).size() != names.size();
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "-") + name;
  return text;
}

}  // namespace

std::vector<std::string> SplitAxes(std::string_view text) {
  std::vector<std::string> names(1);
  for (char c : text) {
    if (c == '-') {
      names.emplace_back();
    } else {
      names.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  for (const std::string& name : names) {
    if (name.empty()) throw GridError("\"" + std::string(text) + "\" has an empty axis name");
  }
  if (HasDuplicate(names)) throw GridError("\"" + std::string(text) + "\" names an axis twice");
  return names;
}

int32_t RankGrid::Axes::size() const {
  int64_t product = 1;
  for (int32_t size : sizes) {
    product *= size;
    if (product > INT32_MAX) throw GridError("the grid has more than 2^31 ranks");
  }
  return static_cast<int32_t>(product);
}

size_t RankGrid::Axes::IndexOf(const std::string& name) const {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

void RankGrid::CheckAxes(const Axes& axes, const std::string& what) {
  if (axes.sizes.size() != axes.names.size()) {
    throw GridError(what + " has " + std::to_string(axes.sizes.size()) + " sizes for " +
                    std::to_string(axes.names.size()) + " axis names");
  }
  if (axes.names.empty()) throw GridError(what + " has no axes");
  if (HasDuplicate(axes.names))
    throw GridError(what + " names an axis twice: " + Joined(axes.names));
  for (size_t i = 0; i < axes.sizes.size(); ++i) {
    if (axes.sizes[i] <= 0) {
      throw GridError(what + ": axis " + axes.names[i] + " has size " +
                      std::to_string(axes.sizes[i]));
    }
  }
}

RankGrid::RankGrid(const std::vector<int32_t>& sizes, const std::vector<std::string>& names,
                   int32_t offset, int32_t world)
    : base_{sizes, names, {}}, offset_(offset) {
  CheckAxes(base_, "the grid");
  if (world <= 0) throw GridError("the world size is " + std::to_string(world));
  if (offset < 0)
    throw GridError("rank_offset is " + std::to_string(offset) + "; it must not be negative");
  if (base_.size() > world - offset) {
    throw GridError("the grid is over sized: it needs " + std::to_string(base_.size()) +
                    " ranks from rank " + std::to_string(offset) + " on, the world has " +
                    std::to_string(world));
  }
}

RankGrid::Axes RankGrid::InOrder(std::string_view order, const AxisSizes& sizes) {
  std::vector<std::string> names = SplitAxes(order);
  for (const std::string& name : names) {
    if (!sizes.contains(name))
      throw GridError("order \"" + std::string(order) + "\" names an unknown axis " + name);
  }
  for (const auto& [name, size] : sizes) {
    if (std::ranges::count(names, name) > 0) continue;
    if (size != 1) {
      throw GridError("order \"" + std::string(order) + "\" does not name " + name +
                      ", which has size " + std::to_string(size));
    }
    names.push_back(name);
  }
  std::vector<int32_t> ordered;
  for (const std::string& name : names) ordered.push_back(sizes.at(name));
  // Context parallelism is part of expert data parallelism, so one grid never has both.
  if (sizes.contains("cp") && sizes.contains("ep") && sizes.at("cp") > 1 && sizes.at("ep") > 1) {
    throw GridError("one grid cannot have cp = " + std::to_string(sizes.at("cp")) +
                    " and ep = " + std::to_string(sizes.at("ep")) +
                    ": experts have a grid of their own, with cp in expt_dp");
  }
  return {ordered, names, {}};
}

RankGrid RankGrid::FromOrder(std::string_view order, const AxisSizes& sizes, int32_t offset,
                             int32_t world) {
  const Axes axes = InOrder(order, sizes);
  return RankGrid(axes.sizes, axes.names, offset, world);
}

void RankGrid::AddViewInOrder(const std::string& view, std::string_view order,
                              const AxisSizes& sizes, const std::vector<std::string>& shared) {
  const Axes axes = InOrder(order, sizes);
  AddView(view, axes.sizes, axes.names, shared);
}

void RankGrid::AddView(const std::string& view, const std::vector<int32_t>& sizes,
                       const std::vector<std::string>& names,
                       const std::vector<std::string>& shared) {
  const std::string what = "view " + view;
  if (view.empty()) throw GridError("a view needs a name");
  if (views_.contains(view)) throw GridError(what + " is already registered");
  Axes axes{sizes, names, shared};
  CheckAxes(axes, what);
  if (axes.size() != base_.size()) {
    throw GridError(what + " has " + std::to_string(axes.size()) + " ranks, the grid has " +
                    std::to_string(base_.size()));
  }
  if (HasDuplicate(shared)) throw GridError(what + " shares an axis twice: " + Joined(shared));
  auto agree = [&](const std::vector<std::string>& set) {
    const std::string token = Joined(set);
    if (Enumerate(base_, Mask(base_, token), offset_) !=
        Enumerate(axes, Mask(axes, token), offset_)) {
      throw GridError(what + ": the shared axes " + token +
                      " enumerate other groups than in the grid");
    }
  };
  for (const std::string& name : shared) {
    if (base_.IndexOf(name) == base_.names.size())
      throw GridError(what + ": the grid has no shared axis " + name);
    if (axes.IndexOf(name) == axes.names.size())
      throw GridError(what + " has no shared axis " + name);
    agree({name});
  }
  if (shared.size() > 1) agree(shared);
  views_[view] = std::move(axes);
}

const RankGrid::Axes& RankGrid::Find(std::string_view view) const {
  if (view.empty()) return base_;
  auto found = views_.find(view);
  if (found == views_.end()) throw GridError("there is no view " + std::string(view));
  return found->second;
}

std::vector<bool> RankGrid::Mask(const Axes& axes, std::string_view set) {
  std::vector<bool> mask(axes.names.size());
  for (const std::string& name : SplitAxes(set)) {
    const size_t index = axes.IndexOf(name);
    if (index == axes.names.size()) {
      throw GridError("\"" + std::string(set) + "\": there is no axis " + name + " in " +
                      Joined(axes.names));
    }
    mask[index] = true;
  }
  return mask;
}

// Counts through all ranks once. The digits in the set form the member's number, the others the
// group's number, both with the leftmost axis fastest.
RankLists RankGrid::Enumerate(const Axes& axes, const std::vector<bool>& in_set, int32_t offset) {
  int32_t members = 1;
  for (size_t i = 0; i < in_set.size(); ++i) members *= in_set[i] ? axes.sizes[i] : 1;
  RankLists groups(static_cast<size_t>(axes.size() / members),
                   RankList(static_cast<size_t>(members)));
  for (int32_t rank = 0; rank < axes.size(); ++rank) {
    int32_t rest = rank, group = 0, member = 0, group_stride = 1, member_stride = 1;
    for (size_t i = 0; i < in_set.size(); ++i) {
      const int32_t digit = rest % axes.sizes[i];
      rest /= axes.sizes[i];
      (in_set[i] ? member : group) += digit * (in_set[i] ? member_stride : group_stride);
      (in_set[i] ? member_stride : group_stride) *= axes.sizes[i];
    }
    groups[static_cast<size_t>(group)][static_cast<size_t>(member)] = offset + rank;
  }
  return groups;
}

RankLists RankGrid::Groups(std::string_view axes, std::string_view view) const {
  const Axes& found = Find(view);
  return Enumerate(found, Mask(found, axes), offset_);
}

RankList ListOf(const RankLists& lists, int32_t rank) {
  for (const RankList& list : lists) {
    if (std::ranges::count(list, rank) > 0) return list;
  }
  return {};
}

}  // namespace reference
