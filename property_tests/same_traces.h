// same_traces.h: are the traces of two runs the same, byte for byte, and where do they first
// differ?
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "conformance/runner/sim_run.h"
#include "conformance/trace/writer.h"

namespace shardproof {

// The line around a place in the text, cut to 400 characters.
inline std::string LineAt(const std::string& text, std::string::const_iterator at) {
  const auto place = static_cast<size_t>(at - text.begin());
  const size_t begin = place == 0 ? 0 : text.rfind('\n', place - 1) + 1;
  return text.substr(begin, text.find('\n', begin) - begin).substr(0, 400);
}

inline void ExpectSameTraces(const RunData& expected, const RunData& seen) {
  ASSERT_EQ(expected.run.traces.size(), seen.run.traces.size());
  for (size_t rank = 0; rank < expected.run.traces.size(); ++rank) {
    const std::string want = TraceToText(expected.run.traces[rank]),
                      is = TraceToText(seen.run.traces[rank]);
    if (want == is) continue;
    const auto [a, b] = std::mismatch(want.begin(), want.end(), is.begin(), is.end());
    ADD_FAILURE() << "rank " << rank << ", line " << std::count(want.begin(), a, '\n') + 1
                  << " of its trace: expected\n"
                  << LineAt(want, a) << "\nseen\n"
                  << LineAt(is, b);
  }
}

}  // namespace shardproof
