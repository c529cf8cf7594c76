// knob_text.h: how does the knob table read in documents?
//
// As tables in Markdown, one line a row. The documents hold these very lines (knob_text_test.cc);
// `shardproof list knobs` and `shardproof list tokens` print them.
#pragma once
#include <string>

namespace shardproof {

// abi/KNOBS.md: name, values with the default first, meaning.
std::string KnobLines();
// cases/README.md: token, what it says, default.
std::string TokenLines();

}  // namespace shardproof
