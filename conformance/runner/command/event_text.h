// event_text.h: how does an event read?
#pragma once
#include <string>

#include "conformance/trace/event.h"

namespace shardproof {

// One line: "collective all_gather on dp_cp, stream gather, 64 x f32, reads 7[0,256) writes
// 8[0,2048)".
std::string EventText(const Trace& trace, const Event& event);

}  // namespace shardproof
