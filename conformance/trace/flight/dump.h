// dump.h: what did one rank's flight recorder of torch.distributed keep?
//
// PyTorch writes such a dump where a collective times out, or when asked to: a pickle (or JSON) of
// the last entries of a ring (torch/csrc/distributed/c10d/FlightRecorder*.hpp; read at 2.15.0).
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/trace/flight/value_tree.h"

namespace shardproof::flight {

struct DumpGroup {
  std::string name, description;
  std::vector<int32_t> ranks;  // of the world, in the order of the group; empty: not told
};

struct Entry {
  int32_t group = 0;       // index into Dump::groups
  uint8_t collective = 0;  // as Event::collective
  uint8_t dtype = 0;       // spf_dtype; 0: one that the suite does not know, or none
  bool completed = false;
  int32_t peer = -1;                // of send and recv: a rank of the group; -1: not told
  int64_t sequence = 0;             // of collectives: equal on all members
  int64_t inputs = 0, outputs = 0;  // elements
  int32_t place = -1;  // index into Dump::places: file:line of the innermost frame outside of torch
};

struct Dump {
  int32_t rank = 0;
  bool whole = true;  // the ring has lost no entry yet
  std::vector<DumpGroup> groups;
  std::vector<Entry> entries;  // in the order of issue
  std::vector<std::string> places;
};

// tree: of another dump, whose memory is used again. Throws FormatError.
Dump ReadDump(std::string_view bytes, int32_t rank, ValueTree& tree);

// All dumps of a folder, by rank: files whose names end with _ and the rank, with or without .json
// (nccl_trace_rank_0). Throws std::invalid_argument, which names the file.
std::vector<Dump> ReadDumps(const std::filesystem::path& folder);

}  // namespace shardproof::flight
