#include "conformance/runner/rank_process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>

#include "conformance/fabric/nccl/rendezvous_frame.h"

namespace shardproof {
namespace {

bool WriteAll(int fd, const std::string& bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

std::optional<Frame> ReadFrame(int fd) {
  std::string in;
  bool bad = false;
  char chunk[1 << 16];
  while (!bad) {
    if (std::optional<Frame> frame = TakeFrame(&in, &bad)) return frame;
    const ssize_t n = read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    in.append(chunk, static_cast<size_t>(n));
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> FieldsOf(const RankAnswer& answer) {
  std::vector<std::string> fields = {std::to_string(answer.end.kind), answer.end.detail,
                                     answer.end.returned ? "1" : "",  answer.end.blob,
                                     answer.waited ? "1" : "",        answer.reusable ? "1" : ""};
  fields.insert(fields.end(), answer.mismatches.begin(), answer.mismatches.end());
  return fields;
}

RankAnswer AnswerOf(const std::vector<std::string>& fields) {
  if (fields.size() < 6) throw std::runtime_error("a rank's answer is not whole");
  RankAnswer answer;
  answer.end.kind = static_cast<RankEnd::Kind>(std::stoi(fields[0]));
  answer.end.detail = fields[1];
  answer.end.returned = !fields[2].empty();
  answer.end.blob = fields[3];
  answer.waited = !fields[4].empty();
  answer.reusable = !fields[5].empty();
  answer.mismatches.assign(fields.begin() + 6, fields.end());
  return answer;
}

RankProcess::RankProcess(int rank) : rank_(rank) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw std::runtime_error("cannot map memory to share with a rank process");
  shared_ = new (memory) Shared();
}

RankProcess::~RankProcess() {
  Kill();
  munmap(shared_, sizeof(Shared));
}

void RankProcess::Start(const MakeRankWork& make,
                        const std::vector<std::unique_ptr<RankProcess>>& others) {
  int commands[2], results[2];
  if (pipe(commands) != 0 || pipe(results) != 0)
    throw std::runtime_error("cannot make a pipe for a rank process");
  new (shared_) Shared();
  death_.clear();
  std::fflush(nullptr);  // what is buffered is written once
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork a rank process");
  if (pid_ == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it died before the line above
    for (const auto& other : others) {
      if (other->commands_ >= 0) close(other->commands_);
      if (other->results_ >= 0) close(other->results_);
    }
    close(commands[1]);
    close(results[0]);
    Serve(commands[0], results[1], make);
  }
  setpgid(pid_, pid_);
  close(commands[0]);
  close(results[1]);
  commands_ = commands[1];
  results_ = results[0];
  Look();
}

void RankProcess::Serve(int commands, int results, const MakeRankWork& make) {
  Progress& progress = shared_->progress;
  LeaveLastWords(progress.note, sizeof progress.note, nullptr, nullptr);
  try {
    const std::unique_ptr<RankWork> work = make({rank_, &progress, &shared_->waits});
    bool goes_on = WriteAll(results, PackFrame(work->Facts()));
    while (goes_on) {
      const std::optional<Frame> item = ReadFrame(commands);
      if (!item) break;
      RankAnswer answer = work->Run(std::stoull(item->at(0)));
      progress.rank.store(-1);
      goes_on = WriteAll(results, PackFrame(FieldsOf(answer)));
    }
    _exit(0);  // what holds the device goes with the process
  } catch (const std::exception& error) {
    Progress::Set(progress.note, sizeof progress.note, error.what());
  } catch (...) {
    Progress::Set(progress.note, sizeof progress.note, "an exception that is no std::exception");
  }
  _exit(1);
}

void RankProcess::Give(size_t item) {
  shared_->progress.rank.store(-1);
  shared_->progress.call[0] = shared_->progress.last[0] = '\0';
  Look();
  moved_ = Clock::now();
  WriteAll(
      commands_,
      PackFrame({std::to_string(item)}));  // a dead process is noticed when its answer is awaited
}

std::optional<std::vector<std::string>> RankProcess::Read() {
  std::optional<Frame> frame = ReadFrame(results_);
  if (!frame) Reap();
  return frame;
}

void RankProcess::Reap() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  kill(-pid_, SIGKILL);  // what it has started
  const ProcessEnd end = DescribeWaitStatus(status);
  crashed_ = end.kind == ProcessEnd::Kind::kSignal;
  death_ = (crashed_ ? "ended by " : "the process left before the run was over, with ") + end.text;
  if (shared_->progress.note[0] != '\0') death_ += ": " + std::string(shared_->progress.note);
  pid_ = -1;
  Kill();
}

void RankProcess::Kill() {
  if (pid_ > 0) KillAndReap(pid_);
  pid_ = -1;
  if (commands_ >= 0) close(commands_);
  if (results_ >= 0) close(results_);
  commands_ = results_ = -1;
}

double RankProcess::ProcessorSeconds() const {
  clockid_t clock{};
  timespec spent{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &spent) != 0)
    return processor_;
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

void RankProcess::Look() {
  const uint64_t beats = shared_->progress.beats.load(), waits = shared_->waits.load();
  if (beats == beats_ && waits == waits_ && moved_ != Clock::time_point{}) return;
  waiting_ = beats == beats_ && waits != waits_;
  beats_ = beats;
  waits_ = waits;
  moved_ = Clock::now();
  processor_ = ProcessorSeconds();
}

double RankProcess::StillSeconds() const {
  return std::chrono::duration<double>(Clock::now() - moved_).count();
}
double RankProcess::StillProcessorSeconds() const { return ProcessorSeconds() - processor_; }
bool RankProcess::InEngine() const { return shared_->progress.rank.load() >= 0; }

std::string RankProcess::Where() const {
  if (!InEngine()) return "in the suite's own code";
  const std::string call = shared_->progress.call;
  const std::string last = shared_->progress.last;
  return (waiting_ ? "waiting for other ranks in " : "in engine code of ") + call +
         (last.empty() ? "" : ", after " + last);
}

}  // namespace shardproof
