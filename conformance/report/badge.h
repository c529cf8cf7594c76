// badge.h: how is a verdict shown where there is room for a line, say in a README?
//
// An SVG of its own: no script, no reference to anything else, no text of an engine but in its
// title, and that made harmless.
#pragma once
#include <map>
#include <string>

#include "conformance/report/report.h"
#include "conformance/report/report_file.h"
#include "conformance/report/verdict_rule.h"

namespace shardproof {

// Cases by the names of their statuses.
using StatusCounts = std::map<std::string, int>;

std::string Badge(RunVerdict verdict, const StatusCounts& counts, const std::string& engine);
std::string Badge(const RunReport& report);
std::string Badge(const ReadReport& report);

// As a run's last line: "not conformant: 3 fail, 309 pass".
std::string VerdictLine(const ReadReport& report);

}  // namespace shardproof
