#include "conformance/fabric/process/descendants.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "conformance/common/read_file.h"

namespace shardproof {
namespace {

struct ProcessRow {
  std::string name;
  pid_t parent = 0;
  char state = '?';
};

// /proc/PID/stat: PID (NAME) STATE PARENT ...; a name may hold anything, parentheses too.
bool Read(const char* pid, ProcessRow* row) {
  const std::string text = ReadFile(std::string("/proc/") + pid + "/stat").value_or("");  // gone
  const size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return false;
  row->name = text.substr(open + 1, close - open - 1);
  int parent = 0;
  if (std::sscanf(text.c_str() + close + 1, " %c %d", &row->state, &parent) != 2) return false;
  row->parent = parent;
  return true;
}

std::map<pid_t, ProcessRow> AllProcesses() {
  std::map<pid_t, ProcessRow> rows;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return rows;
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = std::atoi(entry->d_name);
    ProcessRow row;
    if (pid > 0 && Read(entry->d_name, &row)) rows[pid] = row;
  }
  closedir(proc);
  return rows;
}

std::map<pid_t, ProcessRow> Below(pid_t ancestor) {
  const std::map<pid_t, ProcessRow> all = AllProcesses();
  std::map<pid_t, ProcessRow> below;
  for (bool more = true; more;) {
    more = false;
    for (const auto& [pid, row] : all) {
      const bool child = row.parent == ancestor || below.contains(row.parent);
      if (child && below.emplace(pid, row).second) more = true;
    }
  }
  return below;
}

bool Lives(const ProcessRow& row) { return row.state != 'Z' && row.state != 'X'; }

}  // namespace

void AdoptOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> DescendantsOf(pid_t ancestor) {
  std::vector<pid_t> pids;
  for (const auto& [pid, row] : Below(ancestor)) {
    if (Lives(row)) pids.push_back(pid);
  }
  return pids;
}

Ended EndDescendants(const std::function<void(pid_t child, int status)>& reaped) {
  constexpr timespec kNap{0, 1'000'000};
  constexpr int kNaps = 10'000;
  Ended ended;
  std::set<pid_t> seen;
  for (int nap = 0; nap < kNaps; ++nap) {
    int status = 0;
    pid_t child = 0;
    while ((child = waitpid(-1, &status, WNOHANG)) > 0) {
      if (reaped) reaped(child, status);
    }
    if (child < 0) break;  // ECHILD: nobody is left
    for (const auto& [pid, row] : Below(getpid())) {
      if (!Lives(row)) continue;
      kill(pid, SIGKILL);
      if (!seen.insert(pid).second) continue;
      ++ended.processes;
      ended.name = row.name;
    }
    nanosleep(&kNap, nullptr);
  }
  return ended;
}

}  // namespace shardproof
