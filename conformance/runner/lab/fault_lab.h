// fault_lab.h: what does the suite say when one chosen service call of a good engine goes wrong?
//
// A lab runs its case once without a fault. A fault is then named by what its call means in that
// run ("the second wait of stream compute for stream gather in the first step"), and the index that
// Fault wants is looked up.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/common/at.h"
#include "conformance/oracle/oracle.h"
#include "conformance/runner/plugin.h"
#include "conformance/runner/sim_run.h"

namespace shardproof {

// Says whether an event is one of those looked for.
using EventTest = std::function<bool(const Trace& trace, int64_t event)>;

class FaultLab {
 public:
  // folder: for checkpoints. Throws std::invalid_argument for an id that is none.
  FaultLab(const std::string& id, const Plugin& plugin, std::string folder);

  const Case& spec() const { return case_; }
  const Models& models() const { return models_; }
  const RunData& good() const { return good_; }
  const Trace& good_trace(int32_t rank) const { return At(good_.run.traces, rank); }

  // The fault of the nth call of this name on the rank that the test accepts, counted from 0; of a
  // group of collectives each is tried. Nothing if there is none.
  std::optional<Fault> Find(int32_t rank, const std::string& call, const EventTest& test,
                            int64_t nth, Fault::Action action, int32_t amount) const;

  RunData Run(const std::optional<Fault>& fault, uint64_t seed, TimingPolicy policy) const;
  // Every check, with the oracle that the lab computed once.
  CheckResult Judge(RunData& data) const;
  CheckResult JudgeFault(const Fault& fault) const;

 private:
  Case case_;
  const Plugin& plugin_;
  std::string folder_;
  Models models_;
  std::vector<OracleRun> oracles_;
  RunData good_;
};

// By call: the events in a trace that its calls left, in order; of several collectives in one call
// the first.
std::vector<int64_t> EventsOfCall(const Trace& trace, const std::string& call);

// ---- tests, to be combined

// In the nth train step, from 0 (of all train_step calls of the trace); -1: in create.
EventTest InStep(int32_t step);
EventTest InCall(const std::string& entry_call);
EventTest OnStream(const std::string& name);
// The stream of the wait or host sync, and the stream on which its event was recorded last.
EventTest Edge(const std::string& waits, const std::string& for_stream);
EventTest Kernel(int32_t kernel);
EventTest Purpose(int32_t purpose);
EventTest IsCollective(int32_t collective);
EventTest Phase(int32_t phase);
EventTest Hook(int32_t hook);
EventTest Result(int32_t result);
EventTest OnGroup(const std::string& name);
// Reads (1), writes (2) or frees a block that was allocated for that purpose.
EventTest Touches(uint8_t access, int32_t purpose);
EventTest AllOf(std::vector<EventTest> tests);

}  // namespace shardproof
