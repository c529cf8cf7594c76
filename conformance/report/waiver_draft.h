// waiver_draft.h: which waivers would excuse what failed in a report?
#pragma once
#include <string>

#include "conformance/report/report_file.h"

namespace shardproof {

// A waiver file (waivers.h), a waiver for each cause: requirement, what messages that differ in
// numbers have in common, and a glob over the ids of the cases that have it. Its reasons are empty,
// so that it is refused until somebody has written them. expires: of each, "2027-06-30".
std::string WaiverDraft(const ReadReport& report, const std::string& expires);

}  // namespace shardproof
