#include "conformance/runner/workers/worker.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

#include "conformance/fabric/process/process.h"

namespace shardproof {
namespace {

bool Describe(const void* context, uint64_t address, char* text, size_t size) {
  const auto* side = static_cast<const WorkerSide*>(context);
  std::string words;
  if (!side->describe || !side->describe(address, &words)) return false;
  Progress::Set(text, size, words);
  return true;
}

}  // namespace

Worker::Worker() {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("cannot map memory to share with a worker");
  shared_ = new (memory) Shared();
}

Worker::~Worker() {
  Kill();
  munmap(shared_, sizeof(Shared));
}

void Worker::Start(const AnswerQuestion& answer,
                   const std::vector<std::unique_ptr<Worker>>& others) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("cannot make a socket for a worker");
  new (shared_) Shared();
  death_.clear();
  std::fflush(nullptr);  // what is buffered is written once
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork a worker");
  if (pid_ == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it died before the line above
    for (const auto& other : others) {
      if (other->socket_ >= 0) close(other->socket_);
    }
    close(ends[0]);
    Serve(ends[1], answer);
  }
  setpgid(pid_, pid_);
  close(ends[1]);
  socket_ = ends[0];
  Moved();
}

void Worker::Serve(int socket, const AnswerQuestion& answer) {
  Progress& progress = shared_->progress;
  WorkerSide side{&progress, &shared_->waits, {}};
  LeaveLastWords(progress.note, sizeof progress.note, Describe, &side);
  try {
    while (const std::optional<Frame> question = ReceiveFrame(socket)) {
      const Frame said = answer(*question, side);
      progress.rank.store(-1);
      if (!SendAll(socket, PackFrame(said))) break;
    }
    _exit(0);  // what it holds, a device say, goes with the process
  } catch (const std::exception& error) {
    Progress::Set(progress.note, sizeof progress.note, error.what());
  } catch (...) {
    Progress::Set(progress.note, sizeof progress.note, "an exception that is no std::exception");
  }
  _exit(1);  // above stands code of the parent
}

void Worker::Ask(const Frame& question) {
  shared_->progress.rank.store(-1);
  shared_->progress.call[0] = shared_->progress.last[0] = '\0';
  Moved();
  SendAll(socket_, PackFrame(question));
}

std::optional<Frame> Worker::Answer() {
  std::optional<Frame> frame = ReceiveFrame(socket_);
  if (!frame) Reap();
  return frame;
}

void Worker::Reap() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  kill(-pid_, SIGKILL);  // what it has started
  const ProcessEnd end = DescribeWaitStatus(status);
  crashed_ = end.kind == ProcessEnd::Kind::kSignal;
  death_ = (crashed_ ? "ended by " : "the process left before the run was over, with ") + end.text;
  if (progress().note[0] != '\0') death_ += ": " + std::string(progress().note);
  pid_ = -1;
  Kill();
}

void Worker::Kill() {
  if (pid_ > 0) KillAndReap(pid_);
  pid_ = -1;
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

void Worker::Moved() {
  const uint64_t beats = shared_->progress.beats.load(), waits = shared_->waits.load();
  waiting_ = beats == beats_ && waits != waits_;
  beats_ = beats;
  waits_ = waits;
  moved_ = Clock::now();
  still_.reset();
}

bool Worker::Stuck(double stall_seconds) {
  if (shared_->progress.beats.load() != beats_ || shared_->waits.load() != waits_) Moved();
  if (!still_) still_.emplace(pid_);
  const double patience = stall_seconds * (InEngine() ? 1 : 30);
  return StillSeconds() >= patience &&
         (still_->Ran() >= 0.8 * patience || still_->Free() >= kStallsOfASleeper * patience);
}

double Worker::StillSeconds() const {
  return std::chrono::duration<double>(Clock::now() - moved_).count();
}
bool Worker::InEngine() const { return progress().rank.load() >= 0; }

std::string Worker::Where() const {
  if (!InEngine()) return "in the suite's own code";
  const std::string call = progress().call, last = progress().last;
  return (waiting_ ? "waiting for other ranks in " : "in engine code of ") + call +
         (last.empty() ? "" : ", after " + last);
}

std::string SecondsText(double seconds) { return std::to_string(static_cast<int>(seconds)) + " s"; }

}  // namespace shardproof
