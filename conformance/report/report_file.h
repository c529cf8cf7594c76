// report_file.h: what does the report of an earlier run say?
//
// Reads report.jsonl (files.h). A run that was killed has no footer there: that is an error, since
// the cases that are missing were neither passed nor failed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shardproof {

// Of a requirement in one case. kWithinBound: it holds, where others are judged bit for bit.
// kFollows: its findings all follow from others.
enum class Judgement { kWithinBound, kHolds, kFollows, kWaived, kBroken };

struct ReadCase {
  std::string status;
  std::map<std::string, Judgement> requirements;  // those that were judged or have a finding
  std::map<std::string, std::string> messages;    // of kBroken: of its first finding
  std::set<std::string> open;                     // that were not judged, or not asked
  // Requirement and message of each finding that follows from no other, is not waived and no
  // warning.
  std::vector<std::pair<std::string, std::string>> causes;
  std::string replay;
};

struct ReadReport {
  std::string file;             // where it was read
  std::string version, commit;  // of the suite
  std::string impl, fabric, profile, verdict;
  std::string engine;  // as it calls itself, or empty
  std::string assurance;
  std::string asked;                     // instead of a profile, or empty
  std::string shard;                     // "2/4": of --shard, or empty
  std::string fault;                     // that was planted, or empty
  std::string select, exclude, options;  // of the header, in one text each
  uint64_t seed = 1;
  bool strict = false;
  std::map<std::string, ReadCase> cases;  // by id
  std::vector<std::string> problems;
};

// What the header says of the suite, of what was asked of which engine and how it ran, each with
// its name: the same in all shards of a run.
std::vector<std::pair<std::string, std::string>> RunFields(const ReadReport& report);

// A report.jsonl, or a folder that has one. Throws std::invalid_argument that names file and line.
ReadReport ReadReportFile(const std::filesystem::path& path);

}  // namespace shardproof
