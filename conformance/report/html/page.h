// page.h: what stands in report.html?
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "conformance/report/report.h"

namespace shardproof {

struct PageLimits {
  size_t bytes = 4'500'000;               // of a page's cases
  size_t drawings_of_a_requirement = 12;  // in the smallest cases that break it
};

// Names and texts: report.html, and what it has no room for in report-2.html and so on, to which it
// leads. Each is one file that needs no other and no network.
std::vector<std::pair<std::string, std::string>> HtmlPages(const RunReport& report,
                                                           const Sentence& sentence,
                                                           const PageLimits& limits = {});

}  // namespace shardproof
