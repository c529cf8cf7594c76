#include "conformance/runner/worker_pool.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

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

struct Worker {
  pid_t pid = -1;
  int commands = -1, results = -1;
  Progress* progress = nullptr;
  bool busy = false;
  size_t item = 0;
  uint64_t beats = 0;
  Clock::time_point moved;
};

class Pool {
 public:
  Pool(size_t items, const PoolOptions& options, const std::function<std::string(size_t, Progress&)>& work,
       const std::function<void(size_t, const WorkResult&)>& done)
      : items_(items), options_(options), work_(work), done_(done) {
    const size_t jobs = std::min(items, static_cast<size_t>(std::max(1, options.jobs)));
    for (size_t i = 0; i < jobs; ++i) {
      void* shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
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
      for (const Worker& worker : workers_) polls.push_back({worker.busy ? worker.results : -1, POLLIN, 0});
      poll(polls.data(), polls.size(), 100);
      for (size_t i = 0; i < workers_.size(); ++i) {
        if (!workers_[i].busy) continue;
        if (polls[i].revents != 0) {
          Collect(workers_[i]);
          ++finished;
        } else if (Stalled(workers_[i])) {
          Bury(workers_[i], true);
          ++finished;
        }
      }
    }
  }

 private:
  void Start(Worker& worker) {
    int commands[2], results[2];
    if (pipe(commands) != 0 || pipe(results) != 0) throw std::runtime_error("cannot make a pipe for a worker");
    new (worker.progress) Progress();
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

  [[noreturn]] void Serve(int commands, int results, Progress& progress) {
    uint64_t item = 0;
    while (ReadAll(commands, &item, sizeof item)) {
      const std::string blob = work_(item, progress);
      const uint64_t bytes = blob.size();
      if (!WriteAll(results, &bytes, sizeof bytes) || !WriteAll(results, blob.data(), blob.size())) break;
    }
    _exit(0);
  }

  void Give(Worker& worker, size_t item) {
    if (worker.pid < 0) Start(worker);
    worker.busy = true;
    worker.item = item;
    worker.beats = worker.progress->beats.load();
    worker.moved = Clock::now();
    const uint64_t number = item;
    WriteAll(worker.commands, &number, sizeof number);  // a dead worker is noticed when its result is awaited
  }

  bool Stalled(Worker& worker) {
    const uint64_t beats = worker.progress->beats.load();
    if (beats != worker.beats) {
      worker.beats = beats;
      worker.moved = Clock::now();
    }
    return std::chrono::duration<double>(Clock::now() - worker.moved).count() > options_.stall_seconds;
  }

  void Collect(Worker& worker) {
    WorkResult result;
    uint64_t bytes = 0;
    if (ReadAll(worker.results, &bytes, sizeof bytes)) {
      result.blob.resize(bytes);
      result.done = ReadAll(worker.results, result.blob.data(), bytes);
    }
    if (!result.done) {
      Bury(worker, false);
      return;
    }
    worker.busy = false;
    done_(worker.item, result);
  }

  // The worker has died, or is killed because it stalled: says so for its item.
  void Bury(Worker& worker, bool stalled) {
    WorkResult result;
    if (stalled) kill(worker.pid, SIGKILL);
    int status = 0;
    waitpid(worker.pid, &status, 0);
    if (stalled) {
      result.death = "no progress for " + std::to_string(static_cast<int>(options_.stall_seconds)) +
                     " s: its code runs without calling the host";
    } else if (WIFSIGNALED(status)) {
      const int signal = WTERMSIG(status);
      result.death = "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
    } else {
      result.death = "exit(" + std::to_string(WEXITSTATUS(status)) + ")";
    }
    const Progress& progress = *worker.progress;
    if (progress.note[0] != '\0') result.death += ": " + std::string(progress.note);
    if (progress.rank.load() >= 0) {
      result.where = "rank " + std::to_string(progress.rank.load()) + " in " + progress.call + ", after " +
                     progress.last;
    }
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
  const std::function<std::string(size_t, Progress&)>& work_;
  const std::function<void(size_t, const WorkResult&)>& done_;
  std::vector<Worker> workers_;
};

// What the signal handler of this worker process needs. A handler has no argument, so it stands here; nothing else
// reads it.
struct SignalNote {
  Progress* progress = nullptr;
  std::function<bool(uint64_t, std::string*)> describe;
};
SignalNote& Note() {
  static SignalNote note;
  return note;
}

void OnFatalSignal(int signal, siginfo_t* info, void*) {
  SignalNote& note = Note();
  std::string text;
  if ((signal == SIGSEGV || signal == SIGBUS) && note.describe &&
      note.describe(reinterpret_cast<uint64_t>(info->si_addr), &text)) {
    Progress::Set(note.progress->note, sizeof note.progress->note, text);
  }
  ::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

void RunInWorkers(size_t items, const PoolOptions& options,
                  const std::function<std::string(size_t, Progress&)>& work,
                  const std::function<void(size_t, const WorkResult&)>& done) {
  signal(SIGPIPE, SIG_IGN);
  Pool(items, options, work, done).Run();
}

void NoteFatalSignals(Progress& progress, std::function<bool(uint64_t, std::string*)> describe) {
  Note().progress = &progress;
  Note().describe = std::move(describe);
  // A stack of its own: the engine may have used up the fiber's.
  static std::vector<char> stack(64 << 10);
  const stack_t alternate = {stack.data(), 0, stack.size()};
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = OnFatalSignal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigaction(signal, &action, nullptr);
}

}  // namespace shardproof
