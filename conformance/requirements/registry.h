// registry.h: what may be required of an engine, in one sentence each, and where does the rule come
// from?
//
// The rows live in *.toml beside this file and are compiled in, so that the command needs no files.
// Ids are stable: PG-nn process groups, FS-nn FSDP, EP-nn expert parallelism, LW-nn layer-wise
// optimizers, TP-nn tensor parallelism, CP-nn context parallelism, KN-nn promises of knobs, BU-nn
// budgets of a step, GE-nn general ones.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardproof {

enum class RequirementLevel { kMust, kShould };

struct Requirement {
  std::string id;
  RequirementLevel level = RequirementLevel::kMust;
  std::string text;    // one sentence
  std::string why;     // what goes wrong in training when it is broken
  std::string bug;     // a published one: owner/repo#number or @commit, and what it was; or
  std::string reason;  // where the rule comes from, if no published bug is known
  std::string fix;     // what to change in an engine
  std::string since;   // version of the suite that first had it
  std::string source;  // invariants of README.md; where it was found (README.md: the form)
  std::vector<std::string> checks;  // families that judge it
};

class Registry {
 public:
  // Rows of several files, given as (file name, TOML text). Throws std::invalid_argument, naming
  // file, line and field, for a syntax error, an unknown or missing field, a malformed or duplicate
  // id, or a text that is no sentence or too long.
  static Registry Parse(const std::vector<std::pair<std::string, std::string>>& files);
  // The rows that are compiled in.
  static Registry Builtin();

  // Null if there is none.
  const Requirement* Find(std::string_view id) const;
  // Of this level.
  std::set<std::string> Ids(RequirementLevel level) const;
  const std::vector<Requirement>& all() const { return requirements_; }  // by id

 private:
  std::vector<Requirement> requirements_;
};

// The compiled-in files; generated from the TOML files by the build.
std::vector<std::pair<std::string, std::string>> BuiltinRequirementFiles();

}  // namespace shardproof
