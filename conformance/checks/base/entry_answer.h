// entry_answer.h: how has a rank's engine ended, given what an entry call answered?
//
// SPF_OK goes on. Only create may answer SPF_REJECTED or SPF_UNSUPPORTED (shardproof.h); load may
// answer SPF_UNSUPPORTED to a checkpoint that another leg of the case saved.
// SPF_REFUSED and SPF_ABORTED hand on what the host answered before: without such an answer they
// are a failure of the engine, since nothing else stands behind them. So is every other number.
#pragma once
#include <string>
#include <string_view>

#include "conformance/checks/base/check.h"

namespace shardproof {

// What the host had answered to this engine on this rank before the entry call returned.
struct HostAnswers {
  bool refused = false;
  bool aborted = false;
  bool another_leg = false;  // not the host's: the case is a leg that goes on from another one
};

struct EntryAnswer {
  EngineOutcome::Kind kind = EngineOutcome::Kind::kOk;
  std::string why;  // what is wrong with the answer itself, in words; empty: nothing
};

// call: create, train_step, eval_step, save or load. status: the number as the engine gave it.
EntryAnswer AnswerOf(std::string_view call, int status, HostAnswers before);

}  // namespace shardproof
