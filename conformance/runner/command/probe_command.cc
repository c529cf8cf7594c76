// probe: what does an engine take?
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "conformance/common/safe_text.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/runner/isolation/probe.h"
#include "conformance/runner/support/fitted_run.h"

namespace shardproof {

int ProbeCommand(const Options& options) {
  const EngineProbe probe = ProbeEngine(options);
  for (const Finding& finding : probe.findings)
    std::cerr << finding.requirement << ": " << VisibleLine(finding.message) << ": "
              << VisibleLine(finding.seen) << "\n";
  if (!probe.loads) return 1;
  const FittedRun run(options, 0);
  if (run.supported().empty()) {
    std::cerr << "shardproof: " << VisibleLine(options.impl)
              << " takes no case of those that were asked\n";
    return 1;
  }
  if (options.output.empty()) {
    std::cout << run.Told();
    return 0;
  }
  std::ofstream file(options.output);
  if (!(file << run.Told()).flush()) {
    throw std::invalid_argument("--output " + options.output + ": it cannot be written (" +
                                std::strerror(errno) + ")");
  }
  return 0;
}

}  // namespace shardproof
