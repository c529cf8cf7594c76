#include "conformance/runner/lab/service_fault_rows.h"

#include <utility>

#include "conformance/abi/shardproof.h"

namespace shardproof {
namespace {

using enum Fault::Action;

constexpr char kZero3[] = "w4.zero3.twin.k2.do=tt";
constexpr char kZero2[] = "w4.zero2.k2.do=tt";
constexpr char kZero1[] = "w4.zero1.k2.do=tt";
constexpr char kDdp[] = "w4.ddp.do=tt";
constexpr char kHsdp[] = "w8.zero3.n2.k2.do=tt";
constexpr char kHfsdp[] = "w8.zero3.n2.hfsdp.do=tt";
constexpr char kGrid[] = "w4.zero3.grid.twin.do=t";
constexpr char kSaved[] = "w4.zero3.adamw.do=tsrlt";
constexpr char kClipped[] = "w4.zero3.clip1.do=tt";
constexpr char kExperts[] = "w4.zero2.ep2.experts.do=tt";
constexpr char kAverage[] = "w4.zero2.avg.do=t";
constexpr char kUserBuffers[] = "w4.zero3.twin.k2.ub.do=tt";
constexpr char kAlone[] = "w1.zero2.pertoken.clip1.do=tt";

EventTest And(EventTest a, EventTest b) { return AllOf({std::move(a), std::move(b)}); }
EventTest And(EventTest a, EventTest b, EventTest c) {
  return AllOf({std::move(a), std::move(b), std::move(c)});
}
EventTest Any() { return AllOf({}); }

std::vector<FaultRow> SynchronisationRows() {
  return {
      {"gather does not wait for the allocation", kZero3, "GE-11", "event_wait",
       And(InStep(0), Edge("gather", "compute")), kDrop, 1, 1},
      {"compute does not wait for the gather", kZero3, "GE-05", "event_wait",
       And(InStep(0), Edge("compute", "gather")), kDrop},
      {"the reduction does not wait for the gradients", kZero3, "GE-05", "event_wait",
       And(InStep(1), Edge("reduce", "compute")), kDrop},
      {"a contribution is freed before its reduction is over", kZero3, "GE-11", "event_wait",
       And(InStep(0), Edge("compute", "reduce")), kDrop},
      {"compute waits for the gather eight calls too late", kZero3, "GE-05", "event_wait",
       And(InStep(1), Edge("compute", "gather")), kDelay, 8, 1},
      {"the first gather's event is never recorded", kZero3, "GE-07", "event_record",
       And(InStep(0), OnStream("gather")), kDrop},
      {"the gather's event is recorded before the gather", kZero3, "GE-05", "communicate",
       And(InStep(1), IsCollective(SPF_ALL_GATHER)), kReorder, 1, 1},
      {"a later gather's event keeps the older record", kZero3, "GE-05", "event_record",
       And(InStep(1), OnStream("gather")), kDrop, 1, 1, 2},
      {"the outer reduction does not wait for the inner ones", kHsdp, "GE-05", "event_wait",
       And(InStep(0), Edge("outer_reduce", "reduce")), kDrop},
      {"a contribution is freed during the outer reduction", kHsdp, "GE-11", "event_wait",
       And(InStep(0), Edge("compute", "outer_reduce")), kDrop},
      {"the inner gather does not wait for the outer one", kHfsdp, "GE-05", "event_wait",
       And(InStep(0), Edge("gather", "outer_gather")), kDrop},
      {"the outer gather does not wait for the new weights", kHfsdp, "GE-05", "event_wait",
       And(InStep(1), Edge("outer_gather", "compute")), kDrop},
      {"the host reads the norm before the copy", kClipped, "GE-06", "stream_sync", InStep(0),
       kDrop},
      {"the file is written before the copy", kSaved, "GE-06", "stream_sync", InCall("save"),
       kDrop},
  };
}

std::vector<FaultRow> CollectiveRows() {
  const EventTest gather = IsCollective(SPF_ALL_GATHER), scatter = IsCollective(SPF_REDUCE_SCATTER);
  return {
      {"a rank leaves out a gather", kZero3, "GE-01", "communicate", And(InStep(0), gather), kDrop},
      {"the other ranks wait for it for ever", kZero3, "GE-27", "communicate",
       And(InStep(1), gather), kDrop, 1, 1, 3},
      {"a rank gathers twice", kZero3, "GE-01", "communicate", And(InStep(0), gather), kDuplicate,
       1, 1},
      {"a rank leaves out a reduction", kZero2, "GE-01", "communicate", And(InStep(0), scatter),
       kDrop, 1, 1, 1},
      {"two gathers of different sizes change places", kZero3, "GE-01", "communicate",
       And(InStep(0), gather), kDelay, 16},
      {"two gathers of equal sizes change places", kZero3, "FS-01", "communicate",
       And(InStep(0), gather), kDelay, 12, 1},
      {"one element fewer is gathered", kZero3, "GE-01", "communicate", And(InStep(0), gather),
       kCorrupt, 0},
      {"one element fewer is reduced", kDdp, "GE-01", "communicate", IsCollective(SPF_ALL_REDUCE),
       kCorrupt, 0},
      {"a rank averages where others sum", kZero2, "GE-01", "communicate", And(InStep(0), scatter),
       kCorrupt, 2},
      {"a rank sums where others average", kAverage, "GE-01", "communicate", scatter, kCorrupt, 2},
      {"a gathered parameter is damaged", kZero3, "FS-01", "communicate", And(InStep(0), gather),
       kCorrupt, 1},
      {"a reduced gradient is damaged", kZero2, "FS-15", "communicate", And(InStep(0), scatter),
       kCorrupt, 1},
      {"a replica's gradient is damaged", kDdp, "FS-20", "communicate",
       IsCollective(SPF_ALL_REDUCE), kCorrupt, 1},
      {"an outer sum is damaged", kHsdp, "FS-15", "communicate", OnStream("outer_reduce"), kCorrupt,
       1},
      {"the outer reduction runs twice on a rank", kHsdp, "GE-01", "communicate",
       OnStream("outer_reduce"), kDuplicate},
      {"the sum of squares is damaged", kClipped, "FS-25", "communicate",
       IsCollective(SPF_ALL_REDUCE), kCorrupt, 1},
      {"an expert's gradient is damaged", kExperts, "FS-16", "communicate",
       And(scatter, OnGroup("expt_dp")), kCorrupt, 1},
  };
}

std::vector<FaultRow> WorkRows() {
  return {
      {"a microbatch of another rank is read", kZero3, "GE-29", "compute", And(InStep(0), Any()),
       kCorrupt},
      {"the loss gradient has twice the scale on one rank", kZero2, "FS-15", "compute",
       Phase(SPF_BWD), kCorrupt},
      {"the loss gradient has twice the scale", kAlone, "FS-17", "compute", Phase(SPF_BWD),
       kCorrupt},
      {"a layer's operation is left out in forward", kZero3, "GE-25", "compute",
       And(InStep(0), Phase(SPF_FWD)), kDrop, 1, 5},
      {"a backward operation runs twice", kZero1, "GE-25", "compute",
       And(InStep(0), Phase(SPF_BWD), Touches(kWrite, SPF_FOR_GRAD)), kDuplicate, 1, 2},
      {"a backward operation is left out", kZero3, "FS-05", "compute",
       And(InStep(0), Phase(SPF_BWD)), kDrop, 1, 3},
      {"a gradient is scaled twice on one rank", kZero3, "FS-15", "launch",
       And(InStep(0), Kernel(SPF_K_AXPBY), Touches(kWrite, SPF_FOR_GRAD)), kDuplicate},
      {"a gradient is not scaled on one rank", kZero3, "FS-15", "launch",
       And(InStep(0), Kernel(SPF_K_AXPBY), Touches(kWrite, SPF_FOR_GRAD)), kDrop},
      {"a gradient is not scaled", kAlone, "FS-17", "launch",
       And(InStep(0), Kernel(SPF_K_AXPBY), Touches(kWrite, SPF_FOR_GRAD)), kDrop},
      {"gradients are not cleared before a step", kZero3, "FS-22", "launch",
       And(InStep(1), Kernel(SPF_K_FILL), Touches(kWrite, SPF_FOR_GRAD_SHARD)), kDrop},
      {"gradients are added to what was in memory", kZero3, "FS-05", "launch",
       And(InStep(0), Kernel(SPF_K_FILL), Touches(kWrite, SPF_FOR_GRAD)), kDrop},
      {"the learning rate is doubled", kZero3, "FS-24", "launch",
       And(InStep(0), Kernel(SPF_K_AXPBY), Touches(kWrite, SPF_FOR_MAIN_PARAM)), kCorrupt},
      {"AdamW runs twice", kSaved, "FS-24", "launch", And(InStep(0), Kernel(SPF_K_ADAMW)),
       kDuplicate},
      {"new weights are not installed in one shard", kZero3, "FS-01", "launch",
       And(InStep(0), Kernel(SPF_K_AXPBY), Touches(kWrite, SPF_FOR_PARAM_SHARD)), kDrop},
      {"new weights are not installed", kDdp, "FS-23", "launch",
       And(InStep(0), Kernel(SPF_K_AXPBY), Touches(kWrite, SPF_FOR_PARAM_FULL)), kDrop},
      {"squares are summed twice", kClipped, "FS-25", "launch",
       And(InStep(0), Kernel(SPF_K_SUM_SQUARES)), kDuplicate},
      {"the norm is not copied to the host", kClipped, "FS-24", "copy", InStep(0), kDrop},
      {"half of a saved shard is copied out", kSaved, "FS-24", "copy",
       And(InCall("save"), Touches(kRead, SPF_FOR_MAIN_PARAM)), kCorrupt},
      {"a loaded shard is not copied in", kSaved, "FS-24", "copy",
       And(InCall("load"), Touches(kWrite, SPF_FOR_MAIN_PARAM)), kDrop},
  };
}

std::vector<FaultRow> ResultRows() {
  return {
      {"a parameter is not initialised", kZero1, "FS-24", "init", Any(), kDrop, 1, 1},
      {"one element of a parameter is not initialised", kDdp, "FS-24", "init", Any(), kCorrupt},
      {"a shard of a parameter is not published", kZero3, "FS-28", "publish",
       And(InStep(0), Result(SPF_RESULT_PARAM)), kDrop},
      {"one element of a gradient is not published", kZero2, "GE-31", "publish",
       And(InStep(0), Result(SPF_RESULT_GRAD)), kCorrupt},
      {"a loss is not published", kZero1, "GE-30", "publish",
       And(InStep(1), Result(SPF_RESULT_LOSS)), kDrop},
      {"the norm is not published", kAlone, "FS-25", "publish", Result(SPF_RESULT_GRAD_NORM),
       kDrop},
      {"a gradient is published after the next step has cleared it", kDdp, "FS-05", "publish",
       And(InStep(0), Result(SPF_RESULT_GRAD)), kDelay, 60, 3},
  };
}

std::vector<FaultRow> LifetimeRows() {
  return {
      {"full parameters are never released", kZero3, "FS-03", "mem_free",
       And(InStep(0), Touches(0, SPF_FOR_PARAM_FULL)), kDrop},
      {"a block is left behind after a step", kZero3, "FS-32", "mem_free",
       And(InStep(1), Touches(0, SPF_FOR_ACTIVATION)), kDrop},
      {"a block is left behind for ever", kDdp, "FS-33", "mem_free", InCall("destroy"), kDrop},
      {"a block is freed twice", kZero2, "GE-25", "mem_free", InStep(0), kDuplicate},
      {"an activation gets half of its bytes", kZero3, "GE-25", "mem_alloc",
       And(InStep(0), Purpose(SPF_FOR_ACTIVATION)), kCorrupt, 0, 2},
      {"an allocation is taken twice", kZero2, "FS-33", "mem_alloc",
       And(InStep(0), Purpose(SPF_FOR_GRAD)), kDuplicate},
      {"an event is left behind", kZero3, "FS-33", "event_destroy", InStep(0), kDrop},
      {"an event is destroyed twice", kZero3, "GE-25", "event_destroy", InStep(0), kDuplicate},
      {"a stream is left behind", kZero3, "FS-33", "stream_destroy", Any(), kDrop},
      {"a rank leaves out the destruction of a group", kGrid, "GE-03", "group_destroy", Any(),
       kDrop},
      {"a rank leaves out a group", kGrid, "PG-13", "group_create", Any(), kDrop},
      {"a rank turns a group round", kGrid, "GE-08", "group_create", OnGroup("dp_cp"), kCorrupt},
      {"a rank creates a group twice", kGrid, "PG-13", "group_create", OnGroup("dp_cp"),
       kDuplicate},
      {"a rank creates a group after it asked for its handle", kGrid, "GE-24", "group_create",
       Any(), kReorder},
  };
}

std::vector<FaultRow> RegistrationRows() {
  return {
      {"a rank leaves out a registration", kUserBuffers, "GE-03", "group_register", Any(), kDrop},
      {"a rank registers a block twice", kUserBuffers, "GE-25", "group_register", Any(), kDuplicate,
       1, 2},
      {"a rank registers two blocks the other way round", kUserBuffers, "GE-15", "group_register",
       Any(), kDelay, 9},
      {"a rank gathers into a block before it registers it", kUserBuffers, "GE-16",
       "group_register", InStep(0), kDelay, 5},
      {"a block is not deregistered", kUserBuffers, "GE-25", "group_deregister", Any(), kDrop},
      {"a block that stays registered is left behind", kUserBuffers, "FS-33", "group_deregister",
       Any(), kDrop, 1, 2},
      {"a block is deregistered twice", kUserBuffers, "GE-25", "group_deregister", Any(),
       kDuplicate},
      {"a block is freed before it is deregistered", kUserBuffers, "GE-25", "group_deregister",
       Any(), kDelay, 40},
  };
}

std::vector<FaultRow> HookRows() {
  return {
      {"root pre-backward is not announced", kZero3, "FS-04", "mark",
       And(InStep(0), Hook(SPF_HOOK_ROOT_PRE_BACKWARD)), kDrop},
      {"root post-backward is announced twice", kZero3, "FS-04", "mark",
       And(InStep(0), Hook(SPF_HOOK_ROOT_POST_BACKWARD)), kDuplicate},
      {"pre-backward comes after the first operation", kZero3, "FS-04", "mark",
       And(InStep(0), Hook(SPF_HOOK_PRE_BACKWARD)), kDelay, 8},
      {"a unit's backward is not closed", kZero3, "FS-06", "mark",
       And(InStep(0), Hook(SPF_HOOK_POST_BACKWARD)), kDrop},
      {"gradients are synchronised after the optimizer", kZero3, "FS-38", "mark",
       And(InStep(0), Hook(SPF_HOOK_FINISH_GRAD_SYNC)), kDelay, 40},
      {"accumulators are cleared twice in a step", kZero2, "FS-38", "mark",
       And(InStep(1), Hook(SPF_HOOK_ZERO_GRAD)), kDuplicate},
      {"installing is announced before the optimizer", kZero1, "FS-38", "mark",
       And(InStep(0), Hook(SPF_HOOK_OPTIMIZER_STEP)), kDelay, 40},
  };
}

}  // namespace

std::vector<FaultRow> ServiceFaultRows() {
  std::vector<FaultRow> rows;
  for (std::vector<FaultRow> (*make)() : {SynchronisationRows, CollectiveRows, WorkRows, ResultRows,
                                          LifetimeRows, RegistrationRows, HookRows}) {
    for (FaultRow& row : make()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace shardproof
