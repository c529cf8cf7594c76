// neighbourhood.h: which events are near a finding?
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/checks/base/check.h"

namespace shardproof {

// The n-th operation of a communicator, or of a message's sender and receiver (else -1, -1).
using Meeting = std::tuple<std::string, int32_t, int32_t, int64_t>;

// By rank and event. Operations of one meeting are parts of one collective.
std::vector<std::map<int64_t, Meeting>> MeetingsOf(const std::vector<Trace>& traces);

// By rank and place in its order of issue, whom each event meets (null: nobody): a column for each.
// Columns of a rank follow its order; those who meet share one, where that makes no circle.
std::vector<std::vector<int32_t>> ColumnsOf(const std::vector<std::vector<const Meeting*>>& ranks);

// The record that this wait waits for; -1: none.
int64_t RecordOf(const Trace& trace, int64_t wait);

// What is drawn of one rank: events around those of focus, at most `most`.
std::set<int64_t> Around(const Trace& trace, const std::set<int64_t>& focus, size_t most);

}  // namespace shardproof
