#include "conformance/runner/worker_pool.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "conformance/fabric/process/process.h"

namespace shardproof {

namespace {

using Clock = std::chrono::steady_clock;

bool WriteAll(int fd, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = write(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool ReadAll(int fd, void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = read(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool Describe(const void* context, uint64_t address, char* text, size_t size) {
  const auto* side = static_cast<const WorkerSide*>(context);
  std::string words;
  if (!side->describe || !side->describe(address, &words)) return false;
  Progress::Set(text, size, words);
  return true;
}

double CpuSeconds(pid_t process) {
  clockid_t clock{};
  timespec spent{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &spent) != 0) return 0;
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

struct Worker {
  pid_t pid = -1;
  int commands = -1, results = -1;
  Progress* progress = nullptr;
  bool busy = false;
  size_t item = 0;
  uint64_t beats = 0;
  Clock::time_point began, moved;
  double cpu = 0;  // of the process, when it moved last
};

class Pool {
 public:
  Pool(size_t items, const PoolOptions& options,
       const std::function<std::string(size_t, WorkerSide&)>& work,
       const std::function<void(size_t, const WorkResult&)>& done)
      : items_(items), options_(options), work_(work), done_(done) {
    const size_t jobs = std::min(items, static_cast<size_t>(std::max(1, options.jobs)));
    for (size_t i = 0; i < jobs; ++i) {
      void* shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (shared == MAP_FAILED) throw std::runtime_error("cannot map shared memory for a worker");
      workers_.emplace_back().progress = static_cast<Progress*>(shared);
    }
  }
  ~Pool() {
    for (Worker& worker : workers_) {
      Stop(worker);
      munmap(worker.progress, sizeof(Progress));
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void Run() {
    size_t finished = 0;
    while (finished < items_) {
      for (Worker& worker : workers_) {
        if (!worker.busy && next_ < items_) Give(worker, next_++);
      }
      std::vector<pollfd> polls;
      for (const Worker& worker : workers_)
        polls.push_back({worker.busy ? worker.results : -1, POLLIN, 0});
      poll(polls.data(), polls.size(), 100);
      for (size_t i = 0; i < workers_.size(); ++i) {
        if (!workers_[i].busy) continue;
        if (polls[i].revents != 0) {
          Collect(workers_[i]);
          ++finished;
        } else if (const std::string why = Stalled(workers_[i]); !why.empty()) {
          Bury(workers_[i], why);
          ++finished;
        }
      }
    }
  }

 private:
  void Start(Worker& worker) {
    int commands[2], results[2];
    if (pipe(commands) != 0 || pipe(results) != 0)
      throw std::runtime_error("cannot make a pipe for a worker");
    new (worker.progress) Progress();
    std::fflush(nullptr);  // what is buffered is written once
    worker.pid = fork();
    if (worker.pid < 0) throw std::runtime_error("cannot fork a worker");
    if (worker.pid == 0) {
      for (const Worker& other : workers_) {
        if (other.commands >= 0) close(other.commands);
        if (other.results >= 0) close(other.results);
      }
      close(commands[1]);
      close(results[0]);
      Serve(commands[0], results[1], *worker.progress);
    }
    close(commands[0]);
    close(results[1]);
    worker.commands = commands[1];
    worker.results = results[0];
  }

  // What work throws ends the worker: above it stands code of the parent.
  std::string Work(size_t item, WorkerSide& side) {
    try {
      return work_(item, side);
    } catch (const std::exception& error) {
      Progress::Set(side.progress->note, sizeof side.progress->note, error.what());
    } catch (...) {
      Progress::Set(side.progress->note, sizeof side.progress->note,
                    "an exception that is no std::exception");
    }
    _exit(1);
  }

  [[noreturn]] void Serve(int commands, int results, Progress& progress) {
    WorkerSide side{&progress, {}};
    LeaveLastWords(progress.note, sizeof progress.note, Describe, &side);
    uint64_t item = 0;
    while (ReadAll(commands, &item, sizeof item)) {
      const std::string blob = Work(item, side);
      const uint64_t bytes = blob.size();
      if (!WriteAll(results, &bytes, sizeof bytes) || !WriteAll(results, blob.data(), blob.size()))
        break;
    }
    _exit(0);
  }

  void Give(Worker& worker, size_t item) {
    if (worker.pid < 0) Start(worker);
    worker.busy = true;
    worker.item = item;
    worker.progress->rank.store(-1);
    Moved(worker);
    worker.began = worker.moved;
    const uint64_t number = item;
    WriteAll(worker.commands, &number,
             sizeof number);  // a dead worker is noticed when its result is awaited
  }

  static double Since(Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  }
  static void Moved(Worker& worker) {
    worker.beats = worker.progress->beats.load();
    worker.moved = Clock::now();
    worker.cpu = CpuSeconds(worker.pid);
  }

  // Why the worker must be killed, or "".
  std::string Stalled(Worker& worker) const {
    if (worker.progress->beats.load() != worker.beats) Moved(worker);
    const auto seconds = [](double s) { return std::to_string(static_cast<int>(s)) + " s"; };
    if (Since(worker.began) > options_.limit_seconds)
      return "not ended after " + seconds(options_.limit_seconds);
    const double patience = options_.stall_seconds * (worker.progress->rank.load() < 0 ? 30 : 1);
    const double still = Since(worker.moved);
    if (still < patience) return "";
    if (CpuSeconds(worker.pid) - worker.cpu < 0.8 * patience && still < 4 * patience) return "";
    return "no progress for " + seconds(still) +
           ": its code runs, or sleeps, without issuing anything";
  }

  void Collect(Worker& worker) {
    WorkResult result;
    uint64_t bytes = 0;
    if (ReadAll(worker.results, &bytes, sizeof bytes)) {
      result.blob.resize(bytes);
      result.done = ReadAll(worker.results, result.blob.data(), bytes);
    }
    if (!result.done) {
      Bury(worker, "");
      return;
    }
    worker.busy = false;
    done_(worker.item, result);
  }

  // The worker has died, or is killed because it stalled: says so for its item.
  void Bury(Worker& worker, const std::string& stalled) {
    WorkResult result;
    result.hung = !stalled.empty();
    if (result.hung) kill(worker.pid, SIGKILL);
    int status = 0;
    while (waitpid(worker.pid, &status, 0) < 0 && errno == EINTR) {
    }
    const ProcessEnd end = DescribeWaitStatus(status);
    const bool crashed = end.kind == ProcessEnd::Kind::kSignal;
    result.death =
        (crashed ? "ended by " : "the process left before the run was over, with ") + end.text;
    if (result.hung) result.death = stalled;
    const Progress& progress = *worker.progress;
    if (progress.note[0] != '\0') result.death += ": " + std::string(progress.note);
    result.rank = progress.rank.load();
    if (result.rank >= 0) result.where = std::string(progress.call) + ", after " + progress.last;
    worker.pid = -1;
    Stop(worker);
    worker.busy = false;
    done_(worker.item, result);
  }

  void Stop(Worker& worker) {
    if (worker.commands >= 0) close(worker.commands);
    if (worker.results >= 0) close(worker.results);
    worker.commands = worker.results = -1;
    if (worker.pid > 0) {
      kill(worker.pid, SIGKILL);
      waitpid(worker.pid, nullptr, 0);
      worker.pid = -1;
    }
  }

  size_t items_, next_ = 0;
  PoolOptions options_;
  const std::function<std::string(size_t, WorkerSide&)>& work_;
  const std::function<void(size_t, const WorkResult&)>& done_;
  std::vector<Worker> workers_;
};

}  // namespace

void RunInWorkers(size_t items, const PoolOptions& options,
                  const std::function<std::string(size_t, WorkerSide&)>& work,
                  const std::function<void(size_t, const WorkResult&)>& done) {
  signal(SIGPIPE, SIG_IGN);
  Pool(items, options, work, done).Run();
}

}  // namespace shardproof
