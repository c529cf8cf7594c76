// page.h: what stands in report.html?
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/report/report.h"

namespace shardproof {

struct PageLimits {
  size_t bytes = 4'500'000;               // of a page's cases
  size_t drawings_of_a_requirement = 12;  // in the smallest cases that break it
};

// What a reader of a broken requirement needs: what goes wrong in training, a published bug or
// where the rule comes from, and what to change. Each may be empty.
struct Lesson {
  std::string why, bug, fix;
};
using Lessons = std::function<Lesson(std::string_view id)>;

// lessons: null, if there are none. Names and texts: report.html, and what it has no room for in
// report-2.html and so on, to which it leads. Each is one file that needs no other and no network.
std::vector<std::pair<std::string, std::string>> HtmlPages(const RunReport& report,
                                                           const Sentence& sentence,
                                                           const Lessons& lessons = nullptr,
                                                           const PageLimits& limits = {});

}  // namespace shardproof
