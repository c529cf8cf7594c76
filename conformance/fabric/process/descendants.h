// descendants.h: which processes has this one started, directly or not, and how do they all end?
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace shardproof {

// From now on a process whose parent ends becomes a child of this one, if this one is its nearest
// ancestor that asked for it (Linux, PR_SET_CHILD_SUBREAPER): no daemon can get away from it.
void AdoptOrphans();

// The living processes below `ancestor`, as /proc shows them.
std::vector<pid_t> DescendantsOf(pid_t ancestor);

// What had to be ended.
struct Ended {
  int processes = 0;
  std::string name;  // of one of them, as ps shows it
};

// Kills and reaps all processes below this one, and does not return before there is none left, or
// before those that are left have not died of SIGKILL for ten seconds. reaped, if any, hears of
// each child with its status as filled in by waitpid. REQUIRES: AdoptOrphans.
Ended EndDescendants(const std::function<void(pid_t child, int status)>& reaped = nullptr);

}  // namespace shardproof
