#include "conformance/runner/last_failed.h"

#include <stdexcept>

#include "conformance/report/report.h"
#include "conformance/report/report_shards.h"

namespace shardproof {

Options WithLastFailed(const Options& options) {
  if (options.last_failed.empty()) return options;
  const bool chooses = !options.cases.empty() || !options.select.empty() ||
                       !options.exclude.empty() || !options.shard.empty() || options.random > 0;
  if (chooses)
    throw std::invalid_argument(
        "--last-failed says which cases are asked: leave --case, --select, --exclude, --shard and "
        "--random out");
  const ReadReport report = ReadReports(options.last_failed);
  const std::string where = "--last-failed " + options.last_failed + ": ";
  if (report.fabric != options.fabric)
    throw std::invalid_argument(where + "it is a report of --fabric " + report.fabric);
  Options again = options;
  again.seed = report.seed;
  for (const auto& [id, c] : report.cases) {
    if (id == kEngineRow) continue;  // loading the engine is tried in every run
    if (c.status == StatusName(Status::kFail) || c.status == StatusName(Status::kSuiteError))
      again.cases.push_back(id);
  }
  if (again.cases.empty()) throw std::invalid_argument(where + "no case failed there");
  return again;
}

}  // namespace shardproof
