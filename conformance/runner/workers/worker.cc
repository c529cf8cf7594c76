#include "conformance/runner/workers/worker.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
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

void LeaveLastWordsIn(WorkerSide& side) {
  LeaveLastWords(side.progress->note, sizeof side.progress->note, Describe, &side, side.stack);
}

std::string DeathText(const KeptEnd& end, const Progress& progress, bool* crashed) {
  if (crashed != nullptr) *crashed = !end.known;
  if (!end.known) return "ended by SIGKILL, after the process that watches it";
  const ProcessEnd process = DescribeWaitStatus(end.status);
  const bool signal = process.kind == ProcessEnd::Kind::kSignal;
  if (crashed != nullptr) *crashed = signal;
  const std::string words = TextOf(progress.note);
  return (signal ? "ended by " : "the process left before the run was over, with ") + process.text +
         (words.empty() ? "" : ": " + words);
}

Worker::Worker() {
  void* memory = mmap(nullptr, sizeof(WatchedState), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("cannot map memory to share with a worker");
  shared_ = new (memory) WatchedState();
  watch_.emplace(*shared_);
}

Worker::~Worker() {
  Kill();
  munmap(shared_, sizeof(WatchedState));
}

void Worker::Start(const AnswerQuestion& answer) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("cannot make a socket for a worker");
  new (shared_) WatchedState();
  death_.clear();
  received_.clear();
  socket_ = ends[0];
  keeper_.Start([&] { Serve(ends[1], answer); }, {ends[1]});
  close(ends[1]);
  watch_->Begin(keeper_.pid());
}

void Worker::Serve(int socket, const AnswerQuestion& answer) {
  Progress& progress = shared_->progress;
  WorkerSide side{&progress, &shared_->waits, &shared_->stack, {}};
  LeaveLastWordsIn(side);
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
  watch_->Begin(keeper_.pid());
  SendAll(socket_, PackFrame(question));
}

Worker::Said Worker::Listen(Frame* answer) {
  char chunk[1 << 16];
  ssize_t n = 0;
  while ((n = recv(socket_, chunk, sizeof chunk, MSG_DONTWAIT)) > 0) {
    received_.append(chunk, static_cast<size_t>(n));
    bool bad = false;
    std::optional<Frame> frame = TakeFrame(&received_, &bad);
    if (bad || (frame && !received_.empty()))
      return Bury("what the process wrote is no answer to a question");
    if (!frame) continue;
    *answer = std::move(*frame);
    return Said::kAnswer;
  }
  const bool open = n < 0 && (errno == EAGAIN || errno == EINTR);
  return open ? Said::kNothing : Bury("");
}

// The worker is gone, or goes now.
Worker::Said Worker::Bury(const std::string& what_it_said) {
  if (what_it_said.empty()) {
    keeper_.Await();
  } else {
    keeper_.Kill();
  }
  death_ = DeathText(keeper_.end(), progress(), &crashed_);
  if (!what_it_said.empty()) death_ = what_it_said;
  Kill();
  return Said::kEnded;
}

void Worker::Kill() {
  keeper_.Kill();
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

}  // namespace shardproof
