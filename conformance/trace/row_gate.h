// row_gate.h: does one event fit into its trace? Internal to the readers, of text and of packed
// bytes: what they accept can be judged without further looks at indices.
#pragma once
#include <cstdint>

#include "conformance/trace/event.h"
#include "conformance/trace/row_rules.h"

namespace shardproof {

class RowGate {
 public:
  // Groups and streams are entered into the trace before the events that use them.
  explicit RowGate(Trace& trace) : trace_(trace), rules_(trace) {}

  void AddGroup(GroupInfo group);
  // Appends the event, whose pools are entered already. seen: Bit of each key that it has
  // (event_keys.h); values: how many the key "v" brought. Throws LineError.
  void Add(const Event& event, uint64_t seen, int64_t values);
  // After the last event. Throws LineError if a trace with this end cannot stop here.
  void End(TraceEnd end) const;
  // Events that were added; the trace may have given some of them away.
  int64_t events() const { return events_; }

 private:
  void CheckIndices(const Event& event, int64_t values);

  Trace& trace_;
  RowRules rules_;
  int64_t events_ = 0;
};

}  // namespace shardproof
