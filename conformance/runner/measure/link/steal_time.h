// steal_time.h: how much processor time did the hypervisor give to other machines (%st of top)?
#pragma once
#include <cstdint>
#include <string>

namespace shardproof {

// Ticks of all processors since the machine started.
struct ProcessorTime {
  int64_t steal = 0, all = 0;
};

// proc_stat: the text of /proc/stat (proc_stat(5)). Throws std::invalid_argument: another text.
ProcessorTime ProcessorTimeIn(const std::string& proc_stat);
// Of this machine. Throws std::runtime_error where there is no /proc/stat.
ProcessorTime ProcessorTimeNow();

// Percent of all between the two, idle time included; 0 where no time has passed.
double StealPercent(const ProcessorTime& begin, const ProcessorTime& end);

}  // namespace shardproof
