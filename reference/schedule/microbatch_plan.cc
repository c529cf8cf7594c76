#include "reference/schedule/microbatch_plan.h"

#include <stdexcept>

namespace reference {

MicrobatchPlan::MicrobatchPlan(Context& context, int64_t step, int32_t microbatch,
                               const ScheduleSettings& settings)
    : c_(context),
      microbatch_(microbatch),
      settings_(settings),
      nodes_(DeriveScheduleNodes(c_.host.model(), c_.host.Program(step, microbatch))),
      turns_(PlanOperations(c_.host.model(), nodes_, settings)),
      deaths_(PlanDeaths(turns_, c_.host.model().n_values)),
      activations_(c_.host, c_.host.Program(step, microbatch), microbatch),
      event_(c_.host.Event()) {}

MicrobatchPlan::~MicrobatchPlan() { c_.host.raw()->event_destroy(c_.host.raw(), event_); }

const PlannedTurn& MicrobatchPlan::Take(const Turn& turn) {
  if (next_ == turns_.size() || turns_[next_].turn != turn)
    throw std::logic_error("microbatch " + std::to_string(microbatch_) + " is not at " +
                           Name(turn));
  return turns_[next_++];
}

void MicrobatchPlan::FreeAfter(size_t operation, spf_stream stream) {
  activations_.Free(deaths_[next_ - 1][operation], stream);
}

}  // namespace reference
