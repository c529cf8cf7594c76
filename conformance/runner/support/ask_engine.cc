#include "conformance/runner/support/ask_engine.h"

#include <sys/mman.h>

#include <cstdint>
#include <stdexcept>
#include <utility>

#include "conformance/common/at.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/sim_run.h"
#include "conformance/runner/workers/engine_process.h"

namespace shardproof {
namespace {

constexpr double kSecondsOfACase = 1;  // and some for the library
constexpr char kOpen = 0, kDeclined = 1, kTaken = 2;

// On all ranks of its grid. Where they differ, and where a legal case is rejected, it is for a
// verdict.
bool Declined(const RunData& data, const Case& c) {
  const InstanceSpec& spec = c.instances.front();
  for (int32_t rank = spec.offset; rank < spec.offset + spec.span; ++rank) {
    if (At(data.run.outcomes, rank).kind != EngineOutcome::Kind::kUnsupported) return false;
  }
  return true;
}

// A byte for each case, which the engine's process writes and the one that asks reads.
class SharedBytes {
 public:
  explicit SharedBytes(size_t size)
      : size_(size),
        bytes_(static_cast<char*>(
            mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (bytes_ == MAP_FAILED) throw std::runtime_error("no shared memory for answers");
  }
  ~SharedBytes() { munmap(bytes_, size_); }
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;
  char& operator[](size_t i) { return bytes_[i]; }

 private:
  size_t size_;
  char* bytes_;
};

// In the engine's process.
void AskFrom(size_t first, const std::string& address, const std::vector<Case>& cases,
             const std::string& folder, SharedBytes& answers, WorkerSide& side) {
  Progress& progress = *side.progress;
  const Plugin plugin(address, [&](const char* step) {
    progress.Enter(kNoRank);
    Progress::Set(progress.call, sizeof progress.call, step);
  });
  SimRunOptions sim;
  sim.rank.level = RecordLevel::kOff;
  sim.rank.folder = folder;
  sim.rank.progress = &progress;
  for (size_t i = first; i < cases.size(); ++i) {
    progress.Enter(-1);
    const RunData data = RunOnSim(cases[i], MakeModels(cases[i]), plugin, sim);
    answers[i] = Declined(data, cases[i]) ? kDeclined : kTaken;
  }
}

}  // namespace

EngineAsker::EngineAsker(std::string address, double stall_seconds)
    : address_(std::move(address)), stall_seconds_(stall_seconds) {}

std::vector<TakeAnswer> EngineAsker::Ask(const std::vector<Case>& cases) {
  std::vector<TakeAnswer> said(cases.size(), TakeAnswer::kDeclines);
  if (cases.empty()) return said;
  SharedBytes answers(cases.size());
  const ScratchFolder scratch;  // of checkpoints, which scripts may save
  size_t first = 0;
  while (first < cases.size() && !gave_up()) {
    EngineProcessOptions limits;
    limits.stall_seconds = stall_seconds_;
    limits.limit_seconds = 60 + kSecondsOfACase * static_cast<double>(cases.size() - first);
    const EngineProcessEnd end = RunInEngineProcess(limits, [&](WorkerSide& side) {
      AskFrom(first, address_, cases, scratch.path(), answers, side);
      return Frame();
    });
    if (!end.error.empty()) throw std::runtime_error(address_ + ": " + end.error);
    for (; first < cases.size() && answers[first] != kOpen; ++first)
      said[first] = answers[first] == kTaken ? TakeAnswer::kTakes : TakeAnswer::kDeclines;
    if (end.answered && first < cases.size())
      throw std::runtime_error(address_ + ": no answer to what it takes");
    if (first == cases.size()) break;
    ends_.push_back(Id(cases[first]));
    said[first++] = TakeAnswer::kEnds;
  }
  return said;
}

}  // namespace shardproof
