#include "conformance/runner/chosen.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <sstream>
#include <stdexcept>

#include "conformance/cases/knob_text.h"
#include "conformance/common/nearest.h"
#include "conformance/report/waivers.h"
#include "conformance/runner/rank_main.h"

namespace shardproof {

namespace {

bool IsId(const std::string& id) {
  try {
    ParseId(id);
  } catch (const std::invalid_argument&) {
    return false;
  }
  return true;
}

// The words in the first column of the table of tokens: "| ddp, zero1 | ..."
std::vector<std::string> Tokens() {
  std::vector<std::string> tokens;
  std::istringstream lines(TokenLines());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(1, line.find('|', 1) - 1));
    for (std::string word; words >> word;) {
      if (word.back() == ',') word.pop_back();
      tokens.push_back(word);
    }
  }
  return tokens;
}

// The id with one of its tokens replaced by the nearest one that makes it an id.
std::string Meant(const std::string& id) {
  const std::vector<std::string> tokens = Tokens();
  for (size_t begin = 0; begin < id.size();) {
    const size_t end = std::min(id.find_first_of(".+", begin), id.size());
    const std::string token = id.substr(begin, end - begin);
    std::vector<std::string> known;
    for (const std::string& word : tokens) {
      if (IsId(id.substr(0, begin) + word + id.substr(end))) known.push_back(word);
    }
    const std::string nearest = Nearest(token, known);
    if (!nearest.empty()) return id.substr(0, begin) + nearest + id.substr(end);
    begin = end + 1;
  }
  return "";
}

// A token that is known may be wrong beside the others: then no other one was meant.
Case Parsed(const std::string& id) {
  try {
    return ParseId(id);
  } catch (const std::invalid_argument& error) {
    const std::string words = error.what();
    const std::string meant = words.ends_with("is not known") ? Meant(id) : "";
    if (!meant.empty()) throw std::invalid_argument(words + ". Did you mean " + meant + "?");
    if (words.find("'" + id + "'") != std::string::npos) throw;
    throw std::invalid_argument("case id '" + id + "': " + words);
  }
}

bool MatchesAny(const std::vector<std::string>& globs, const std::string& id) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return GlobMatches(glob, id); });
}

std::string Joined(const char* option, const std::vector<std::string>& globs) {
  std::string text;
  for (const std::string& glob : globs) text += std::string(" ") + option + " " + glob;
  return text;
}

}  // namespace

Shard ParseShard(const std::string& text) {
  Shard shard;
  if (text.empty()) return shard;
  char rest = 0;
  const bool reads = text.find_first_not_of("0123456789/") == std::string::npos &&
                     std::sscanf(text.c_str(), "%5zu/%5zu%c", &shard.number, &shard.of, &rest) == 2;
  if (!reads || shard.number == 0 || shard.number > shard.of)
    throw std::invalid_argument("--shard " + text + ": it takes I/N, from 1/N to N/N");
  return shard;
}

Case CaseOfId(const std::string& id) {
  const Case c = Parsed(id);
  try {
    for (const Case& leg : LegsOf(c)) MakeModels(leg);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("case id '" + id + "': " + error.what());
  }
  return c;
}

std::string KeepChosen(const Options& options, std::vector<Case>* cases) {
  const Shard shard = ParseShard(options.shard);
  if (options.select.empty() && options.exclude.empty() && shard.of == 1) return "";
  const size_t there_are = cases->size();
  std::erase_if(*cases, [&](const Case& c) {
    const std::string id = Id(c);
    return (!options.select.empty() && !MatchesAny(options.select, id)) ||
           MatchesAny(options.exclude, id);
  });
  std::string why = Joined("--select", options.select) + Joined("--exclude", options.exclude);
  if (cases->empty()) throw std::invalid_argument("no case is left:" + why);
  if (shard.of > 1) {
    size_t place = 0;
    std::erase_if(*cases, [&](const Case&) { return !shard.Has(place++); });
    why += " --shard " + options.shard;
  }
  return "chosen: " + std::to_string(cases->size()) + " of " + std::to_string(there_are) +
         " cases (" + why.substr(1) + ")";
}

}  // namespace shardproof
