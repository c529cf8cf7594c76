// engine_process.h: how does foreign code run so that nothing but evidence comes out?
//
// It runs in a forked process, once, and hands back bytes through memory that is shared with the
// one that asked. That process has no file of ours (fabric/process/keeper.h), so nothing that it
// writes or closes reaches a verdict; who asked reads the bytes when the process and all that it
// has started are gone. What it can still do: overwrite memory of its own process, where the
// evidence is recorded.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/fabric/process/file_operations.h"
#include "conformance/runner/workers/worker.h"

namespace shardproof {

// Stands in Progress::rank while code runs that belongs to no rank: a library that is loaded.
inline constexpr int32_t kNoRank = INT32_MAX;

struct EngineProcessOptions {
  double stall_seconds = 5;       // as of ProgressWatch
  double limit_seconds = 600;     // of one run, whatever the progress
  std::function<void()> waiting;  // called again and again; may be null
  // Of each operation on a file that the process is about to make, and how many saves it has begun
  // by then: whether it is made. If not, the process is ended before it. Null: nobody looks.
  std::function<bool(const FileOperation& operation, int32_t saves)> on_file_operation;
};

// How it ended.
struct EngineProcessEnd {
  bool answered = false;  // evidence is what the work returned; the rest says nothing
  FrameView evidence;     // lies in memory
  std::shared_ptr<const void> memory = nullptr;
  std::string error;                    // what the work threw; empty: it did not
  bool cut = false;                     // on_file_operation ended it; what follows is empty
  bool hung = false;                    // otherwise it left, or was ended by a signal
  bool foreign = false;                 // foreign code had been entered: the end is the engine's
  std::string death;                    // "ended by SIGSEGV (Segmentation fault): address 0x8"
  int32_t saved = 0;                    // calls of save that had returned
  int rank = -1;                        // whose engine code ran; -1: none, or of the whole process
  std::string where;                    // "train_step 1, after communicate", "loading the library"
  std::vector<std::string> stack = {};  // where it was then, the innermost function first
  // What it printed, by rank; -1: while no rank's code ran. Of a run that was cut too.
  std::map<int32_t, std::string> printed = {};
  std::string left;  // "a process (sleep)"; empty: it has left nothing behind
};

// Runs work in a process of its own and waits for its end. Throws std::runtime_error if there can
// be none. REQUIRES: work sets Progress before it calls foreign code.
EngineProcessEnd RunInEngineProcess(const EngineProcessOptions& options,
                                    const std::function<Frame(WorkerSide& side)>& work);

}  // namespace shardproof
