#include "conformance/runner/nccl/rank_processes.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <utility>

#include "conformance/runner/workers/worker.h"

namespace shardproof {
namespace {

using Clock = std::chrono::steady_clock;
double Since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

// In a rank process. The first question makes what does the work, and is answered with its facts;
// each other one names an item.
AnswerQuestion RankAnswers(int rank, const MakeRankWork& make) {
  return [rank, make, work = std::shared_ptr<RankWork>()](const Frame& question,
                                                          WorkerSide& side) mutable -> Frame {
    if (work) return FieldsOf(work->Run(question.at(0)));
    work = make({rank, side.progress, side.waits});
    return work->Facts();
  };
}

// The process has run engine code: what it says may be anything.
RankAnswer ReadAnswer(const Frame& fields) {
  try {
    return AnswerOf(fields);
  } catch (const std::runtime_error& error) {
    RankAnswer answer;
    answer.reusable = false;
    answer.end = {RankEnd::kExit, std::string("its process gave no answer: ") + error.what(), false,
                  ""};
    return answer;
  }
}

std::string Who(int rank) { return "rank " + std::to_string(rank); }

}  // namespace

class RankProcesses::State {
 public:
  State(const RankProcessOptions& options, MakeRankWork make)
      : options_(options), make_(std::move(make)) {
    signal(SIGPIPE, SIG_IGN);  // who reads the console may leave
    for (int i = 0; i < options_.ranks; ++i) processes_.push_back(std::make_unique<Worker>());
  }

  void Prepare(int world);
  std::vector<RankAnswer> Run(const std::string& item, int world, const CaseHooks& hooks);
  Worker& Of(int rank) const {
    return *processes_.at(static_cast<size_t>(rank - options_.first_rank));
  }
  int RankOf(size_t i) const { return options_.first_rank + static_cast<int>(i); }

  std::vector<std::string> facts;
  int started = 0;

 private:
  // One case, while it runs.
  struct Running {
    Running(const CaseHooks& given, size_t members)
        : hooks(given), answers(members), ended(members, false) {}
    const CaseHooks& hooks;
    std::vector<RankAnswer> answers;
    std::vector<bool> ended;
    Clock::time_point began = Clock::now();
    std::string reason;           // why it ends early; empty: it does not
    Clock::time_point reason_at;  // and since when
    double grace = 0;             // and how long it may take
  };
  int Members(int world) const {
    return std::clamp(world - options_.first_rank, 0, options_.ranks);
  }
  // Which of the first `members` processes have something to say, or have died; waits a little.
  std::vector<bool> Poll(int members, const std::vector<bool>& ended) const;
  void End(Running& run, size_t i, RankAnswer answer);
  void EndEarly(Running& run, const std::string& reason, double grace);
  void Collect(Running& run, size_t i);
  void Watch(Running& run, size_t i);

  RankProcessOptions options_;
  MakeRankWork make_;
  std::vector<std::unique_ptr<Worker>> processes_;
};

std::vector<bool> RankProcesses::State::Poll(int members, const std::vector<bool>& ended) const {
  std::vector<pollfd> polls;
  for (size_t i = 0; i < static_cast<size_t>(members); ++i) {
    polls.push_back({ended[i] ? -1 : processes_[i]->socket(), POLLIN, 0});
  }
  poll(polls.data(), polls.size(), 20);
  std::vector<bool> speaks;
  for (const pollfd& one : polls) speaks.push_back(one.revents != 0);
  return speaks;
}

void RankProcesses::State::Prepare(int world) {
  const int members = Members(world);
  std::vector<bool> ready(static_cast<size_t>(members), true);
  for (size_t i = 0; i < ready.size(); ++i) {
    if (processes_[i]->alive()) continue;
    processes_[i]->Start(RankAnswers(RankOf(i), make_));
    processes_[i]->Ask({});
    ready[i] = false;
    ++started;
  }
  const Clock::time_point began = Clock::now();
  while (std::find(ready.begin(), ready.end(), false) != ready.end()) {
    const std::vector<bool> speaks = Poll(members, ready);
    for (size_t i = 0; i < ready.size(); ++i) {
      if (ready[i]) continue;
      Worker& process = *processes_[i];
      if (speaks[i]) {
        Frame answer;
        const Worker::Said said = process.Listen(&answer);
        if (said == Worker::Said::kEnded)
          throw std::runtime_error(Who(RankOf(i)) + " could not start: " + process.Death());
        if (said == Worker::Said::kNothing) continue;
        if (facts.empty()) facts = answer;
        ready[i] = true;
      } else if (Since(began) > options_.start_seconds) {
        throw std::runtime_error(Who(RankOf(i)) + " was not ready after " +
                                 SecondsText(options_.start_seconds));
      }
    }
  }
}

std::vector<RankAnswer> RankProcesses::State::Run(const std::string& item, int world,
                                                  const CaseHooks& hooks) {
  const auto members = static_cast<size_t>(Members(world));
  Running run(hooks, members);
  for (size_t i = 0; i < members; ++i) processes_[i]->Ask({item});
  while (std::find(run.ended.begin(), run.ended.end(), false) != run.ended.end()) {
    const std::vector<bool> speaks = Poll(static_cast<int>(members), run.ended);
    for (size_t i = 0; i < members; ++i) {
      if (!run.ended[i] && speaks[i]) Collect(run, i);
    }
    if (run.reason.empty() && hooks.aborted) {
      // The ranks know too; a host that waits for others is back at once, and one that sleeps is
      // found to be stuck.
      if (const auto why = hooks.aborted()) {
        run.reason = *why;
        run.reason_at = Clock::now();
        run.grace = kStallsOfASleeper * options_.stall_seconds + options_.grace_seconds;
      }
    }
    for (size_t i = 0; i < members; ++i) {
      if (!run.ended[i]) Watch(run, i);
    }
  }
  for (size_t i = 0; i < members; ++i) {
    if (!run.answers[i].reusable) processes_[i]->Kill();
  }
  return std::move(run.answers);
}

void RankProcesses::State::End(Running& run, size_t i, RankAnswer answer) {
  run.answers[i] = std::move(answer);
  run.ended[i] = true;
}

void RankProcesses::State::EndEarly(Running& run, const std::string& reason, double grace) {
  if (run.hooks.abort) run.hooks.abort(reason);
  if (!run.reason.empty() && run.grace <= grace) return;
  if (run.reason.empty()) run.reason = reason;
  run.reason_at = Clock::now();
  run.grace = grace;
}

void RankProcesses::State::Collect(Running& run, size_t i) {
  Worker& process = *processes_[i];
  const std::string where = process.Where();
  Frame fields;
  const Worker::Said said = process.Listen(&fields);
  if (said == Worker::Said::kNothing) return;
  if (said == Worker::Said::kAnswer) {
    RankAnswer answer = ReadAnswer(fields);
    if (answer.end.kind == RankEnd::kException) {
      EndEarly(run, Who(RankOf(i)) + " threw " + answer.end.detail, options_.grace_seconds);
    }
    return End(run, i, std::move(answer));
  }
  RankAnswer died;
  died.end.kind = process.crashed() ? RankEnd::kSignal : RankEnd::kExit;
  died.end.detail = process.Death() + "; it was " + where;
  died.reusable = false;
  EndEarly(run, "the death of " + Who(RankOf(i)) + " (" + process.Death() + ")",
           options_.grace_seconds);
  End(run, i, std::move(died));
}

// Ends a rank that is stuck, or whose time is over.
void RankProcesses::State::Watch(Running& run, size_t i) {
  Worker& process = *processes_[i];
  const bool stuck = process.Stuck(options_.stall_seconds);
  const bool late = Since(run.began) > options_.case_seconds;
  const bool leave = !run.reason.empty() && Since(run.reason_at) > run.grace;
  if (!stuck && !late && !leave) return;
  RankAnswer killed;
  killed.reusable = false;
  killed.end.kind = RankEnd::kHung;
  const std::string it_was = "; it was " + process.Where();
  if (stuck) {
    killed.end.detail = "without progress for " + SecondsText(process.StillSeconds()) +
                        ": its code runs, or sleeps, without issuing anything" + it_was;
  } else if (leave) {
    killed.end.kind = RankEnd::kAborted;
    killed.end.detail = "ended because of " + run.reason + it_was;
  } else {
    killed.end.detail = "not ended after " + SecondsText(options_.case_seconds) + it_was;
  }
  process.Kill();
  if (!leave)
    EndEarly(run, Who(RankOf(i)) + ", which is stuck (" + killed.end.detail + ")",
             options_.grace_seconds);
  End(run, i, std::move(killed));
}

RankProcesses::RankProcesses(const RankProcessOptions& options, MakeRankWork make)
    : state_(std::make_unique<State>(options, std::move(make))) {}
RankProcesses::~RankProcesses() = default;
void RankProcesses::Prepare(int world) { state_->Prepare(world); }
std::vector<RankAnswer> RankProcesses::Run(const std::string& item, int world,
                                           const CaseHooks& hooks) {
  return state_->Run(item, world, hooks);
}
const std::vector<std::string>& RankProcesses::facts() const { return state_->facts; }
int RankProcesses::started() const { return state_->started; }
pid_t RankProcesses::pid(int rank) const { return state_->Of(rank).pid(); }

}  // namespace shardproof
