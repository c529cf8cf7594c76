#include "conformance/report/failures.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace shardproof {

namespace {

bool Failed(const CaseReport& c) {
  return c.status == Status::kFail || c.status == Status::kSuiteError;
}

// Of one name.
struct Collected {
  std::vector<size_t> cases;
  std::map<size_t, ToldFinding> told;  // by place
  std::map<size_t, size_t> order;      // the same: which one of the case it is
};

std::string Clipped(std::string text, size_t most) {
  if (text.size() <= most) return text;
  text.resize(most);
  text += " ...";
  return text;
}

std::string Cases(size_t n) { return std::to_string(n) + (n == 1 ? " case" : " cases"); }

constexpr size_t kLongestLine = 400;

}  // namespace

bool IsSmaller(const std::string& a, const std::string& b) {
  const auto key = [](const std::string& id) {
    return std::make_tuple(std::count(id.begin(), id.end(), '.'), id.size());
  };
  return std::pair(key(a), a) < std::pair(key(b), b);
}

std::vector<Failure> FailuresOf(const RunReport& report) {
  std::map<std::string, Collected> by_name;
  for (size_t place = 0; place < report.cases.size(); ++place) {
    const CaseReport& c = report.cases[place];
    if (!Failed(c)) continue;
    size_t n_told = 0;
    for (ToldFinding& told : TellFindings(c, false)) {
      if (told.row->warning || c.status == Status::kSuiteError) continue;
      Collected& kind = by_name[told.finding().requirement];
      if (!kind.order.emplace(place, n_told++).second) continue;
      kind.told.emplace(place, std::move(told));
      kind.cases.push_back(place);
    }
    if (n_told == 0) by_name[""].cases.push_back(place);
  }
  std::vector<Failure> failures;
  for (auto& [name, kind] : by_name) {
    std::sort(kind.cases.begin(), kind.cases.end(), [&](size_t a, size_t b) {
      return IsSmaller(report.cases[a].id, report.cases[b].id);
    });
    const size_t first = kind.cases.front();
    Failure failure{name, std::move(kind.cases), &report.cases[first], {}, 0};
    if (!name.empty()) {
      failure.told = std::move(kind.told.at(first));
      failure.order = kind.order.at(first);
    }
    failures.push_back(std::move(failure));
  }
  std::stable_sort(failures.begin(), failures.end(), [](const Failure& a, const Failure& b) {
    return std::pair(b.cases.size(), a.order) < std::pair(a.cases.size(), b.order);
  });
  return failures;
}

std::string InOneLine(const Failure& failure) {
  if (failure.breaks.empty()) return Clipped(failure.smallest->reason, kLongestLine);
  const Finding& finding = failure.told.finding();
  std::string text = finding.rank < 0 ? "" : "rank " + std::to_string(finding.rank) + ", ";
  if (finding.step >= 0) text += "step " + std::to_string(finding.step) + ", ";
  if (!finding.operation.empty()) text += finding.operation + ": ";
  if (!finding.expected.empty()) text += "expected " + finding.expected + ", ";
  if (!finding.seen.empty()) text += "seen " + finding.seen;
  if (finding.expected.empty() && finding.seen.empty()) text += finding.message;
  return Clipped(text, kLongestLine);
}

std::vector<FailureLine> FailureLines(const RunReport& report, size_t most) {
  using Kind = FailureLine::Kind;
  const std::vector<Failure> failures = FailuresOf(report);
  if (failures.empty()) return {};
  const auto failed = std::count_if(report.cases.begin(), report.cases.end(), Failed);
  const bool shrinks = std::any_of(failures.begin(), failures.end(), [](const Failure& failure) {
    return !failure.smallest->shrink.empty();
  });
  std::vector<FailureLine> lines = {
      {Kind::kText, Cases(static_cast<size_t>(failed)) +
                        " not passed, by what they break; with each the case that has the " +
                        "fewest features, the command that shows it" +
                        (shrinks ? ", and the one that looks for a smaller case:" : ":")}};
  std::string rest;
  for (size_t i = 0; i < failures.size(); ++i) {
    const Failure& failure = failures[i];
    const std::string name =
        failure.breaks.empty() ? StatusName(failure.smallest->status) : failure.breaks;
    if (i >= most) {
      rest += (rest.empty() ? "" : ", ") + name + " (" + Cases(failure.cases.size()) + ")";
      continue;
    }
    lines.push_back({Kind::kName, "  " + name + "  " + Cases(failure.cases.size()) + "  " +
                                      failure.smallest->id});
    const std::string what = InOneLine(failure);
    if (!what.empty()) lines.push_back({Kind::kText, "      " + what});
    for (const std::string& command : {failure.smallest->replay, failure.smallest->shrink})
      if (!command.empty()) lines.push_back({Kind::kCommand, "      " + command});
  }
  if (!rest.empty()) lines.push_back({Kind::kText, "  and " + rest + " (--report DIR has all)"});
  return lines;
}

std::vector<AlikeCase> AlikeCases(const RunReport& report, size_t most) {
  const std::vector<Failure> failures = FailuresOf(report);
  std::set<size_t> named;  // by place
  for (size_t i = 0; i < failures.size() && i < most; ++i) named.insert(failures[i].cases.front());
  std::vector<AlikeCase> alike;
  for (size_t i = 0; i < failures.size(); ++i) {
    for (const size_t place : failures[i].cases) {
      if (!named.insert(place).second) continue;
      alike.push_back({&report.cases[place], i < most ? failures[i].smallest->id : ""});
    }
  }
  return alike;
}

}  // namespace shardproof
