#include "conformance/runner/measure/link/steal_time.h"

#include <optional>
#include <sstream>
#include <stdexcept>

#include "conformance/common/read_file.h"

namespace shardproof {

ProcessorTime ProcessorTimeIn(const std::string& proc_stat) {
  // user nice system idle iowait irq softirq steal; guests' time, behind them, is in user and nice.
  constexpr int kTimes = 8;
  std::istringstream text(proc_stat);
  std::string cpu;
  ProcessorTime time;
  text >> cpu;
  for (int i = 0; i < kTimes; ++i) {
    text >> time.steal;  // the last one
    time.all += time.steal;
  }
  if (!text || cpu != "cpu")
    throw std::invalid_argument("not the text of /proc/stat: \"" + proc_stat.substr(0, 40) + "\"");
  return time;
}

ProcessorTime ProcessorTimeNow() {
  const std::optional<std::string> text = ReadFile("/proc/stat");
  if (!text) throw std::runtime_error("/proc/stat cannot be read");
  return ProcessorTimeIn(*text);
}

double StealPercent(const ProcessorTime& begin, const ProcessorTime& end) {
  if (end.all <= begin.all) return 0;
  return 100 * static_cast<double>(end.steal - begin.steal) /
         static_cast<double>(end.all - begin.all);
}

}  // namespace shardproof
