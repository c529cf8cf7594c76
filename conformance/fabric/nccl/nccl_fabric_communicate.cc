// Group calls: one NCCL group for each communicator, and the edges that NCCL leaves to its caller.
#include <algorithm>

#include "conformance/fabric/nccl/nccl_fabric_internal.h"

namespace shardproof {
namespace {

bool Has(const std::vector<int32_t>& streams, int32_t stream) {
  return std::find(streams.begin(), streams.end(), stream) != streams.end();
}

}  // namespace

void NcclFabric::Communicate(std::vector<CommOp> ops) {
  if (ops.empty()) return;
  Try("communicate", [&] {
    const std::vector<KernelPlan> plans = PlanGroupCall(ops, [&](int32_t group) {
      return GroupPlace{static_cast<int32_t>(communicators_.members(group).size()),
                        communicators_.me(group)};
    });
    for (const KernelPlan& plan :
         plans) {  // so that a report tells kernels from what is before them
      for (const int32_t stream : plan.streams) ledger_.EventBehind(stream);
    }
    const std::vector<EntryId> kernels = ledger_.Kernels(std::move(ops));  // in the same order
    for (size_t i = 0; i < plans.size(); ++i) {
      if (!IssueKernel(plans[i], kernels[i])) return StopByWatchdog();
    }
    ledger_.Look();
  });
}

// NCCL makes one operation of the streams that its calls name: it starts when all have come to it,
// and all go on when it is complete (usage/streams.rst). Streams of operations that need no call
// are tied to it here. false: a wait was given up.
bool NcclFabric::IssueKernel(const KernelPlan& plan, EntryId kernel) {
  const std::string what = ledger_.device().entry(kernel).what;
  const bool alone = communicators_.members(plan.group).size() == 1;
  if ((!alone || !plan.calls.empty()) && !MakeCommunicator(plan.group, what)) return false;
  std::vector<int32_t> called;
  for (const GpuCall& call : plan.calls) called.push_back(call.stream);
  const int32_t lead = called.empty() ? plan.streams.front() : called.front();
  OrderBehindPrevious(plan, kernel, lead);
  for (const int32_t stream : plan.streams) {
    if (stream != lead && !Has(called, stream)) After(lead, stream);
  }
  for (const PlannedCopy& copy : plan.copies) QueueOf(lead).Copy(copy.to, copy.from, copy.bytes);
  if (!plan.calls.empty()) {
    std::vector<GpuCall> calls = plan.calls;
    for (GpuCall& call : calls) call.stream = At(streams_, call.stream);
    const GiveUp none;
    const int32_t comm = communicators_.Open(plan.group, none);  // is open
    gpu_.Launch(comm, calls);
    if (!gpu_.AwaitComm(comm, watchdog_.Waiting("the launch of " + what))) return false;
  }
  for (const int32_t stream : plan.streams) {
    if (stream != lead && !Has(called, stream)) After(stream, lead);
  }
  ledger_.KernelIssued(kernel, lead);
  return true;
}

// Kernels of one communicator run in issue order, whatever their streams. NCCL chains them through
// a stream of the communicator's own (deviceStream in src/enqueue.cc) but does not promise it;
// copies of groups of one need it from us.
void NcclFabric::OrderBehindPrevious(const KernelPlan& plan, EntryId kernel, int32_t lead) {
  const EntryId previous = ledger_.device().entry(kernel).previous;
  const int32_t event = ledger_.EventBehindKernel(previous);
  if (event < 0) return;
  for (const int32_t stream : ledger_.device().entry(previous).streams) {
    if (Has(plan.streams, stream)) return;  // the stream orders them
  }
  gpu_.Wait(event, At(streams_, lead));
}

void NcclFabric::After(int32_t later, int32_t earlier) {
  if (edge_event_ < 0) edge_event_ = gpu_.CreateEvent(false);
  gpu_.Record(edge_event_, At(streams_, earlier));
  gpu_.Wait(edge_event_, At(streams_, later));
}

}  // namespace shardproof
