// microbatch_plan.h: what is the state of one microbatch between its parts?
//
// All of it belongs to the microbatch and none to the layers' modules: another microbatch runs
// through the same layers meanwhile (values, numbers of rows, the event).
//
// One event chains the parts of a microbatch: each waits for it on its own stream and records it
// behind itself. So within a microbatch everything happens in order, on whatever streams, and
// nothing orders two microbatches but the queues of the streams. Delayed weight gradients neither
// wait nor record: they run on compute behind the backward that they belong to, and no exchange
// waits for them.
#pragma once
#include "reference/fsdp/context.h"
#include "reference/schedule/plan_operations.h"

namespace reference {

class MicrobatchPlan {
 public:
  // chunk: of the model, in a pipeline; else 0.
  MicrobatchPlan(Context& context, int64_t step, int32_t microbatch, int32_t chunk,
                 const ScheduleSettings& settings);
  ~MicrobatchPlan();
  MicrobatchPlan(const MicrobatchPlan&) = delete;
  MicrobatchPlan& operator=(const MicrobatchPlan&) = delete;

  int32_t microbatch() const { return microbatch_; }
  int32_t chunk() const { return chunk_; }
  const spf_program& program() const { return program_; }
  int32_t layers() const { return static_cast<int32_t>(nodes_.layers.size()); }
  const ScheduleNodes& nodes() const { return nodes_; }
  const ScheduleSettings& settings() const { return settings_; }
  const std::vector<PlannedTurn>& turns() const { return turns_; }
  Activations& activations() { return activations_; }

  // The next turn of this microbatch. Throws std::logic_error if it is not this one.
  const PlannedTurn& Take(const Turn& turn);
  // Frees what dies after operation i of the turn that was taken last.
  void FreeAfter(size_t operation, spf_stream stream);

  // In a pipeline: values (or with backward their gradients) that leave this stage, or come into
  // it. The plan does not free what leaves: the sender does.
  std::vector<ValueRef> Crossing(bool backward, bool leaving) const;

  void WaitOn(spf_stream stream) { c_.host.Wait(stream, event_); }
  void RecordOn(spf_stream stream) { c_.host.Record(event_, stream); }

 private:
  Context& c_;
  int32_t microbatch_, chunk_;
  const spf_program& program_;
  ScheduleSettings settings_;
  ScheduleNodes nodes_;
  std::vector<PlannedTurn> turns_;
  std::vector<std::vector<std::vector<ValueRef>>> deaths_;  // by turn and operation
  Activations activations_;
  spf_event event_ = nullptr;
  size_t next_ = 0;  // turn
};

}  // namespace reference
