// trace export: recorded traces for other tools.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

#include "conformance/common/safe_text.h"
#include "conformance/report/perfetto/perfetto.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/trace/reader.h"

namespace shardproof {

int ExportCommand(const Options& options) {
  const std::string kind = "trace:";
  if (!options.target.starts_with(kind))
    throw std::invalid_argument("\"" + options.target + "\": trace export takes trace:DIR");
  const std::vector<Trace> traces = ReadTraceFolder(options.target.substr(kind.size()));
  errno = 0;
  std::ofstream out(options.output, std::ios::binary);
  out << PerfettoJson(traces);
  out.close();
  if (!out)
    throw std::invalid_argument("--perfetto " + options.output + ": it cannot be written (" +
                                std::strerror(errno) + ")");
  size_t events = 0;
  for (const Trace& trace : traces) events += trace.events.size();
  std::cout << VisibleLine(options.output) << ": " << events << " events of " << traces.size()
            << (traces.size() == 1 ? " rank" : " ranks") << ", to open in ui.perfetto.dev\n";
  return 0;
}

}  // namespace shardproof
