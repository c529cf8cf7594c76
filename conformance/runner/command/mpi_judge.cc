#include "conformance/runner/command/mpi_judge.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <utility>

#include "conformance/fabric/process/own_state.h"
#include "conformance/runner/host_facts.h"
#include "conformance/runner/rank_ends.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/selection.h"
#include "conformance/runner/verdict_io.h"

namespace shardproof {
namespace {

constexpr double kJudgeSeconds = 1800;  // for one case, on cores that its ranks use too

bool Saves(const Case& c) {
  const std::vector<Case> legs = LegsOf(c);
  return std::any_of(legs.begin(), legs.end(), [](const Case& leg) {
    return std::any_of(leg.instances.begin(), leg.instances.end(), [](const InstanceSpec& spec) {
      return spec.script.find_first_of("sl") != std::string::npos;
    });
  });
}

// The first leg that does not pass decides.
Verdict JudgeLegs(const std::vector<Case>& legs, const std::vector<CaseEnd>& ends,
                  const Options& options) {
  Verdict verdict;
  for (size_t leg = 0; leg < legs.size(); ++leg) {
    verdict = JudgeEnd(legs[leg], ends[leg], options);
    if (IsGood(verdict)) continue;
    if (legs.size() > 1) NameLeg(leg, legs[leg], &verdict);
    break;
  }
  return verdict;
}

// Of the rank's child, for its supervisor.
class SharedProgress {
 public:
  SharedProgress() {
    void* memory =
        mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("cannot map memory for a rank's progress");
    progress_ = new (memory) Progress();
  }
  ~SharedProgress() { munmap(progress_, sizeof(Progress)); }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  Progress* get() const { return progress_; }
  Progress* operator->() const { return progress_; }

 private:
  Progress* progress_;
};

}  // namespace

MpiJudge::MpiJudge(const Options& options, MpiWorld& world) : options_(options), world_(world) {
  if (reports()) scratch_.emplace();
  folder_ = world_.Broadcast(reports() ? scratch_->path() : "");
  const bool here = std::filesystem::is_directory(folder_);
  std::string apart;
  for (const std::string& host : world_.Gather(here ? "" : FactsHere("").host)) {
    if (apart.empty()) apart = host;
  }
  apart_ = world_.Broadcast(apart);
}

std::string MpiJudge::WhyNoSaves() const {
  return apart_.empty()
             ? ""
             : "cases that save are not judged: host " + apart_ + " does not see the folder " +
                   folder_ + " of rank 0; TMPDIR names one that all hosts share";
}

std::vector<std::string> MpiJudge::Facts() const {
  if (left_saves_out_) return {WhyNoSaves()};
  return {};
}

bool MpiJudge::Any(bool here) {
  const std::vector<std::string> all = world_.Gather(here ? "here" : "");
  return std::any_of(all.begin(), all.end(), [](const std::string& at) { return !at.empty(); });
}

void MpiJudge::Judge(const std::vector<Case>& cases, const Done& done,
                     const std::function<bool()>& enough) {
  for (size_t place = 0; place < cases.size(); ++place) {
    RunOne(cases[place], place, done);
    if (options_.max_fail == 0 && options_.time_budget == 0) continue;
    Settle(done);
    const bool over = reports() && enough && enough();
    if (world_.Broadcast(over ? "over" : "on") == "over") return;
  }
  Settle(done);
}

void MpiJudge::RunOne(const Case& c, size_t place, const Done& done) {
  const auto began = std::chrono::steady_clock::now();
  if (!apart_.empty() && Saves(c)) {
    Verdict verdict = NotShared();
    Settle(done);
    pending_ = {&c, place, 0, std::move(verdict)};
    return Settle(done);
  }
  const std::vector<Case> legs = LegsOf(c);
  const std::string folder = folder_ + "/" + std::to_string(runs_++);
  std::vector<CaseEnd> ends;  // of all legs, since only rank 0 learns how one is judged
  for (const Case& leg : legs) ends.push_back(RunLeg(leg, folder, done));
  if (!reports()) return;
  const std::chrono::duration<double> ran = std::chrono::steady_clock::now() - began;
  Settle(done);
  pending_ = {&c, place, ran.count(), {}};
  beside_.Begin([&] { return PackVerdict(JudgeLegs(legs, ends, options_)); });
}

void MpiJudge::Settle(const Done& done) {
  if (!pending_) return;
  Pending pending = *std::exchange(pending_, std::nullopt);
  if (beside_.under_way()) {
    const WorkResult result = beside_.Await(kJudgeSeconds);
    pending.verdict = VerdictOfWorker(result);
    pending.ran += result.seconds;
  }
  if (!reports()) return;
  CaseReport row = ReportOf(*pending.spec, std::move(pending.verdict), options_);
  row.seconds = pending.ran;
  done(pending.place, std::move(row));
}

// An engine may read what another rank wrote, so no rank is blamed for what it does not find.
Verdict MpiJudge::NotShared() {
  left_saves_out_ = true;
  Verdict verdict;
  verdict.outcome = Outcome::kNotCheckable;
  verdict.reason = WhyNoSaves();
  return verdict;
}

CaseEnd MpiJudge::RunLeg(const Case& c, const std::string& folder, const Done& done) {
  const Models models = MakeModels(c);
  RankOptions rank = SimOptionsFor(options_, Id(c), folder).rank;
  MpiOptions mpi;
  const SharedProgress progress;
  rank.progress = progress.get();
  mpi.where = [&progress] { return progress->rank < 0 ? "" : progress->Where(); };
  mpi.stall_seconds = options_.stall_seconds;
  mpi.waiting = [&] {
    if (beside_.under_way() && beside_.Ended()) Settle(done);
  };
  return world_.RunCase(c.world, mpi, [&](Fabric& fabric) {
    const Plugin plugin(options_.impl);
    const OwnState before;
    RankOutput output = RunRank(fabric, c, models, plugin, rank);
    rank.progress->Enter(-1);  // no engine code from here on
    output.changed = before.ChangedNow();
    return Pack(output);
  });
}

}  // namespace shardproof
