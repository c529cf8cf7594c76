// page_parts.h: what of report.html is the same in every report? (page.html with style and scripts,
// written by embed.py)
#pragma once
#include <string_view>

namespace shardproof {

extern const std::string_view kBeforeData, kAfterData;

}  // namespace shardproof
