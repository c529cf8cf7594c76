// diff: two reports are compared.
#include <iostream>

#include "conformance/report/comparison.h"
#include "conformance/report/report_shards.h"
#include "conformance/runner/command/run_command.h"

namespace shardproof {

int DiffCommand(const Options& options) {
  const ReadReport earlier = ReadReports(options.target), later = ReadReports(options.later);
  const Comparison comparison = Compare(earlier, later);
  std::cout << (options.markdown ? ComparisonMarkdown(earlier, later, comparison)
                                 : ComparisonText(earlier, later, comparison));
  return IsWorse(comparison) ? 1 : 0;
}

}  // namespace shardproof
