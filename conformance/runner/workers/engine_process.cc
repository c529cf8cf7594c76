#include "conformance/runner/workers/engine_process.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <vector>

#include "conformance/fabric/process/process.h"
#include "conformance/runner/workers/printed.h"

namespace shardproof {
namespace {

// Address space; pages cost nothing until they are written.
constexpr uint64_t kMostBytes = uint64_t{1} << 30;

// A library may have much to do when it is loaded.
constexpr double kStallsOfALibrary = 6;

struct Head {
  WatchedState watched;
  enum : uint32_t { kNothing, kEvidence, kError };
  std::atomic<uint32_t> answer{kNothing};
  std::atomic<uint64_t> bytes{0};
};

class SharedEvidence {
 public:
  SharedEvidence() {
    void* memory = mmap(nullptr, sizeof(Head) + kMostBytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::runtime_error(std::string("cannot map memory for evidence: ") +
                               std::strerror(errno));
    }
    head_ = new (memory) Head();
  }
  ~SharedEvidence() { munmap(head_, sizeof(Head) + kMostBytes); }
  SharedEvidence(const SharedEvidence&) = delete;
  SharedEvidence& operator=(const SharedEvidence&) = delete;
  Head* operator->() const { return head_; }

  // REQUIRES: BytesOf(fields) <= kMostBytes.
  void Put(uint32_t kind, const Frame& fields) {
    PackFrameTo(fields, reinterpret_cast<char*>(head_ + 1));
    head_->bytes = BytesOf(fields);
    head_->answer = kind;
  }
  // Nothing: what stands there is nothing that Put writes.
  std::optional<FrameView> Get() const {
    const uint64_t size = head_->bytes;
    if (size > kMostBytes) return std::nullopt;
    std::string_view bytes(reinterpret_cast<const char*>(head_ + 1), size);
    bool bad = false;
    std::optional<FrameView> fields = FrameIn(&bytes, &bad);
    return bytes.empty() ? fields : std::nullopt;
  }

 private:
  Head* head_;
};

// told_to: who is told of operations on files; -1: nobody.
[[noreturn]] void Work(SharedEvidence& shared, int told_to, const PrintedFile& printed,
                       const std::function<Frame(WorkerSide& side)>& work) {
  WatchedState& watched = shared->watched;
  WorkerSide side{&watched.progress, &watched.waits, &watched.stack, {}};
  printed.TakeOutput();
  watched.progress.prints.store(true);
  LeaveLastWordsIn(side);
  std::string error;
  try {
    if (told_to >= 0) FileOperations::TellFrom(told_to);
    const Frame evidence = work(side);
    std::fflush(nullptr);  // what foreign code has printed
    if (BytesOf(evidence) <= kMostBytes) {
      shared.Put(Head::kEvidence, evidence);
      _exit(0);
    }
    error = std::to_string(BytesOf(evidence)) + " bytes of evidence, more than " +
            std::to_string(kMostBytes) + ": record less (--level), or ask a smaller case";
  } catch (const std::exception& thrown) {
    error = thrown.what();
  } catch (...) {
    error = "an exception that is no std::exception";
  }
  shared.Put(Head::kError, {error.empty() ? "an exception without words" : error});
  _exit(0);
}

void Locate(const Progress& progress, EngineProcessEnd* end) {
  const int32_t rank = progress.rank.load();
  const std::string call = TextOf(progress.call);
  end->foreign = !call.empty();
  end->saved = progress.saved.load();
  end->rank = rank >= 0 && rank < kNoRank ? rank : -1;
  end->where = rank < 0 ? "outside of entry calls" : rank < kNoRank ? progress.Where() : call;
}

// Answers false: the process has been ended before an operation on a file.
bool ServeFiles(FileOperations* files, Keeper& keeper, const Progress& progress,
                const EngineProcessOptions& options) {
  if (files == nullptr) return true;
  const bool goes_on = files->Serve([&](const FileOperation& operation) {
    return options.on_file_operation(operation, progress.saves.load());
  });
  if (!goes_on) keeper.Kill();
  return goes_on;
}

// Of one that is stuck: asks it, and waits for the answer; none from one that blocks signals.
void AskForStack(const Keeper& keeper, const LastStack& stack) {
  constexpr int kTries = 100;
  kill(keeper.pid(), StackSignal());
  for (int i = 0; i < kTries && stack.frames.load() == 0; ++i) poll(nullptr, 0, 10);
}

struct WatchEnd {
  std::string why;  // it had to be ended
  bool cut = false;
};

// Waits for the end, or ends it; then end says where it was.
WatchEnd Watch(Keeper& keeper, ProgressWatch& watch, const WatchedState& state,
               FileOperations* files, const EngineProcessOptions& options, EngineProcessEnd* end) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  const Progress& progress = state.progress;
  while (!keeper.Ended()) {
    pollfd over[] = {{keeper.file(), POLLIN, 0},
                     {files == nullptr ? -1 : files->file(), POLLIN, 0}};
    poll(over, 2, 100);
    if (options.waiting) options.waiting();
    if (!ServeFiles(files, keeper, progress, options)) return {"", true};
    if (over[0].revents != 0 || over[1].revents != 0) continue;
    const bool loads = progress.rank.load() == kNoRank;
    std::string why;
    if (std::chrono::duration<double>(Clock::now() - began).count() > options.limit_seconds) {
      why = "not ended after " + SecondsText(options.limit_seconds);
    } else if (watch.Stuck(options.stall_seconds * (loads ? kStallsOfALibrary : 1))) {
      why = "no progress for " + SecondsText(watch.StillSeconds()) +
            ": its code runs, or sleeps, without issuing anything";
    } else {
      continue;
    }
    Locate(progress, end);  // before the signal, which wakes up what sleeps
    AskForStack(keeper, state.stack);
    keeper.Kill();
    return {why, false};
  }
  return {};
}

// How it ended that was not cut.
void Settle(const WatchEnd& watched, const Keeper& keeper,
            const std::shared_ptr<SharedEvidence>& memory, EngineProcessEnd* end) {
  SharedEvidence& shared = *memory;
  const Progress& progress = shared->watched.progress;
  if (watched.why.empty()) {
    Locate(progress, end);
  } else {
    end->hung = true;
    const std::string note = TextOf(progress.note);
    end->death = watched.why + (note.empty() ? "" : ": " + note);
    end->stack = LinesOf(shared->watched.stack, kStackLines);
    return;
  }
  const KeptEnd& kept = keeper.end();
  const uint32_t answer = shared->answer;
  std::optional<FrameView> fields = shared.Get();
  if (!kept.known || kept.status != 0 || answer == Head::kNothing) {
    end->death = DeathText(kept, progress);
    end->stack = LinesOf(shared->watched.stack, kStackLines);
  } else if (!fields || fields->empty() || answer > Head::kError) {
    end->death = "what the process has left as its evidence is not whole";
  } else if (answer == Head::kError) {
    end->error = std::string(fields->front());
  } else {
    end->answered = true;
    end->evidence = std::move(*fields);
    end->memory = memory;
    if (kept.left > 0) end->left = LeftText(kept);
  }
}

}  // namespace

EngineProcessEnd RunInEngineProcess(const EngineProcessOptions& options,
                                    const std::function<Frame(WorkerSide& side)>& work) {
  const auto memory = std::make_shared<SharedEvidence>();
  SharedEvidence& shared = *memory;
  const PrintedFile printed;
  std::optional<FileOperations> files;
  if (options.on_file_operation) files.emplace();
  const int told_to = files ? files->file_of_process() : -1;
  std::vector<int> open_files = {printed.file()};
  if (files) open_files.push_back(told_to);
  Keeper keeper;
  keeper.Start([&] { Work(shared, told_to, printed, work); }, open_files);
  if (files) files->Started();
  ProgressWatch watch(shared->watched);
  watch.Begin(keeper.pid());
  EngineProcessEnd end;
  const WatchEnd watched =
      Watch(keeper, watch, shared->watched, files ? &*files : nullptr, options, &end);
  end.printed = PrintedByRank(printed, shared->watched.progress);
  if (watched.cut) {
    end.cut = true;
    return end;
  }
  Settle(watched, keeper, memory, &end);
  return end;
}

}  // namespace shardproof
