// comparison.h: what has become of an engine between two reports?
//
// For each case and requirement: broken, if it is broken now and was not; fixed, if it held in the
// end what was broken; no longer judged, if it held or was broken and nothing says so now, or if it
// is judged within a bound now and was judged bit for bit. What was broken and is not judged any
// more is not fixed. But what only a failure shows (a crash, say) is neither: a case that passes
// now, and does not list it as open, has nothing left that it is about.
//
// Cases are compared by id: two reports of other profiles have little in common, and the comparison
// says so. The core profile follows what an engine takes, so ids change when it takes more: a case
// that is gone is worse if a part of its id, or a pair of them, is in no judged case any more.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "conformance/report/report_file.h"

namespace shardproof {

// Cases in which something became of a requirement; the first is the one with the fewest features.
using ChangedCases = std::map<std::string, std::vector<std::string>>;

struct Comparison {
  ChangedCases broken, fixed, lost, waived;  // by requirement
  std::vector<std::string> fresh, gone;      // cases that the other report does not have
  std::vector<std::string> covered;          // gone too, but others judge each pair of their parts
  std::vector<std::string> problems;         // of files that the user gave, new ones
  size_t same = 0;                           // cases of both in which nothing changed
  std::string earlier_verdict, later_verdict;
  std::map<std::string, std::string> messages;  // of broken requirements, in their first case
  std::map<std::string, std::string> replays;   // the same, the command that shows it
};

// Throws std::invalid_argument if nothing was judged in both: that is no comparison.
Comparison Compare(const ReadReport& earlier, const ReadReport& later);

// Something is broken, no longer judged or gone, or there is a new problem.
bool IsWorse(const Comparison& comparison);

// For the console, and for a comment on a pull request (at most kMostRows rows of each kind). Both
// end with a line that says whether something is worse.
inline constexpr size_t kMostRows = 15;
std::string ComparisonText(const ReadReport& earlier, const ReadReport& later,
                           const Comparison& comparison);
std::string ComparisonMarkdown(const ReadReport& earlier, const ReadReport& later,
                               const Comparison& comparison);

}  // namespace shardproof
