#include "conformance/runner/nccl/run_nccl.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <utility>

#include "conformance/fabric/nccl/rendezvous/case_table.h"
#include "conformance/fabric/nccl/rendezvous/environment.h"
#include "conformance/runner/isolation/probe.h"
#include "conformance/runner/nccl/case_work.h"
#include "conformance/runner/rank_ends.h"
#include "conformance/runner/reporter.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/selection.h"

namespace shardproof {
namespace {

constexpr char kLoads[] = "loads", kBreaks[] = "breaks";

// The processes of a job, one rank each; or one process that has all ranks.
class NcclRun {
 public:
  NcclRun(const Options& options, const NcclKit& kit, std::unique_ptr<Store> job)
      : options_(options),
        kit_(kit),
        is_job_(job != nullptr),
        store_(is_job_ ? std::move(job) : Store::Local()) {
    if (is_job_) options_.ranks = store_->size();
    const std::string answer = FromRankZero("engine", reports() ? AskEngine() : "");
    if (answer != kLoads && answer != kBreaks) throw std::invalid_argument(answer);
    loads_ = answer == kLoads;
    if (reports()) scratch_.emplace();
    cases_ = SelectCases(options_, &facts_);
    for (size_t place = 0; place < cases_.size(); ++place)
      for (Case& leg : LegsOf(cases_[place])) legs_.push_back({std::move(leg), place});
    folder_ = FromRankZero("folder", reports() ? scratch_->path() : "");
    RankProcessOptions ranks;
    ranks.first_rank = store_->rank();
    ranks.ranks = is_job_ ? 1 : options_.ranks;
    ranks.stall_seconds = options_.stall_seconds;
    ranks.case_seconds = options_.case_seconds;
    processes_.emplace(ranks, [this](const RankSide& side) { return WorkFor(side); });
  }

  int Run() {
    std::optional<Reporter> reporter;
    std::string problem;
    if (reports()) problem = Open(&reporter);
    if (problem = FromRankZero("report", problem); !problem.empty())
      throw std::invalid_argument(problem);
    if (const auto row = RowOf(probe_, options_)) reporter->CaseDone(cases_.size(), *row);
    for (size_t place = 0, leg = 0; loads_ && place < cases_.size(); ++place) {
      Verdict verdict = RunLegs(place, &leg);
      if (reports())
        reporter->CaseDone(place, ReportOf(cases_[place], std::move(verdict), options_));
      const bool over = reports() && reporter->Enough();  // as rank 0's options say
      if (FromRankZero("over " + std::to_string(place), over ? "over" : "on") == "over") break;
    }
    int code = 0;
    if (reports()) {
      AddFacts(&reporter->report().facts);
      code = reporter->Finish();
    }
    return std::stoi(FromRankZero("code", std::to_string(code)));
  }

 private:
  bool reports() const { return store_->rank() == 0; }

  // On rank 0: what is wrong with the address; or kLoads; or kBreaks, where the probe says how.
  std::string AskEngine() {
    try {
      probe_ = ProbeEngine(options_);
      return probe_.loads ? kLoads : kBreaks;
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  }

  // What keeps the report from being opened; empty: nothing.
  std::string Open(std::optional<Reporter>* reporter) {
    try {
      reporter->emplace(options_, ReportFor(options_), cases_.size(), std::cout,
                        isatty(STDOUT_FILENO) != 0);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

  void AddFacts(std::vector<std::string>* facts) const {
    facts->insert(facts->end(), facts_.begin(), facts_.end());
    for (const std::string& fact : processes_->facts()) facts->push_back(fact);
    facts->push_back((is_job_ ? "ranks: " + std::to_string(options_.ranks) + " processes of a job"
                              : "ranks: " + std::to_string(options_.ranks) +
                                    " processes started here, " +
                                    std::to_string(processes_->started()) + " in all"));
  }

  // Rank 0's text, on all processes of the job.
  std::string FromRankZero(const std::string& key, const std::string& text) {
    CaseTable run(*store_, "run", store_->rank(), store_->size());
    if (reports()) run.Put(key, text);
    const auto got = run.Get(key, nullptr);
    if (!got) throw std::runtime_error("the job is broken: " + run.Aborted().value_or("?"));
    return *got;
  }

  // In a rank process.
  std::unique_ptr<RankWork> WorkFor(const RankSide& side) {
    PlaceOnHost place{side.rank, options_.ranks};
    if (is_job_) place = PlaceOnHostOf(side.rank, options_.ranks, std::getenv);
    RankMachineOptions machine;
    machine.rank = side.rank;
    machine.local_rank = place.rank;
    machine.local_ranks = place.ranks;
    machine.gemm = options_.gemm;
    plugin_.emplace(options_.impl);
    return MakeNcclWork({options_, legs_, *plugin_, folder_}, side, kit_.open(machine),
                        store_->ForChild());
  }

  // Processes that are ready, on all hosts; who has no part in the case comes too, so that nobody
  // runs ahead.
  void Prepare(size_t item, int world) {
    std::string why;
    try {
      processes_->Prepare(world);
    } catch (const std::exception& error) {
      why = error.what();
    }
    CaseTable start(*store_, "start " + std::to_string(item), store_->rank(), store_->size());
    std::vector<int32_t> all;
    for (int32_t rank = 0; rank < store_->size(); ++rank) all.push_back(rank);
    if (!why.empty()) {
      start.Abort(why);  // and does not say that it is ready: nobody passes
    } else if (!AllGather(start, "ready", all, "", nullptr)) {
      why = start.Aborted().value_or("?");
    }
    if (why.empty() && reports() && item > 0)
      store_->Forget("start " + std::to_string(item - 1) + "/");
    if (why.empty()) return;
    if (ran_) throw std::runtime_error(why);
    throw std::invalid_argument("cases cannot run on this machine: " + why);
  }

  // The first leg that does not pass decides. In a job the others run all the same, since only
  // rank 0 knows how one is judged. leg: the place of its first, then of the next case's.
  Verdict RunLegs(size_t place, size_t* leg) {
    Verdict verdict;
    for (size_t nth = 0; *leg < legs_.size() && legs_[*leg].of == place; ++nth, ++*leg) {
      const bool decided = nth > 0 && reports() && !IsGood(verdict);
      if (decided && !is_job_) continue;
      const std::optional<CaseEnd> end = RunOne(*leg);
      if (!end || decided) continue;
      const Case& spec = legs_[*leg].spec;
      verdict = JudgeEnd(spec, *end, options_);
      if (!cases_[place].before.empty() && !IsGood(verdict)) NameLeg(nth, spec, &verdict);
    }
    return verdict;
  }

  // How a leg ended, where it is known: on rank 0.
  std::optional<CaseEnd> RunOne(size_t item) {
    const Case& c = legs_[item].spec;
    Prepare(item, c.world);
    ran_ = true;
    CaseTable meeting(*store_, MeetingOf(item), store_->rank(), c.world);
    std::vector<RankAnswer> answers = processes_->Run(
        item, c.world,
        {[&](const std::string& why) { meeting.Abort(why); }, [&] { return meeting.Aborted(); }});
    if (is_job_ && !Gather(c, meeting, &answers)) return std::nullopt;
    store_->Forget(MeetingOf(item) + "/");
    return EndOf(std::move(answers));
  }

  // All ranks' answers on rank 0; false elsewhere.
  bool Gather(const Case& c, CaseTable& meeting, std::vector<RankAnswer>* answers) {
    if (!reports()) {
      if (!answers->empty())
        store_->Put(EndKey(meeting, store_->rank()), PackFrame(FieldsOf(answers->front())));
      return false;
    }
    for (int32_t rank = 1; rank < c.world; ++rank) {
      std::optional<std::string> packed;
      for (int round = 0; !(packed = store_->Look(EndKey(meeting, rank)));
           ++round) {  // also when the case was aborted
        if (const auto why = store_->Broken())
          throw std::runtime_error("the job is broken: " + *why);
        RestBeforeLook(round);
      }
      bool bad = false;
      answers->push_back(AnswerOf(TakeFrame(&*packed, &bad).value_or(Frame{})));
    }
    return true;
  }
  static std::string EndKey(const CaseTable& meeting, int32_t rank) {
    return meeting.name() + "/end " + std::to_string(rank);
  }

  Options options_;
  const NcclKit& kit_;
  bool is_job_;  // several processes; else this one starts all ranks
  std::unique_ptr<Store> store_;
  std::optional<ScratchFolder> scratch_;
  EngineProbe probe_;  // on rank 0
  bool loads_ = false;
  std::optional<Plugin> plugin_;  // in rank processes only
  std::vector<Case> cases_;
  std::vector<NcclLeg> legs_;  // of all cases, in their order
  std::vector<std::string> facts_;
  std::string folder_;
  std::optional<RankProcesses> processes_;
  bool ran_ = false;
};

}  // namespace

int RunNcclCommand(const Options& options, const NcclKit& kit, std::unique_ptr<Store> job) {
  if (!kit.open) {
    throw std::invalid_argument(
        "--fabric nccl: this shardproof was built without CUDA and NCCL; build "
        "//conformance:shardproof_gpu where the CUDA toolkit is (ci/gpu does)");
  }
  Options given = options;
  if (given.ranks == 0) given.ranks = kDefaultRanks;
  return NcclRun(given, kit, std::move(job)).Run();
}

}  // namespace shardproof
