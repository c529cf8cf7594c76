// race_words.h: how does a finding tell a person of two accesses that race?
#pragma once
#include <string>

#include "conformance/checks/graph/races.h"

namespace shardproof::graph {

struct RaceWords {
  std::string first, second;            // "copy (stream main)"
  std::string first_verb, second_verb;  // "reads"
  std::string first_stream, waiting;    // "stream main"; of the second: who does not wait
  std::string bytes;                    // "bytes [0, 4096) of block 12 (full parameters, module 3)"
  std::string expected, seen;           // of the finding
  std::string advice;                   // who has to wait for what
};
RaceWords InWords(const Program& program, const Race& race);

}  // namespace shardproof::graph
