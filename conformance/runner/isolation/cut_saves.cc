#include "conformance/runner/isolation/cut_saves.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/checks/robustness/cut_save.h"
#include "conformance/runner/isolation/run_apart.h"

namespace shardproof {
namespace {

struct Operation {
  std::string text;
  bool writes = false;
};

// A moment at which the save is cut.
struct Moment {
  size_t before = 0;  // this operation, from 1 on; 0: when save had returned on every rank
  std::string text;
};

int32_t SavesOf(const InstanceSpec& spec) {
  return static_cast<int32_t>(std::count(spec.script.begin(), spec.script.end(), 's'));
}

// The case without the save that is cut; nothing: there is no earlier one.
std::optional<Case> WithoutLastSave(const Case& c) {
  Case shorter = c;
  InstanceSpec& spec = shorter.before.front().instances.front();
  if (SavesOf(spec) < 2) return std::nullopt;
  spec.script.pop_back();
  shorter.before.front().killed = false;
  Derive(shorter);
  return shorter;
}

// Evenly spread, and as many as fit.
std::vector<size_t> Some(const std::vector<size_t>& all, size_t most) {
  if (all.size() <= most) return all;
  std::vector<size_t> some;
  for (size_t i = 0; i < most; ++i) some.push_back(all[i * all.size() / most]);
  return some;
}

// What is no write changes what there is to find: names, lengths. Of these at least half.
std::vector<Moment> MomentsOf(const std::vector<Operation>& operations) {
  std::vector<size_t> writes, others;
  for (size_t i = 0; i < operations.size(); ++i)
    (operations[i].writes ? writes : others).push_back(i);
  const size_t most_writes =
      std::max(kMostCuts / 2, kMostCuts - std::min(kMostCuts, others.size()));
  std::vector<size_t> chosen = Some(writes, most_writes);
  for (const size_t one : Some(others, kMostCuts - chosen.size())) chosen.push_back(one);
  std::sort(chosen.begin(), chosen.end());
  std::vector<Moment> moments{{0, "when save had returned on every rank"}};
  for (const size_t one : chosen) {
    moments.push_back({one + 1, (operations[one].writes ? "within a " : "before a ") +
                                    operations[one].text + " (operation " +
                                    std::to_string(one + 1) + " of " +
                                    std::to_string(operations.size()) + " on files)"});
  }
  return moments;
}

class CutSaves {
 public:
  CutSaves(const Case& c, const RunCase& run, const SimRunOptions& options)
      : legs_(LegsOf(c)),
        earlier_(WithoutLastSave(c)),
        saves_(SavesOf(legs_.front().instances.front())),
        run_(run),
        options_(options) {
    options_.rank.folder += "/cut";
    options_.trace_folder.clear();
  }

  CheckResult Judge() {
    if (options_.rank.level < RecordLevel::kDigests) return Open("record digests or bytes");
    const std::vector<Operation> operations = Rehearse();
    const Verdict uncut = JudgeRun(legs_.back(), run_(legs_.back(), options_).run);
    if (!IsGood(uncut)) return Open("a second run of the legs was not as good as the first");
    if (operations.empty()) return Open("the save changes no file that the suite can see");
    evidence_ = uncut.result.judged;
    const std::vector<Moment> moments = MomentsOf(operations);
    for (const Moment& moment : moments) Cut(moment);
    if (cuts_ == 0 && result_.findings.empty())
      return Open("no run of the save came to the moment at which it was to be cut");
    Conclude(operations.size());
    return std::move(result_);
  }

 private:
  static CheckResult Open(const std::string& why) {
    CheckResult result;
    result.not_checkable.push_back({kCutSave, why, NotCheckable::Kind::kMissing});
    return result;
  }

  std::vector<Operation> Rehearse() {
    std::vector<Operation> operations;
    SimRunOptions watched = options_;
    watched.on_file_operation = [&](const FileOperation& operation, int32_t saves) {
      if (saves >= saves_ && operation.OnDisk())
        operations.push_back({operation.Text(), operation.Writes()});
      return true;
    };
    run_(legs_.front(), watched);
    return operations;
  }

  // Whether the save came to this moment.
  bool RunAndCut(const Moment& moment) {
    SimRunOptions watched = options_;
    size_t seen = 0;
    if (moment.before == 0) {
      watched.rank.end_after_saves = saves_ * legs_.front().instances.front().span;
    } else {
      watched.on_file_operation = [&](const FileOperation& operation, int32_t saves) {
        if (saves < saves_ || !operation.OnDisk() || ++seen < moment.before) return true;
        operation.WriteHalf();
        return false;
      };
    }
    return run_(legs_.front(), watched).cut;
  }

  void Cut(const Moment& moment) {
    if (!RunAndCut(moment)) return;
    ++cuts_;
    try {
      const RunData loads = run_(legs_.back(), options_);
      const CheckResult answer = JudgeCutSave(loads.run, moment.text, moment.before == 0);
      if (!answer.findings.empty()) return Add(answer.findings.front());
      if (AnswerToCutSave(loads.run) == LoadAnswer::kTaken) {
        ++taken_;
        return JudgeLoaded(legs_.back(), loads.run, moment, false);
      }
      ++refused_;
      if (earlier_) JudgeLoaded(*earlier_, run_(*earlier_, options_).run, moment, true);
    } catch (const EngineDied& died) {
      for (const Finding& finding : VerdictOf(died).result.findings)
        Add(LoadedWrong(finding, moment.text, false));
    }
  }

  void JudgeLoaded(const Case& c, const Run& run, const Moment& moment, bool before) {
    const Verdict verdict = JudgeRun(c, run);
    const std::set<std::string> warnings = WarningsOf(verdict.result);
    for (const Finding& finding : verdict.result.findings) {
      if (!warnings.contains(finding.requirement))
        return Add(LoadedWrong(finding, moment.text, before));
    }
    const auto& judged = verdict.result.judged;
    if (!std::includes(judged.begin(), judged.end(), evidence_.begin(), evidence_.end()))
      ++without_evidence_;
  }

  // The first in full.
  void Add(Finding finding) {
    if (wrong_++ == 0) result_.findings.push_back(std::move(finding));
  }

  void Conclude(size_t operations) {
    result_.judged.insert(kCutSave);
    if (wrong_ > 1) {
      result_.findings.front().message +=
          "; so at " + std::to_string(wrong_) + " of " + std::to_string(cuts_) + " moments";
    }
    if (without_evidence_ > 0 && wrong_ == 0) {
      result_ = Open("at " + std::to_string(without_evidence_) + " of " + std::to_string(cuts_) +
                     " moments what was loaded could not be judged");
    }
    result_.notes.push_back("the save was cut at " + std::to_string(cuts_) + " moments of its " +
                            std::to_string(operations) + " operations on files: what was left " +
                            "loaded " + std::to_string(taken_) + " times and was refused " +
                            std::to_string(refused_) + " times");
  }

  const std::vector<Case> legs_;
  const std::optional<Case> earlier_;
  const int32_t saves_;  // of the first leg
  const RunCase& run_;
  SimRunOptions options_;
  std::set<std::string> evidence_;  // that a load which is not cut gives
  CheckResult result_;
  size_t cuts_ = 0, taken_ = 0, refused_ = 0, wrong_ = 0, without_evidence_ = 0;
};

}  // namespace

Verdict JudgeCutSaves(Verdict uncut, const Case& c, const RunCase& run,
                      const SimRunOptions& options) {
  if (c.before.empty() || !c.before.front().killed || !IsGood(uncut)) return uncut;
  return JudgeWithFurther(std::move(uncut), kCutSave, CutSaves(c, run, options).Judge());
}

}  // namespace shardproof
