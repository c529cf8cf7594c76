#include "conformance/runner/nccl/nccl_judge.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "conformance/cases/legs.h"
#include "conformance/fabric/nccl/rendezvous/environment.h"
#include "conformance/runner/job/job_run.h"
#include "conformance/runner/rank_ends.h"
#include "conformance/runner/reporting.h"

namespace shardproof {
namespace {

std::string EndKey(const CaseTable& meeting, int32_t rank) {
  return meeting.name() + "/end " + std::to_string(rank);
}

}  // namespace

NcclJudge::NcclJudge(const Options& options, const NcclKit& kit, std::unique_ptr<Store> job)
    : options_(options),
      kit_(kit),
      is_job_(job != nullptr),
      store_(is_job_ ? std::move(job) : Store::Local()) {
  if (is_job_) options_.ranks = store_->size();
  if (reports()) scratch_.emplace();
  folder_ = Broadcast(reports() ? scratch_->path() : "");
  RankProcessOptions ranks;
  ranks.first_rank = store_->rank();
  ranks.ranks = is_job_ ? 1 : options_.ranks;
  ranks.stall_seconds = options_.stall_seconds;
  ranks.case_seconds = options_.case_seconds;
  processes_.emplace(ranks, [this](const RankSide& side) { return WorkFor(side); });
}

std::string NcclJudge::Broadcast(const std::string& text) {
  CaseTable job(*store_, "job", store_->rank(), store_->size());
  const std::string key = "said " + std::to_string(said_++);
  if (reports()) job.Put(key, text);
  const auto got = job.Get(key, nullptr);
  if (!got) throw std::runtime_error("the job is broken: " + job.Aborted().value_or("?"));
  return *got;
}

bool NcclJudge::Any(bool here) {
  if (!is_job_) return here;
  CaseTable job(*store_, "any " + std::to_string(asked_++), store_->rank(), store_->size());
  std::vector<int32_t> everyone;
  for (int32_t rank = 0; rank < store_->size(); ++rank) everyone.push_back(rank);
  const auto said = AllGather(job, "here", everyone, here ? "here" : "", nullptr);
  if (!said) throw std::runtime_error("the job is broken: " + job.Aborted().value_or("?"));
  return std::any_of(said->begin(), said->end(), [](const auto& one) { return !one.empty(); });
}

void NcclJudge::Judge(const std::vector<Case>& cases, const Done& done,
                      const std::function<bool()>& enough) {
  for (size_t place = 0; place < cases.size(); ++place) {
    const auto began = std::chrono::steady_clock::now();
    Verdict verdict = RunLegs(cases[place]);
    if (reports()) {
      CaseReport row = ReportOf(cases[place], std::move(verdict), options_);
      row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      done(place, std::move(row));
    }
    const bool over = reports() && enough && enough();  // as rank 0's options say
    if (Broadcast(over ? "over" : "on") == "over") return;
  }
}

std::vector<std::string> NcclJudge::Facts() const {
  std::vector<std::string> facts = processes_->facts();
  facts.push_back((is_job_
                       ? "ranks: " + std::to_string(options_.ranks) + " processes of a job"
                       : "ranks: " + std::to_string(options_.ranks) + " processes started here, " +
                             std::to_string(processes_->started()) + " in all"));
  return facts;
}

// In a rank process.
std::unique_ptr<RankWork> NcclJudge::WorkFor(const RankSide& side) {
  PlaceOnHost place{side.rank, options_.ranks};
  if (is_job_) place = PlaceOnHostOf(side.rank, options_.ranks, std::getenv);
  RankMachineOptions machine;
  machine.rank = side.rank;
  machine.local_rank = place.rank;
  machine.local_ranks = place.ranks;
  machine.gemm = options_.gemm;
  plugin_.emplace(options_.impl);
  return MakeNcclWork({options_, *plugin_, folder_}, side, kit_.open(machine), store_->ForChild());
}

// Processes that are ready, on all hosts; who has no part in the case comes too, so that nobody
// runs ahead.
void NcclJudge::Prepare(int world) {
  std::string why;
  try {
    processes_->Prepare(world);
  } catch (const std::exception& error) {
    why = error.what();
  }
  const size_t nth = starts_++;
  CaseTable start(*store_, "start " + std::to_string(nth), store_->rank(), store_->size());
  std::vector<int32_t> all;
  for (int32_t rank = 0; rank < store_->size(); ++rank) all.push_back(rank);
  if (!why.empty()) {
    start.Abort(why);  // and does not say that it is ready: nobody passes
  } else if (!AllGather(start, "ready", all, "", nullptr)) {
    why = start.Aborted().value_or("?");
  }
  if (why.empty() && reports() && nth > 0) store_->Forget("start " + std::to_string(nth - 1) + "/");
  if (why.empty()) return;
  if (nth > 0) throw std::runtime_error(why);
  throw JobRefused("cases cannot run on this machine: " + why);
}

// The first leg that does not pass decides. In a job the others run all the same, since only
// rank 0 knows how one is judged.
Verdict NcclJudge::RunLegs(const Case& c) {
  if (MostRanks(c) > options_.ranks)
    throw std::runtime_error("case " + Id(c) + " needs " + std::to_string(MostRanks(c)) +
                             " ranks, there are " + std::to_string(options_.ranks));
  const std::vector<Case> legs = LegsOf(c);
  NcclItem item{runs_++, 0, Id(c)};
  Verdict verdict;
  for (; item.leg < legs.size(); ++item.leg) {
    const bool decided = item.leg > 0 && reports() && !IsGood(verdict);
    if (decided && !is_job_) break;
    const Case& leg = legs[item.leg];
    const std::optional<CaseEnd> end = RunOne(leg, item);
    if (!end || decided) continue;
    verdict = JudgeEnd(leg, *end, options_);
    if (legs.size() > 1 && !IsGood(verdict)) NameLeg(item.leg, leg, &verdict);
  }
  return verdict;
}

// How a leg ended, where it is known: on rank 0.
std::optional<CaseEnd> NcclJudge::RunOne(const Case& leg, const NcclItem& item) {
  Prepare(leg.world);
  CaseTable meeting(*store_, item.Meeting(), store_->rank(), leg.world);
  std::vector<RankAnswer> answers = processes_->Run(
      TextOf(item), leg.world,
      {[&](const std::string& why) { meeting.Abort(why); }, [&] { return meeting.Aborted(); }});
  if (is_job_ && !Gather(leg, meeting, &answers)) return std::nullopt;
  store_->Forget(meeting.name() + "/");
  return EndOf(std::move(answers));
}

// All ranks' answers on rank 0; false elsewhere.
bool NcclJudge::Gather(const Case& leg, CaseTable& meeting, std::vector<RankAnswer>* answers) {
  if (!reports()) {
    if (!answers->empty())
      store_->Put(EndKey(meeting, store_->rank()), PackFrame(FieldsOf(answers->front())));
    return false;
  }
  for (int32_t rank = 1; rank < leg.world; ++rank) {
    std::optional<std::string> packed;
    for (int round = 0; !(packed = store_->Look(EndKey(meeting, rank)));
         ++round) {  // also when the case was aborted
      if (const auto why = store_->Broken()) throw std::runtime_error("the job is broken: " + *why);
      RestBeforeLook(round);
    }
    bool bad = false;
    answers->push_back(AnswerOf(TakeFrame(&*packed, &bad).value_or(Frame{})));
  }
  return true;
}

}  // namespace shardproof
