#include "conformance/requirements/explain.h"

#include <sstream>

namespace shardproof {

namespace {

constexpr size_t kColumns = 100, kLabel = 11;  // "judged by" and two blanks

// Words of the text in lines that begin at a column; the first goes on from there.
std::string Wrapped(const std::string& text, size_t column) {
  std::string out;
  size_t at = column;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    const bool first = out.empty();
    if (!first && at + 1 + word.size() > kColumns) {
      out += "\n" + std::string(column, ' ');
      at = column;
    } else if (!first) {
      out += " ";
      ++at;
    }
    out += word;
    at += word.size();
  }
  return out + "\n";
}

std::string Labelled(std::string label, const std::string& text) {
  if (text.empty()) return "";
  label.resize(kLabel, ' ');
  return "  " + label + Wrapped(text, 2 + kLabel);
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : ", ") + part;
  return all;
}

std::string ExampleText(const Example& example) {
  if (!example.none.empty()) return Labelled("example", "none: " + example.none);
  const bool published = example.source.find('/') != std::string::npos;
  const std::string of = published ? "the bug of " + example.source : "a bug that nobody published";
  std::string out =
      Labelled("example", "what `run` prints of an engine with " + of + ", fault " + example.fault +
                              " of the fault bank, case " + example.case_id + ":");
  std::istringstream in(example.text);
  for (std::string line; std::getline(in, line);) out += std::string(4, ' ') + line + "\n";
  return out;
}

}  // namespace

std::string ExplainText(const Requirement& requirement, const Glossary& glossary,
                        const Example* example) {
  std::string out = requirement.id + " (" +
                    (requirement.level == RequirementLevel::kMust ? "MUST" : "SHOULD") +
                    ", since " + requirement.since + ")\n  " + Wrapped(requirement.text, 2) + "\n";
  out += Labelled("why", requirement.why);
  out += Labelled("bug", requirement.bug);
  out += Labelled("reason", requirement.reason);
  out += Labelled("fix", requirement.fix);
  out += Labelled("source", requirement.source);
  out += Labelled("judged by", Joined(requirement.checks));
  std::string label = "words";
  const std::string said =
      requirement.text + " " + requirement.why + " " + requirement.reason + " " + requirement.fix;
  for (const Word& word : glossary.In(said)) {
    out += Labelled(label, word.word + ": " + word.means);
    label = " ";
  }
  if (example != nullptr) out += ExampleText(*example);
  return out;
}

}  // namespace shardproof
