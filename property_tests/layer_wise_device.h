// layer_wise_device.h: what would a rank's memory hold, if the steps of a layer-wise plan did what
// they stand for?
//
// By bucket group: which install's values it has, and what is under way. Values arrive in the
// storage of gradients. Asserts what no plan may break.
#pragma once
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "reference/plan/plan.h"

namespace shardproof {

class LayerWiseDevice {
 public:
  // As after create: every rank has all initial values. aligned: values arrive in place, so that a
  // wait is all it takes.
  LayerWiseDevice(const std::vector<reference::GroupFacts>& groups, bool aligned)
      : aligned_(aligned) {
    for (const reference::GroupFacts& facts : groups)
      groups_.push_back({.gathered = facts.trainable && facts.travels});
  }

  // One entry call. May read a bucket group that travels only once it has the last install's
  // values.
  void Walk(const reference::Plan& plan, const std::vector<int32_t>& group_of_param) {
    gathers_.clear();
    reductions_.clear();
    for (const reference::Step& step : plan) Take(step, group_of_param);
    RC_ASSERT(UnderWay() == 0);
    gradients_ = false;
  }

  // No group lacks values.
  bool AllFresh() const {
    return std::all_of(groups_.begin(), groups_.end(), [&](const Group& g) { return Fresh(g); });
  }
  // Bucket groups, of the last call, in order.
  const std::vector<int32_t>& gathers() const { return gathers_; }
  const std::vector<int32_t>& reductions() const { return reductions_; }

 private:
  struct Group {
    bool gathered = false;  // else every rank has its values without a gather
    bool in_flight = false, waited = false;
    int64_t value = 0, carried = 0;  // of which install
  };
  bool Fresh(const Group& g) const { return !g.gathered || g.value == installs_; }
  int64_t UnderWay() const { return std::ranges::count(groups_, true, &Group::in_flight); }

  void Take(const reference::Step& step, const std::vector<int32_t>& group_of_param) {
    using reference::Do;
    switch (step.what) {
      case Do::kGather:
        return Launch(step.group);
      case Do::kNeed:
        return Wait(groups_.at(static_cast<size_t>(step.group)));
      case Do::kRelease:
        return Publish(groups_.at(static_cast<size_t>(step.group)));
      case Do::kBegin:  // all storage of gradients is zero, and nothing else writes into it
        RC_ASSERT(UnderWay() == 0);
        gradients_ = true;
        return;
      case Do::kReduce:
        return reductions_.push_back(step.group);
      case Do::kRun:
        return Run(step.operation, group_of_param);
      case Do::kInstall:
        ++installs_;
        gradients_ = false;
        return;
      default:
        return;
    }
  }
  void Launch(int32_t group) {
    Group& g = groups_.at(static_cast<size_t>(group));
    RC_ASSERT(g.gathered && !g.in_flight && !Fresh(g));
    RC_ASSERT(!gradients_);
    g.in_flight = true;
    g.carried = installs_;
    gathers_.push_back(group);
    RC_ASSERT(UnderWay() <= 2);  // one that is being published and one that travels
  }
  void Wait(Group& g) {
    RC_ASSERT(g.in_flight && !g.waited);
    g.waited = true;
    if (aligned_) Publish(g);
  }
  void Publish(Group& g) {
    RC_ASSERT(g.in_flight && g.waited);
    g.in_flight = g.waited = false;
    g.value = g.carried;
  }
  void Run(const reference::Operation& operation, const std::vector<int32_t>& group_of_param) {
    for (const spf_use& use : reference::UsesOf(operation)) {
      if (use.table == SPF_IN_GRAD) RC_ASSERT(gradients_);
      if (use.table != SPF_IN_PARAM) continue;
      const int32_t group = group_of_param.at(static_cast<size_t>(use.id));
      RC_ASSERT(Fresh(groups_.at(static_cast<size_t>(group))));
    }
  }

  const bool aligned_;
  std::vector<Group> groups_;
  std::vector<int32_t> gathers_, reductions_;
  int64_t installs_ = 0;
  bool gradients_ = false;
};

}  // namespace shardproof
