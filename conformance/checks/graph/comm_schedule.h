// comm_schedule.h: is the order of collectives owned by whom the case says (knob schedule)?
//
// With one_communicator the engine owns it: of any two communicator kernels of its own on a device
// one is over before the other can start, whatever the timing, so its k* is at most 1 (profile E3)
// and no order of starts can hang (GE-41). NCCL's user guide demands as much of communicators that
// are used in turn (usage/communicators, "Using multiple NCCL communicators concurrently"). With
// one_queue the host owns it: no timing hangs where all streams of a device share one hardware
// queue (E2, GE-42).
#pragma once
#include "conformance/cases/case.h"
#include "conformance/checks/base/check.h"
#include "conformance/checks/program/lowered.h"

namespace shardproof {

CheckResult CheckCommSchedule(const Case& spec, const graph::Lowered& run);

}  // namespace shardproof
