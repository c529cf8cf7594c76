#include "conformance/report/html/page.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/common/at.h"
#include "conformance/common/safe_text.h"
#include "conformance/report/case_group.h"
#include "conformance/report/console.h"
#include "conformance/report/failures.h"
#include "conformance/report/folded.h"
#include "conformance/report/html/page_parts.h"
#include "conformance/report/verdict_rule.h"

namespace shardproof {

namespace {

using nlohmann::json;

constexpr size_t kMostNotes = 20, kMostPrintedLines = 40;  // of a case

// Texts of a page, each once.
class Strings {
 public:
  size_t Place(const std::string& foreign) {
    std::string text = VisibleText(foreign);
    const auto [known, fresh] = places_.try_emplace(std::move(text), list_.size());
    if (fresh) {
      list_.push_back(known->first);
      bytes_ += known->first.size() + 4;
    }
    return known->second;
  }
  size_t bytes() const { return bytes_; }
  const json& list() const { return list_; }

 private:
  std::map<std::string, size_t> places_;
  json list_ = json::array();
  size_t bytes_ = 0;
};

// ASCII without what could end a script element.
std::string Island(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace), out;
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else if (c == '>') {
      out += "\\u003e";
    } else if (c == '&') {
      out += "\\u0026";
    } else {
      out += c;
    }
  }
  return out;
}

// Drawings that have room, by their texts.
using Drawn = std::set<const std::string*>;

Drawn ChooseDrawings(const RunReport& report, size_t of_a_requirement) {
  std::map<std::string, std::vector<std::pair<const CaseReport*, const std::string*>>> of;
  for (const CaseReport& c : report.cases) {
    for (const auto& [place, drawing] : c.drawings) {
      if (place < c.findings.size())
        of[c.findings[place].finding.requirement].emplace_back(&c, &drawing);
    }
  }
  Drawn drawn;
  for (auto& [requirement, list] : of) {
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
      return IsSmaller(a.first->id, b.first->id);
    });
    for (size_t i = 0; i < list.size() && i < of_a_requirement; ++i) drawn.insert(list[i].second);
  }
  return drawn;
}

class Page {
 public:
  bool Full(size_t bytes) const { return cases_bytes_ + strings_.bytes() > bytes; }

  // page: which has its findings; 0: this one.
  void Add(const CaseReport& c, const std::vector<std::string>& groups, size_t page,
           const Drawn& drawn) {
    json row = {{"id", VisibleLine(c.id)}, {"status", StatusName(c.status)}};
    const auto group = std::find(groups.begin(), groups.end(), CaseGroup(c.id));
    row["group"] = group - groups.begin();
    const std::string why = c.status == Status::kPartial ? OpenText(c) : c.reason;
    if (!why.empty()) row["reason"] = strings_.Place(why);
    std::set<std::string> breaks, roots;
    for (const ReportedFinding& finding : c.findings) breaks.insert(finding.finding.requirement);
    row["told"] = json::array();
    for (const ToldFinding& told : TellFindings(c, false)) {
      roots.insert(told.finding().requirement);
      if (page == 0) row["told"].push_back(Told(c, told, drawn));
    }
    for (const ReportedFinding& finding : c.findings) {
      if (finding.waived_because.empty() || page != 0) continue;
      row["told"].push_back(Told(c, {&finding, {}, 0, {}}, drawn));
    }
    AddAside(c, row);
    row["breaks"] = breaks;
    row["roots"] = roots;
    if (page != 0) row["page"] = page;
    if (!row["told"].empty() || c.status == Status::kSuiteError)
      row["replay"] = strings_.Place(c.replay);
    if (row.contains("replay") && !c.shrink.empty()) row["shrink"] = strings_.Place(c.shrink);
    cases_bytes_ += row.dump(-1, ' ', true, json::error_handler_t::replace).size();
    cases_.push_back(std::move(row));
  }

  std::string Text(json data) const {
    data["cases"] = cases_;
    data["strings"] = strings_.list();
    return std::string(kBeforeData) + Island(data) + std::string(kAfterData);
  }

 private:
  // Notes, and what the engine printed.
  void AddAside(const CaseReport& c, json& row) {
    for (size_t i = 0; i < c.notes.size() && i < kMostNotes; ++i)
      row["notes"].push_back(strings_.Place(c.notes[i]));
    for (const std::string& line : PrintedLines(c, kMostPrintedLines))
      row["printed"].push_back(strings_.Place(line));
  }

  json Told(const CaseReport& c, const ToldFinding& told, const Drawn& drawn) {
    const Finding& f = told.finding();
    json row = {{"requirement", f.requirement},
                {"broken", BrokenBy(told)},
                {"message", strings_.Place(f.message)}};
    const auto text = [&](const char* name, const std::string& value) {
      if (!value.empty()) row[name] = strings_.Place(value);
    };
    if (f.rank >= 0) row["rank"] = f.rank;
    if (f.step >= 0) row["step"] = f.step;
    if (f.event >= 0) row["event"] = f.event;
    text("stream", f.stream);
    text("operation", f.operation);
    text("expected", f.expected);
    text("seen", f.seen);
    text("waived", told.row->waived_because);
    text("folded", FoldedLine(told));
    if (told.row->warning) row["warning"] = true;
    const auto picture = c.drawings.find(static_cast<size_t>(told.row - c.findings.data()));
    if (picture == c.drawings.end() || !drawn.contains(&picture->second)) return row;
    json drawing = json::parse(picture->second, nullptr, /*allow_exceptions=*/false);
    if (drawing.is_discarded()) return row;
    for (json& node : drawing["nodes"]) node[5] = strings_.Place(node[5].get<std::string>());
    row["drawing"] = std::move(drawing);
    return row;
  }

  Strings strings_;
  json cases_ = json::array();
  size_t cases_bytes_ = 0;
};

// By requirement and group: cases in which it was judged, failed, was excused, was not judged.
using Cells = std::vector<std::array<int, 4>>;

std::map<std::string, Cells> Matrix(const RunReport& report,
                                    const std::vector<std::string>& groups) {
  std::map<std::string, Cells> matrix;
  for (const CaseReport& c : report.cases) {
    const auto group = static_cast<size_t>(
        std::find(groups.begin(), groups.end(), CaseGroup(c.id)) - groups.begin());
    std::map<std::string, size_t> seen;  // by requirement: which of the four
    for (const std::string& id : c.judged) seen.try_emplace(id, 0);
    for (const NotCheckable& row : c.not_checkable) {
      if (row.kind == NotCheckable::Kind::kMissing) seen[row.requirement] = 3;
    }
    for (const ReportedFinding& row : c.findings) {
      size_t& kind = seen[row.finding.requirement];
      kind = IsOpen(row) || kind == 1 ? 1 : 2;
    }
    for (const auto& [id, kind] : seen) {
      Cells& cells = matrix[id];
      cells.resize(groups.size());
      ++At(cells[group], kind);
    }
  }
  return matrix;
}

std::vector<std::string> GroupsOf(const RunReport& report) {
  std::set<std::string> groups;
  for (const CaseReport& c : report.cases) groups.insert(CaseGroup(c.id));
  return {groups.begin(), groups.end()};
}

// Of the requirements that some finding names.
json LessonsOf(const RunReport& report, const Lessons& lessons) {
  json all = json::object();
  for (const CaseReport& c : report.cases) {
    for (const ReportedFinding& row : c.findings) {
      const std::string& id = row.finding.requirement;
      if (!lessons || all.contains(VisibleLine(id))) continue;
      const Lesson lesson = lessons(id);
      json& one = all[VisibleLine(id)] = json::object();
      const std::pair<const char*, const std::string&> texts[] = {
          {"why", lesson.why}, {"bug", lesson.bug}, {"fix", lesson.fix}};
      for (const auto& [name, text] : texts) {
        if (!text.empty()) one[name] = VisibleLine(text);
      }
    }
  }
  return all;
}

json HeadOf(const RunReport& report, const Sentence& sentence, const Lessons& lessons,
            const std::vector<std::string>& groups) {
  const RunVerdict verdict = Decide(report).verdict;
  json data = {
      {"title", VisibleLine(LastLine(report))},
      {"what", VisibleLine(RunText(report))},
      {"kind", verdict == RunVerdict::kConformant || verdict == RunVerdict::kWithinBounds ? "pass"
               : verdict == RunVerdict::kWhereJudged || verdict == RunVerdict::kNothingHere
                   ? "open"
                   : "fail"},
      {"groups", groups},
      {"lessons", LessonsOf(report, lessons)}};
  data["counts"] = json::array();
  for (const auto& [status, n] : Count(report)) data["counts"].push_back({StatusName(status), n});
  data["matrix"] = json::array();
  data["sentences"] = json::object();
  for (const auto& [id, cells] : Matrix(report, groups)) {
    data["matrix"].push_back({VisibleLine(id), cells});
    data["sentences"][VisibleLine(id)] = VisibleLine(sentence(id));
  }
  data["facts"] = json::array();
  const auto facts = [&data](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) data["facts"].push_back(VisibleLine(line));
  };
  facts(report.problems);
  facts(report.facts);
  facts(RequirementLines(report, SIZE_MAX));
  return data;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> HtmlPages(const RunReport& report,
                                                           const Sentence& sentence,
                                                           const Lessons& lessons,
                                                           const PageLimits& limits) {
  const std::vector<std::string> groups = GroupsOf(report);
  const json head = HeadOf(report, sentence, lessons, groups);
  const Drawn drawn = ChooseDrawings(report, limits.drawings_of_a_requirement);
  std::vector<Page> pages(1);
  for (const CaseReport& c : report.cases) {
    if (pages.back().Full(limits.bytes) && !c.findings.empty()) pages.emplace_back();
    if (pages.size() > 1)
      pages.front().Add(c, groups, c.findings.empty() ? 0 : pages.size(), drawn);
    if (pages.size() == 1 || !c.findings.empty()) pages.back().Add(c, groups, 0, drawn);
  }
  std::vector<std::pair<std::string, std::string>> files;
  for (size_t i = 0; i < pages.size(); ++i) {
    const std::string name = i == 0 ? "report.html" : "report-" + std::to_string(i + 1) + ".html";
    files.emplace_back(name, pages[i].Text(head));
  }
  return files;
}

}  // namespace shardproof
