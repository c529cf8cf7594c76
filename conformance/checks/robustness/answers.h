// answers.h: what did each engine instance answer to its case, and what had it looked at by then?
//
// An engine says in create that it does not do what a case asks for. So does one that does not read
// a knob that the case sets, and one that lacks an entry call of the script. Other instances of the
// case go on meanwhile.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/checks/base/check.h"

namespace shardproof {

// Knobs that the case sets and that a rank's instance did not read before its first create had
// answered: SPF_OK, or SPF_REJECTED, which was then no answer to them. Without `calls` in the trace
// that is not known: none. Knobs of the contract, which every engine has to read, are left out.
std::vector<std::string> UnreadKnobs(const Case& c, const Trace& trace, size_t instance);

std::vector<std::string> ContractKnobs();

// "the case sets bucket_size, which create did not read"
std::string UnreadText(const std::string& knob);

enum class Answer : uint8_t { kNone, kRuns, kRejects, kDeclines };
const char* AnswerName(Answer answer);  // "runs"

// What an instance answered on a rank, as far as its trace and its outcome tell; kNone: it has no
// part in the instance, or died before.
Answer AnswerOn(const Run& run, size_t rank, size_t instance);

// Engines of the case, or, without a case, those that the traces name.
size_t InstancesOf(const Run& run);

// Where the engine itself said no: the event that ends the create which answered SPF_REJECTED or
// SPF_UNSUPPORTED, or -1.
int64_t RefusingCreate(const Trace& trace, size_t instance);

// By instance: it declined in create, by its answer or by what it did not read, on some rank. What
// the case asks of it then was never run. REQUIRES: run.spec.
std::vector<bool> DeclinedInCreate(const Run& run);

// Whether an instance declined the case on all of its ranks, while no rank came to another end than
// a good one or this. *why: the first such rank's reason.
bool Declines(const Run& run, std::string* why);

}  // namespace shardproof
