// case.h's Id and ParseId. The grammar is in README.md, the vocabulary is the knob table.
#include <stdexcept>
#include <string_view>
#include <utility>

#include "conformance/cases/case.h"
#include "conformance/cases/knob_row.h"

namespace shardproof {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

[[noreturn]] void BadToken(const std::string& id, const std::string& token,
                           const std::string& why) {
  throw std::invalid_argument("case id '" + id + "': token '" + token + "' " + why);
}

// The case's own tokens: world and seed.
bool ReadCaseToken(const std::string& token, Case* c) {
  std::string rest;
  if (rows::After(token, "w", &rest) && rows::ReadInteger(rest, &c->world)) return true;
  return rows::After(token, "s", &rest) && rows::ReadInteger(rest, &c->seed);
}

bool Reads(const Knob& knob, const std::string& token, InstanceSpec& spec) {
  return knob.read != nullptr && knob.read(token, spec);
}

// Between the legs of a case.
constexpr std::string_view kThen = ".then.";
// At the end of a leg.
constexpr std::string_view kKilled = ".killed", kStarved = ".starved";

std::string IdOfLeg(const Case& c) {
  std::string id = "w" + std::to_string(c.world);
  if (c.seed != Case{}.seed) id += ".s" + std::to_string(c.seed);
  bool first = true;
  for (InstanceSpec spec : c.instances) {
    if (spec.span == c.world - spec.offset) spec.span = 0;
    std::string tokens;
    for (const Knob& knob : KnobTable()) {
      if (knob.write == nullptr) continue;
      const std::string token = knob.write(spec);
      if (!token.empty()) tokens += (tokens.empty() ? "" : ".") + token;
    }
    id += (first ? "." : "+") + tokens;
    first = false;
  }
  if (c.killed) id += kKilled;
  if (c.starved) id += kStarved;
  return id;
}

// Whether the id ends so; then without it.
bool TakeEnd(std::string_view end, std::string* id) {
  if (!id->ends_with(end)) return false;
  id->resize(id->size() - end.size());
  return true;
}

Case ParseLeg(std::string id) {
  const std::vector<Knob>& table = KnobTable();
  Case c;
  c.starved = TakeEnd(kStarved, &id);
  c.killed = TakeEnd(kKilled, &id);
  c.instances.clear();
  for (const std::string& part : Split(id, '+')) {
    InstanceSpec spec;
    std::vector<bool> seen(table.size(), false);
    for (const std::string& token : Split(part, '.')) {
      if (c.instances.empty() && ReadCaseToken(token, &c)) continue;
      size_t at = 0;
      while (at < table.size() && !Reads(table[at], token, spec)) ++at;
      if (at == table.size()) BadToken(id, token, "is not known");
      if (seen[at]) BadToken(id, token, "says something that was said before");
      seen[at] = true;
    }
    if (!seen[0]) BadToken(id, part, "names no strategy; use ddp, zero1, zero2, zero3 or lw");
    c.instances.push_back(std::move(spec));
  }
  return c;
}

}  // namespace

std::string Id(const Case& c) {
  std::string id;
  for (const Case& leg : c.before) id += IdOfLeg(leg) + std::string(kThen);
  return id + IdOfLeg(c);
}

Case ParseId(const std::string& id) {
  std::vector<Case> legs;
  size_t begin = 0;
  for (size_t end = id.find(kThen); end != std::string::npos; end = id.find(kThen, begin)) {
    legs.push_back(ParseLeg(id.substr(begin, end - begin)));
    begin = end + kThen.size();
  }
  Case c = ParseLeg(id.substr(begin));
  c.before = std::move(legs);
  Derive(c);
  return c;
}

}  // namespace shardproof
