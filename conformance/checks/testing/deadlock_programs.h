// deadlock_programs.h: how are the programs of fixtures/deadlock read and turned into traces?
#pragma once
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof::graph {

// fixtures/deadlock/FORMAT.md explains the fields.
struct DeadlockProgram {
  std::string name, why;
  std::map<std::string, std::vector<int32_t>> communicators;
  std::vector<std::vector<std::vector<std::string>>> ranks;  // by rank, thread: operations

  std::string matching;
  std::map<std::string, std::string> profiles;
  std::optional<bool> e3;
  std::vector<int32_t> spin, resident, max_spinning, max_resident;
  std::string one_slot_any_order, group_as_one_operation, launch_queue_depth_1;
  bool has_slots_in_order = false;
  int32_t slots_in_order = 0;  // 0: no number is safe
  struct Race {
    int32_t rank = 0;
    int32_t first = 0, second = 0;
    auto operator<=>(const Race&) const = default;
  };
  std::optional<std::vector<Race>> races;
};

// Throws std::runtime_error with the line number when the file is not as FORMAT.md says.
std::vector<DeadlockProgram> ReadDeadlockPrograms(const std::string& path);

// Event i of a rank is its operation i, when the rank has one thread. Threads of a rank take turns
// that are drawn, if random is given.
std::vector<Trace> ToTraces(const DeadlockProgram& program, std::mt19937* random = nullptr);

}  // namespace shardproof::graph
