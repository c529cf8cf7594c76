#include "conformance/checks/must_fail.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/checks/base/analysis.h"
#include "conformance/checks/base/carried.h"
#include "conformance/checks/check_all.h"
#include "conformance/checks/robustness/robustness.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

using Kind = EngineOutcome::Kind;

constexpr const char* kGuard = "FS-26";
constexpr const char* kCall = "train_step 1";
constexpr int64_t kSample = 1;
constexpr int64_t kMostFlags = 8;  // what ranks tell each other of NaN has no more elements

const std::vector<int32_t>* ListOf(const std::vector<GroupFamily>& families, const char* name,
                                   int32_t rank) {
  const std::vector<int32_t>* list = nullptr;
  for (const GroupFamily& family : families) {
    if (family.name == name) IndexIn(family, rank, &list);
  }
  return list;
}

// Ranks that compute with the sample; those that have parts of its sequence before it, whose keys
// it reads; and those whose experts see tokens of either.
struct Holders {
  std::set<int32_t> own, others;
};

Holders HoldersOf(const Case& c) {
  const InstanceSpec& spec = c.instances.front();
  const std::vector<GroupFamily> families = GroupFamilies(spec, c.world);
  Holders holders;
  for (const GroupFamily& family : families) {
    if (family.name != "dp_cp") continue;
    for (int32_t rank = spec.offset; rank < spec.offset + spec.span; ++rank) {
      if (IndexIn(family, rank, nullptr) == kSample % DpCpSize(spec)) holders.own.insert(rank);
    }
  }
  std::set<int32_t> with_nan = holders.own;
  for (const int32_t rank : holders.own) {
    const std::vector<int32_t>* parts = spec.model.cp > 1 ? ListOf(families, "cp", rank) : nullptr;
    if (parts != nullptr)
      with_nan.insert(parts->begin(), std::find(parts->begin(), parts->end(), rank));
  }
  holders.others = with_nan;
  for (const int32_t rank : with_nan) {
    const std::vector<int32_t>* experts =
        spec.model.moe.experts > 0 ? ListOf(families, "ep", rank) : nullptr;
    if (experts != nullptr) holders.others.insert(experts->begin(), experts->end());
  }
  return holders;
}

bool FailsAsAsked(const EngineOutcome& outcome) {
  return outcome.kind == Kind::kFailed && outcome.call == kCall;
}

std::string Words(const EngineOutcome& outcome) {
  std::string text = OutcomeName(outcome.kind);
  if (!outcome.call.empty()) text += " in " + outcome.call;
  return outcome.reason.empty() ? text : text + ": " + outcome.reason;
}

class Guard {
 public:
  Guard(const Run& run, CheckResult& result)
      : run_(run), analysis_(run), holders_(HoldersOf(*run.spec)), sink_(result) {}

  // Which ranks failed as they should.
  std::set<int32_t> Judge() {
    std::set<int32_t> failed;
    for (const int32_t rank : Ranks()) {
      if (FailsAsAsked(At(run_.outcomes, rank))) failed.insert(rank);
    }
    if (failed.empty()) {
      Add(*holders_.own.begin(), "the gradients of this rank are NaN, and nobody stops");
      return failed;
    }
    for (const int32_t rank : failed) {
      if (At(run_.outcomes, rank).reason.empty())
        Add(rank, "the step fails without a word: call explain first");
    }
    const bool here = std::any_of(failed.begin(), failed.end(), [&](int32_t rank) {
      return holders_.own.contains(rank) || holders_.others.contains(rank);
    });
    if (!here) {
      Add(*failed.begin(),
          "the step fails on a rank whose own gradients are finite: the NaN was sent before "
          "anybody looked");
    }
    for (const int32_t rank : holders_.own) JudgeSent(rank);
    return failed;
  }

  const Analysis& analysis() const { return analysis_; }
  // Some reduction may have carried gradients.
  bool unknown() const { return unknown_; }

 private:
  std::vector<int32_t> Ranks() const {
    std::vector<int32_t> ranks;
    for (int32_t rank = 0; rank < Length(run_.outcomes); ++rank) {
      if (!At(run_.traces, rank).events.empty()) ranks.push_back(rank);
    }
    return ranks;
  }

  void Add(int32_t rank, std::string message) {
    Finding finding;
    finding.requirement = kGuard;
    finding.rank = rank;
    finding.step = 1;
    finding.operation = kCall;
    finding.expected =
        "train_step 1 fails on rank " + std::to_string(*holders_.own.begin()) +
        ", which has the sample whose loss is not a number, before it sends a gradient";
    finding.seen = Words(At(run_.outcomes, rank));
    finding.message = "check_for_nan_in_grad: " + std::move(message);
    sink_.Add(std::move(finding));
  }

  // Of what is dense: all of it is NaN somewhere. Experts that the tokens did not choose are not.
  void JudgeSent(int32_t rank) {
    JudgeWaiting(rank);
    const InstanceFacts& facts = analysis_.Facts(0);
    std::vector<Carried> all = CarriedBy(analysis_, rank);
    for (const Carried& carried : PartSumsBy(analysis_, rank)) all.push_back(carried);
    for (const Carried& carried : all) {
      const Event& event = At(analysis_.trace(rank).events, carried.event);
      if (!carried.reduction || analysis_.StepOf(rank, 0, event.call) != 1) continue;
      for (const Chunk& chunk : carried.grads) {
        const auto& param = facts.ByKey(chunk.content.param);
        if (param.expert) continue;
        Finding finding = analysis_.At(kGuard, rank, carried.event);
        finding.expected = "train_step 1 fails before a gradient is sent: all are NaN";
        finding.seen = "the gradient of " + param.name + " is reduced";
        finding.message = "check_for_nan_in_grad: a NaN is sent, and every rank has it then";
        return sink_.Add(std::move(finding));
      }
    }
  }

  // Reductions that some rank has never joined: what they carry only their labels say.
  void JudgeWaiting(int32_t rank) {
    const Trace& trace = analysis_.trace(rank);
    for (int64_t i = 0; i < Length(trace.events); ++i) {
      const Event& event = At(trace.events, i);
      const bool reduces = event.kind == EventKind::kCollective && IsReduction(event.collective);
      if (!reduces || analysis_.StepOf(rank, 0, event.call) != 1 ||
          analysis_.flow().At(rank, i).ran)
        continue;
      if (event.purpose != SPF_FOR_GRAD && event.purpose != SPF_FOR_GRAD_SHARD) {
        unknown_ = unknown_ || (event.count > kMostFlags && !OfActivations(rank, event));
        continue;
      }
      Finding finding = analysis_.At(kGuard, rank, i);
      finding.expected = "train_step 1 fails before a gradient is sent: all are NaN";
      finding.seen = "a reduction of gradients is issued, and not every rank joins it any more";
      finding.message = "check_for_nan_in_grad: a NaN is sent, and every rank has it then";
      return sink_.Add(std::move(finding));
    }
  }

  // By its label, over ranks that share a layer or a sequence: a sum that their nodes need.
  bool OfActivations(int32_t rank, const Event& event) const {
    const bool labelled =
        event.purpose == SPF_FOR_ACTIVATION || event.purpose == SPF_FOR_ACTIVATION_GRAD;
    if (!labelled || event.group < 0) return false;
    const InstanceFacts& facts = analysis_.Facts(0);
    const auto& ranks = At(analysis_.trace(rank).groups, event.group).world_ranks;
    const auto is = [&](const char* family, int32_t size) {
      const std::vector<int32_t>* list = facts.List(family, rank);
      return size > 1 && list != nullptr && *list == ranks;
    };
    return is("tp", facts.spec().model.tp) || is("cp", facts.spec().model.cp);
  }

  const Run& run_;
  const Analysis analysis_;
  const Holders holders_;
  FindingSink sink_;
  bool unknown_ = false;
};

// The run as if the rank had been ended by others: then nothing follows from its failure.
Run AsIfAborted(Run run, const std::set<int32_t>& failed) {
  for (const int32_t rank : failed) At(run.outcomes, rank).kind = Kind::kAborted;
  return run;
}

// What the end that was asked for brings about: it ended the other ranks, too.
void TakeOutTheEnd(const Run& as_if_aborted, CheckResult& result) {
  const bool another_end = std::any_of(
      as_if_aborted.outcomes.begin(), as_if_aborted.outcomes.end(),
      [](const EngineOutcome& one) { return one.kind != Kind::kOk && one.kind != Kind::kAborted; });
  std::erase_if(result.findings, [&](const Finding& finding) {
    return finding.ended >= 0 || (finding.requirement == "GE-26" && !another_end);
  });
  for (Finding& finding : result.findings) finding.follows = -1;  // places have changed
  for (NotCheckable& row : result.not_checkable) {
    if (row.kind != NotCheckable::Kind::kMissing || row.requirement == kGuard) continue;
    row = {row.requirement, "the case asks for a step that fails, and for nothing else",
           NotCheckable::Kind::kNotAsked};
  }
}

}  // namespace

CheckResult CheckMustFail(const Run& run) {
  CheckResult guarded;
  if (run.outcomes.empty()) {
    CannotJudge(guarded, {kGuard},
                "the traces do not tell how the ranks ended: provide calls, of all ranks");
    return guarded;
  }
  std::set<int32_t> failed;
  {
    Guard guard(run, guarded);
    if (guard.analysis().has_case()) {
      failed = guard.Judge();
      if (guard.unknown() && guarded.findings.empty()) {
        CannotJudge(guarded, {kGuard},
                    "a reduction in train_step 1 has no label, and not every rank joined it");
      } else {
        Judge(guarded, {kGuard});
      }
    } else {
      CannotJudge(guarded, {kGuard}, guard.analysis().why());
    }
  }
  const Run as_if_aborted = AsIfAborted(run, failed);
  CheckResult result = CheckAll(as_if_aborted);
  std::erase_if(result.not_checkable,
                [](const NotCheckable& row) { return row.requirement == kGuard; });
  if (!failed.empty()) TakeOutTheEnd(as_if_aborted, result);
  result.Merge(std::move(guarded));
  return result;
}

}  // namespace shardproof
