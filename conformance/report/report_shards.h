// report_shards.h: what does a run say whose shards wrote a report each?
#pragma once
#include <filesystem>

#include "conformance/report/report_file.h"

namespace shardproof {

// What ReadReportFile takes, or a folder of such folders: those of all shards of one run
// (`run --shard I/N --report DIR/I`), as one report. Its verdict is the worst one. A shard in which
// nothing is red and nothing was judged has none, unless all shards are so. Throws
// std::invalid_argument that names a shard that is missing or there twice, what is no shard, or in
// what two are not of one run.
ReadReport ReadReports(const std::filesystem::path& path);

}  // namespace shardproof
