// case.h's Id and ParseId. The grammar is in README.md, the vocabulary in id_fields.h.
#include <stdexcept>

#include "conformance/cases/case.h"
#include "conformance/cases/id_fields.h"

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
  if (ids::After(token, "w", &rest) && ids::ReadInteger(rest, &c->world)) return true;
  return ids::After(token, "s", &rest) && ids::ReadInteger(rest, &c->seed);
}

}  // namespace

std::string Id(const Case& c) {
  std::string id = "w" + std::to_string(c.world);
  if (c.seed != Case{}.seed) id += ".s" + std::to_string(c.seed);
  const std::vector<ids::Field> fields = ids::Fields();
  bool first = true;
  for (InstanceSpec spec : c.instances) {
    if (spec.span == c.world - spec.offset) spec.span = 0;
    std::string tokens;
    for (const ids::Field& field : fields) {
      const std::string token = field.write(spec);
      if (!token.empty()) tokens += (tokens.empty() ? "" : ".") + token;
    }
    id += (first ? "." : "+") + tokens;
    first = false;
  }
  return id;
}

Case ParseId(const std::string& id) {
  const std::vector<ids::Field> fields = ids::Fields();
  Case c;
  c.instances.clear();
  for (const std::string& part : Split(id, '+')) {
    InstanceSpec spec;
    std::vector<bool> seen(fields.size(), false);
    for (const std::string& token : Split(part, '.')) {
      if (c.instances.empty() && ReadCaseToken(token, &c)) continue;
      size_t at = 0;
      while (at < fields.size() && !fields[at].read(token, spec)) ++at;
      if (at == fields.size()) BadToken(id, token, "is not known");
      if (seen[at]) BadToken(id, token, "says something that was said before");
      seen[at] = true;
    }
    if (!seen[0]) BadToken(id, part, "names no strategy; use ddp, zero1, zero2, zero3 or lw");
    c.instances.push_back(std::move(spec));
  }
  Derive(c);
  return c;
}

}  // namespace shardproof
