// order_by_cause.h: which finding should a person read first, and which follow from it?
//
// Kinds of mistakes come in the order of kind_of_mistake.h, findings of one kind in the order of
// happens-before. A finding follows from one that stands for itself if it does not come before it
// and could not be without it:
//
//   after                     follows
//   what create answers       everything
//   a refusal, a failure      everything but what create answers
//   what does not match       that too, with refused calls, crashes and hangs
//   a race or a missing wait  what is judged by bytes; padding, and gradients that wait, by which a
//                             collective carries what; races on the same blocks or between the same
//                             streams; hangs
//   a lifetime, a structure   what is judged by bytes, sums of memory; of a structure, and of work
//   on
//                             bytes of no block, also the races of the operation that it names; of
//                             a structure, parameters that are read later
//   a number                  numbers; of a weight or gradient also the same parameter that a later
//                             load brings back
//   all else                  its own kind
//
// and what says the same of the same event. One rank's finding follows from another rank's where
// nothing orders the two: ranks run one program. That an operation waits for a rank which ended
// early follows from any failure.
//
// Nothing is dropped: a finding that follows breaks its requirement like any other.
#pragma once
#include "conformance/checks/base/check.h"
#include "conformance/checks/program/lowered.h"

namespace shardproof {

// Sorts result.findings and fills in Finding::follows: the place of an earlier finding, which
// follows from none itself.
void OrderByCause(const graph::Lowered& lowered, CheckResult& result);

}  // namespace shardproof
