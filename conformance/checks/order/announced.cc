#include "conformance/checks/order/announced.h"

namespace shardproof {

namespace {

bool IsRootHook(int32_t hook) {
  return hook == SPF_HOOK_FORWARD || hook == SPF_HOOK_ROOT_PRE_BACKWARD ||
         hook == SPF_HOOK_ROOT_POST_BACKWARD;
}
bool IsStepHook(int32_t hook) {
  return hook >= SPF_HOOK_FINISH_GRAD_SYNC && hook <= SPF_HOOK_OPTIMIZER_STEP;
}

void AddMark(int64_t index, const Event& event, Announced& announced) {
  EntryCall& call = announced.calls[event.call];
  announced.hooks.insert(event.id);
  call.marks.push_back(index);
  if (IsStepHook(event.id)) {
    call.step_hooks[event.id].push_back(index);
  } else if (IsRootHook(event.id)) {
    call.microbatches[event.microbatch].hooks[event.id].push_back(index);
  } else {
    call.microbatches[event.microbatch].of_unit[event.id][event.module].push_back(index);
  }
}

void AddCompute(int64_t index, const Event& event, const InstanceFacts& facts, int32_t rank,
                EntryCall& call) {
  if (event.id < 0 || event.id >= facts.node_count(rank)) return;
  Microbatch& microbatch = call.microbatches[event.microbatch];
  const int32_t unit = facts.UnitOfModule(facts.Node(event.id, rank).module, rank);
  (event.phase == SPF_FWD ? microbatch.any_forward : microbatch.any_backward).push_back(index);
  const spf_model& model = facts.model().Tables(facts.Place(rank));
  for (int32_t module = facts.Node(event.id, rank).module; event.phase == SPF_FWD && module >= 0;
       module = model.modules[module].parent)
    microbatch.entered[module].push_back(index);
  if (unit < 0) return;
  const spf_uses& uses = facts.Node(event.id, rank).uses[event.phase];
  for (int32_t i = 0; i < uses.n; ++i) {
    if (uses.use[i].table == SPF_IN_GRAD && facts.Param(rank, uses.use[i].id).unit == unit)
      microbatch.with_gradients.insert(unit);
  }
  (event.phase == SPF_FWD ? microbatch.forward : microbatch.backward)[unit].push_back(index);
}

}  // namespace

Announced AnnouncedBy(const Analysis& a, int32_t rank, int instance) {
  Announced announced;
  const Trace& trace = a.trace(rank);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.instance != instance || event.call < 0) continue;
    const auto index = static_cast<int64_t>(i);
    EntryCall& call = announced.calls[event.call];
    if (event.kind == EventKind::kCallBegin) call.train = trace.Text(event.text) == "train_step";
    if (event.kind == EventKind::kCallEnd) {
      call.end = index;
      call.ok = event.status == SPF_OK;
    }
    if (event.kind == EventKind::kMark) AddMark(index, event, announced);
    if (event.kind == EventKind::kCompute)
      AddCompute(index, event, a.Facts(event.instance), rank, call);
  }
  return announced;
}

}  // namespace shardproof
