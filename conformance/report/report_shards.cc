#include "conformance/report/report_shards.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "conformance/report/verdict_rule.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

std::vector<ReadReport> ReportsBelow(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<ReadReport> shards;
  for (const fs::path& each : files) shards.push_back(ReadReportFile(each));
  if (shards.empty())
    throw std::invalid_argument(folder.string() +
                                ": there is no report.jsonl in it, and no folder of a shard");
  return shards;
}

// "4", of "2/4"; empty if it is no shard.
std::string ShardsOf(const ReadReport& shard) {
  const size_t slash = shard.shard.find('/');
  const std::string of = slash == std::string::npos ? "" : shard.shard.substr(slash + 1);
  constexpr size_t kMostDigits = 5;
  return of.size() > kMostDigits || of.find_first_not_of("0123456789") != std::string::npos ? ""
                                                                                            : of;
}

// "seed 1 and 7; fault none and event_wait:3:drop@1": what keeps them from being of one run.
std::string Differing(const ReadReport& one, const ReadReport& other) {
  std::string text;
  const auto compare = [&](const std::string& what, const std::string& a, const std::string& b) {
    const auto named = [](const std::string& value) { return value.empty() ? "none" : value; };
    if (a != b) text += (text.empty() ? "" : "; ") + what + " " + named(a) + " and " + named(b);
  };
  compare("number of shards", ShardsOf(one), ShardsOf(other));
  const auto fields = RunFields(one), others = RunFields(other);
  for (size_t i = 0; i < fields.size(); ++i)
    compare(fields[i].first, fields[i].second, others[i].second);
  // One that did not load has no name, and its shard is red.
  if (!one.engine.empty() && !other.engine.empty())
    compare("name of the engine", one.engine, other.engine);
  return text;
}

void RequireAllOfOneRun(const std::vector<ReadReport>& shards, const std::string& folder) {
  std::set<std::string> there;
  for (const ReadReport& each : shards) {
    if (const std::string differ = Differing(shards[0], each); !differ.empty())
      throw std::invalid_argument(shards[0].file + " and " + each.file +
                                  " are no shards of one run: " + differ);
    if (!there.insert(each.shard).second)
      throw std::invalid_argument(folder + ": shard " + each.shard + " is there twice");
  }
  if (ShardsOf(shards[0]).empty())
    throw std::invalid_argument(folder + " holds no shards of a run: " + shards[0].file +
                                " is of no shard");
  const size_t shards_of_run = std::stoul(ShardsOf(shards[0]));
  for (size_t i = 1; i <= shards_of_run; ++i) {
    const std::string shard = std::to_string(i) + "/" + ShardsOf(shards[0]);
    if (!there.contains(shard))
      throw std::invalid_argument(folder + ": the report of shard " + shard + " is missing");
  }
}

// A shard that has no case which the engine takes has a verdict of its own, as good as none: one
// that is red counts, also if that is because nothing was judged.
std::string WorstVerdict(const std::vector<ReadReport>& shards) {
  const std::string red = VerdictName(RunVerdict::kNotConformant);
  const std::string nothing = VerdictName(RunVerdict::kNothingHere);
  std::string worst;
  for (const ReadReport& shard : shards) {
    if (worst.empty() || VerdictNamed(shard.verdict) > VerdictNamed(worst)) worst = shard.verdict;
  }
  return worst.empty() || worst == nothing ? red : worst;
}

}  // namespace

ReadReport ReadReports(const fs::path& path) {
  if (!fs::is_directory(path) || fs::exists(path / "report.jsonl")) return ReadReportFile(path);
  std::vector<ReadReport> shards = ReportsBelow(path);
  RequireAllOfOneRun(shards, path.string());
  const std::string verdict = WorstVerdict(shards);
  ReadReport all = std::move(shards[0]);
  all.file = path.string();
  all.shard.clear();
  all.verdict = verdict;
  for (size_t i = 1; i < shards.size(); ++i) {
    for (auto& [id, c] : shards[i].cases) {
      if (!all.cases.emplace(id, std::move(c)).second && id != kEngineRow)
        throw std::invalid_argument(path.string() + ": case " + id + " is in two shards");
    }
    all.problems.insert(all.problems.end(), shards[i].problems.begin(), shards[i].problems.end());
  }
  return all;
}

}  // namespace shardproof
