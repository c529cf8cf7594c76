#include "conformance/runner/workers/worker_pool.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <vector>

namespace shardproof {

namespace {

using Clock = std::chrono::steady_clock;

using DoItem = std::function<std::string(size_t item, WorkerSide& side)>;
using ItemDone = std::function<void(size_t item, const WorkResult& result)>;

class Pool {
 public:
  Pool(size_t items, const PoolOptions& options, const DoItem& work, const ItemDone& done)
      : items_(items), options_(options), done_(done) {
    answer_ = [&work](const Frame& question, WorkerSide& side) {
      const std::string answer = work(std::stoull(question.at(0)), side);
      side.describe = nullptr;  // what it refers to is gone
      return Frame{answer};
    };
    const size_t jobs = std::min(items, static_cast<size_t>(std::max(1, options.jobs)));
    for (size_t i = 0; i < jobs; ++i) workers_.push_back(std::make_unique<Worker>());
    tasks_.resize(jobs);
  }

  void Run() {
    size_t next = 0, finished = 0;
    while (finished < next || (next < items_ && !Enough())) {
      std::vector<pollfd> polls;
      for (size_t i = 0; i < workers_.size(); ++i) {
        if (!tasks_[i].busy && next < items_ && !Enough()) Give(i, next++);
        polls.push_back({tasks_[i].busy ? workers_[i]->socket() : -1, POLLIN, 0});
      }
      poll(polls.data(), polls.size(), 100);
      Enough();  // who is asked may want to do something meanwhile
      for (size_t i = 0; i < workers_.size(); ++i) {
        if (tasks_[i].busy && Ended(i)) ++finished;
      }
    }
  }

 private:
  bool Enough() { return options_.enough && options_.enough(); }

  // What a worker does now.
  struct Task {
    bool busy = false;
    size_t item = 0;
    Clock::time_point began;
  };

  void Give(size_t i, size_t item) {
    if (!workers_[i]->alive()) workers_[i]->Start(answer_);
    tasks_[i] = {true, item, Clock::now()};
    workers_[i]->Ask({std::to_string(item)});
  }

  // Whether the task of worker i is over, done or not.
  bool Ended(size_t i) {
    Worker& worker = *workers_[i];
    WorkResult result;
    Frame answer;
    const Worker::Said said = worker.Listen(&answer);
    if (said == Worker::Said::kNothing) {
      result.death = Stalled(worker, tasks_[i].began);
      if (result.death.empty()) return false;
      worker.Kill();
      const std::string note = TextOf(worker.progress().note);
      if (!note.empty()) result.death += ": " + note;
    } else if (said == Worker::Said::kAnswer && answer.size() == 1) {
      result.done = true;
      result.blob = std::move(answer.front());
    } else {
      result.death = said == Worker::Said::kAnswer ? "its answer is not whole" : worker.Death();
      worker.Kill();
    }
    tasks_[i].busy = false;
    result.seconds = std::chrono::duration<double>(Clock::now() - tasks_[i].began).count();
    done_(tasks_[i].item, result);
    return true;
  }

  // Why the worker must be killed, or "".
  std::string Stalled(Worker& worker, Clock::time_point began) const {
    if (std::chrono::duration<double>(Clock::now() - began).count() > options_.limit_seconds)
      return "not ended after " + SecondsText(options_.limit_seconds);
    if (!worker.Stuck(options_.stall_seconds)) return "";
    return "no progress for " + SecondsText(worker.StillSeconds()) +
           ": its code runs, or sleeps, without issuing anything";
  }

  size_t items_;
  PoolOptions options_;
  AnswerQuestion answer_;
  const ItemDone& done_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Task> tasks_;  // of each worker
};

}  // namespace

void RunInWorkers(size_t items, const PoolOptions& options, const DoItem& work,
                  const ItemDone& done) {
  signal(SIGPIPE, SIG_IGN);
  Pool(items, options, work, done).Run();
}

}  // namespace shardproof
