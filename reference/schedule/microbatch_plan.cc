#include "reference/schedule/microbatch_plan.h"

#include <algorithm>
#include <stdexcept>

namespace reference {

MicrobatchPlan::MicrobatchPlan(Context& context, int64_t step, int32_t microbatch, int32_t chunk,
                               const ScheduleSettings& settings)
    : c_(context),
      microbatch_(microbatch),
      chunk_(chunk),
      program_(c_.host.Program(step, microbatch)),
      settings_(settings),
      nodes_(DeriveScheduleNodes(c_.host.model(), program_, chunk)),
      turns_(PlanOperations(c_.host.model(), nodes_, settings)),
      deaths_(PlanDeaths(turns_, c_.host.model().n_values)),
      activations_(c_.host, program_, microbatch),
      event_(c_.host.Event()) {
  std::vector<ValueRef> sent = Crossing(false, true);
  for (const ValueRef& value : Crossing(true, true)) sent.push_back(value);
  for (auto& of_turn : deaths_) {
    for (std::vector<ValueRef>& dead : of_turn) {
      std::erase_if(dead, [&](const ValueRef& value) {
        return std::find(sent.begin(), sent.end(), value) != sent.end();
      });
    }
  }
}

MicrobatchPlan::~MicrobatchPlan() { c_.host.DestroyEvent(event_); }

const PlannedTurn& MicrobatchPlan::Take(const Turn& turn) {
  if (next_ == turns_.size() || turns_[next_].turn != turn)
    throw std::logic_error("microbatch " + std::to_string(microbatch_) + " is not at " +
                           Name(turn));
  return turns_[next_++];
}

void MicrobatchPlan::FreeAfter(size_t operation, spf_stream stream) {
  activations_.Free(deaths_[next_ - 1][operation], stream);
}

std::vector<ValueRef> MicrobatchPlan::Crossing(bool backward, bool leaving) const {
  // Values come from the previous stage; gradients go there.
  const uint32_t flag = backward == leaving ? SPF_VALUE_FROM_PREV : SPF_VALUE_TO_NEXT;
  std::vector<ValueRef> crossing;
  for (const PlannedTurn& turn : turns_) {
    for (const Operation& operation : turn.operations) {
      const spf_uses& uses = operation.node->uses[SPF_FWD];
      for (int32_t i = 0; i < uses.n; ++i) {
        const ValueRef value{backward, uses.use[i].id};
        if (uses.use[i].table != SPF_IN_ACT) continue;
        if ((c_.host.model().values[value.value].flags & flag) == 0) continue;
        if (std::find(crossing.begin(), crossing.end(), value) == crossing.end())
          crossing.push_back(value);
      }
    }
  }
  return crossing;
}

}  // namespace reference
