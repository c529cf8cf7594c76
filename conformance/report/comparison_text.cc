#include <algorithm>
#include <map>
#include <set>

#include "conformance/common/safe_text.h"
#include "conformance/report/comparison.h"

namespace shardproof {
namespace {

size_t CasesIn(const ChangedCases& changed) {
  std::set<std::string> ids;
  for (const auto& [requirement, of] : changed) ids.insert(of.begin(), of.end());
  return ids.size();
}

std::string Counted(size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// What the reports are of, if that is not the same in both.
std::string OtherRuns(const ReadReport& earlier, const ReadReport& later) {
  std::string text;
  const auto differ = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b) text += std::string(text.empty() ? "" : "; ") + what + " " + a + ", then " + b;
  };
  differ("engine", earlier.impl, later.impl);
  differ("fabric", earlier.fabric, later.fabric);
  const auto asked = [](const ReadReport& report) {
    return report.asked.empty() ? "profile " + report.profile : report.asked;
  };
  if (earlier.asked.empty() && later.asked.empty()) {
    differ("profile", earlier.profile, later.profile);
  } else {
    differ("asked", asked(earlier), asked(later));
  }
  const auto named = [](const std::string& what) { return what.empty() ? "none" : what; };
  differ("shard", named(earlier.shard), named(later.shard));
  differ("select", named(earlier.select), named(later.select));
  differ("exclude", named(earlier.exclude), named(later.exclude));
  differ("options", named(earlier.options), named(later.options));
  differ("fault", named(earlier.fault), named(later.fault));
  return text;
}

// What became of some requirements, in the same cases.
struct Row {
  std::string kind;
  std::vector<std::string> requirements, ids;

  std::string Names() const {
    constexpr size_t kMost = 4;
    std::string text;
    for (size_t i = 0; i < std::min(kMost, requirements.size()); ++i)
      text += (i == 0 ? "" : ", ") + requirements[i];
    const size_t more = requirements.size() - std::min(kMost, requirements.size());
    return more == 0 ? text : text + " and " + std::to_string(more) + " more";
  }
};

std::vector<Row> RowsOf(const Comparison& comparison) {
  std::vector<Row> rows;
  for (const auto& [requirement, ids] : comparison.broken)
    rows.push_back({"broken", {requirement}, ids});
  const auto add = [&](const char* kind, const ChangedCases& changed) {
    std::map<std::vector<std::string>, std::vector<std::string>> together;
    for (const auto& [requirement, ids] : changed) together[ids].push_back(requirement);
    for (const auto& [ids, requirements] : together) rows.push_back({kind, requirements, ids});
  };
  add("no longer judged", comparison.lost);
  add("waived now", comparison.waived);
  add("fixed", comparison.fixed);
  return rows;
}

std::string LastLine(const Comparison& comparison) {
  std::string text;
  const auto add = [&](size_t count, const std::string& what) {
    if (count > 0) text += (text.empty() ? "" : ", ") + Counted(count, "case") + " " + what;
  };
  add(CasesIn(comparison.broken), "with something broken");
  add(CasesIn(comparison.lost), "with something no longer judged");
  add(comparison.gone.size(), "gone");
  if (!comparison.problems.empty())
    text += (text.empty() ? "" : ", ") + Counted(comparison.problems.size(), "new problem");
  if (!text.empty()) return "worse: " + text;
  const size_t fixed = CasesIn(comparison.fixed);
  return "not worse" + (fixed == 0 ? "" : ": " + Counted(fixed, "case") + " with something fixed");
}

std::string Ids(const std::vector<std::string>& ids) {
  return VisibleLine(ids.front()) +
         (ids.size() == 1 ? "" : " and " + std::to_string(ids.size() - 1) + " more");
}

}  // namespace

std::string ComparisonText(const ReadReport& earlier, const ReadReport& later,
                           const Comparison& comparison) {
  std::string text;
  for (const ReadReport* report : {&earlier, &later}) {
    text += (report == &earlier ? "earlier  " : "later    ") + VisibleLine(report->file) + ": " +
            Counted(report->cases.size(), "case") + " of " + VisibleLine(report->impl) + ", " +
            report->verdict + "\n";
  }
  const std::string other = OtherRuns(earlier, later);
  if (!other.empty()) text += "note: the reports are of other runs: " + VisibleLine(other) + "\n";
  for (const Row& row : RowsOf(comparison)) {
    text += row.kind + "  " + VisibleLine(row.Names()) + "  " + Counted(row.ids.size(), "case") +
            ": " + Ids(row.ids) + "\n";
    if (row.kind != "broken") continue;
    const std::string& requirement = row.requirements.front();
    text += "    " + VisibleLine(comparison.messages.at(requirement)) + "\n    " +
            VisibleLine(comparison.replays.at(requirement)) + "\n";
  }
  if (!comparison.gone.empty())
    text += "gone  " + Counted(comparison.gone.size(), "case") + ": " + Ids(comparison.gone) + "\n";
  if (!comparison.covered.empty())
    text += "gone, judged in others  " + Counted(comparison.covered.size(), "case") + ": " +
            Ids(comparison.covered) + "\n";
  if (!comparison.fresh.empty())
    text +=
        "new  " + Counted(comparison.fresh.size(), "case") + ": " + Ids(comparison.fresh) + "\n";
  for (const std::string& problem : comparison.problems)
    text += "problem  " + VisibleLine(problem) + "\n";
  text += "without a change: " + Counted(comparison.same, "case") + "\n";
  return text + LastLine(comparison) + "\n";
}

std::string ComparisonMarkdown(const ReadReport& earlier, const ReadReport& later,
                               const Comparison& comparison) {
  std::string text = "**shardproof: " + LastLine(comparison) + "**\n\n" + earlier.verdict +
                     ", then " + later.verdict + "; " + Counted(earlier.cases.size(), "case") +
                     ", then " + std::to_string(later.cases.size()) + ".\n";
  const std::string other = OtherRuns(earlier, later);
  if (!other.empty()) text += "The reports are of other runs: " + MarkdownLine(other) + "\n";
  std::map<std::string, size_t> shown;
  std::string table;
  for (const Row& row : RowsOf(comparison)) {
    if (++shown[row.kind] > kMostRows) continue;
    table += "| " + row.kind + " | " + MarkdownLine(row.Names()) + " | " +
             std::to_string(row.ids.size()) + " | " + MarkdownLine(row.ids.front()) + " |\n";
  }
  if (!table.empty())
    text += "\n| | requirement | cases | smallest case |\n|---|---|---|---|\n" + table;
  for (const auto& [kind, count] : shown) {
    if (count > kMostRows)
      text += "\nand " + Counted(count - kMostRows, "row") + " more, " + kind + "\n";
  }
  if (!comparison.gone.empty())
    text += "\nGone: " + Counted(comparison.gone.size(), "case") + ", say " +
            MarkdownLine(comparison.gone.front()) + "\n";
  if (!comparison.covered.empty())
    text += "\nGone, but each pair of their parts is judged in others: " +
            Counted(comparison.covered.size(), "case") + "\n";
  if (!comparison.fresh.empty())
    text += "\nNew: " + Counted(comparison.fresh.size(), "case") + ", say " +
            MarkdownLine(comparison.fresh.front()) + "\n";
  for (size_t i = 0; i < std::min(kMostRows, comparison.problems.size()); ++i)
    text += "\nProblem: " + MarkdownLine(comparison.problems[i]) + "\n";
  return text;
}

}  // namespace shardproof
