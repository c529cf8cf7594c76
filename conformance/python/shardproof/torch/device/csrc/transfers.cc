#include "transfers.h"

#include <Python.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

#include "memory.h"
#include "recorder.h"

namespace shardproof::device {
namespace {

struct State {
  std::mutex mutex;  // taken after the recorder, never before
  std::condition_variable changed;
  Flights flights;  // open
  int64_t next_flight = 0;
  std::map<int64_t, Block*> blocks;       // in flight, by id
  std::map<int64_t, std::string> errors;  // blocks whose bytes never came
  std::string stopped;                    // why no wait goes on
  std::atomic<int64_t> busy{0};           // blocks in flight or with an error
};
State& TheState() {
  static auto* state = new State;
  return *state;
}

// Waits without Python's lock; answers under the state's lock whatever `done` saw.
template <typename Done>
void Wait(const Done& done) {
  State& state = TheState();
  PyThreadState* python = Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr;
  std::string stopped;
  {
    std::unique_lock lock(state.mutex);
    state.changed.wait(lock, [&] { return done(state) || !state.stopped.empty(); });
    if (!done(state)) stopped = state.stopped;
  }
  if (python != nullptr) PyEval_RestoreThread(python);
  TORCH_CHECK(stopped.empty(), stopped);
}

// The block's id if somebody has to wait for it, else -1.
int64_t BlockToWaitFor(const void* address) {
  Hold hold;
  const Block* block = FindBlock(address);
  if (block == nullptr) return -1;
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  return block->in_flight > 0 || state.errors.count(block->id) > 0 ? block->id : -1;
}

bool NoneOpen(const State& state, const Flights& flights) {
  for (const int64_t flight : flights) {
    if (state.flights.count(flight) > 0) return false;
  }
  return true;
}

}  // namespace

int64_t BeginFlight() {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  state.flights.insert(state.next_flight);
  return state.next_flight++;
}

void EndFlight(int64_t flight) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  state.flights.erase(flight);
  state.changed.notify_all();
}

Flights StillOpen(Flights* flights) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  for (auto it = flights->begin(); it != flights->end();) {
    it = state.flights.count(*it) > 0 ? std::next(it) : flights->erase(it);
  }
  return *flights;
}

bool AreDone(const Flights& flights) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  return NoneOpen(state, flights);
}

void WaitForFlights(const Flights& flights) {
  if (flights.empty() || AreDone(flights)) return;
  Wait([&](const State& state) { return NoneOpen(state, flights); });
}

int64_t BeginTransfer(const void* address) {
  Hold hold;
  Block* block = FindBlock(address);
  if (block == nullptr) return -1;
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  if (block->in_flight++ == 0) {
    state.blocks[block->id] = block;
    ++state.busy;
  }
  return block->id;
}

void EndTransfer(int64_t id, const std::string& error) {
  if (id < 0) return;
  Hold hold;
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  Block* block = state.blocks.at(id);
  if (!error.empty() && state.errors.emplace(id, error).second) ++state.busy;
  if (--block->in_flight == 0) {
    state.blocks.erase(id);
    --state.busy;
    FreeIfDropped(block);
  }
  state.changed.notify_all();
}

void WaitForTransfers(const void* address) {
  if (TheState().busy == 0) return;
  const int64_t id = BlockToWaitFor(address);
  if (id < 0) return;
  std::string error;
  Wait([&](const State& state) {
    const auto found = state.errors.find(id);
    if (found != state.errors.end()) error = found->second;
    return state.blocks.count(id) == 0;
  });
  TORCH_CHECK(error.empty(), error);
}

void StopWaits(const std::string& why) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  state.stopped = why;
  state.changed.notify_all();
}

}  // namespace shardproof::device
