#include "conformance/fabric/sim/world.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "conformance/fabric/in_device_work.h"

namespace shardproof {
namespace {

void Fold(uint64_t* hash, uint64_t value) { *hash = (*hash ^ value) * 0x100000001B3u; }

}  // namespace

World::World(int world, const SimOptions& options, const std::function<void(Fabric&)>& rank_main)
    : options_(options), chooser_(options, world) {
  const auto count = static_cast<size_t>(world);
  result_.timing_hash = 0xCBF29CE484222325u;
  result_.blocked.resize(count);
  result_.errors.resize(count);
  result_.threw.resize(count);
  enabled(ActionKind::kHost).reserve(count);  // one a rank: Abort needs no memory
  for (int32_t index = 0; index < world; ++index) {
    ranks_.push_back(std::make_unique<Rank>(index, options_));
    Rank& rank = *ranks_.back();
    rank.fabric = MakeSimFabric(this, index);
    rank.fiber = std::make_unique<Fiber>(options_.stack_bytes,
                                         [this, index, &rank_main] { HostMain(index, rank_main); });
    Enable(ActionKind::kHost, index, -1);
  }
}

World::~World() = default;

void World::HostMain(int32_t rank, const std::function<void(Fabric&)>& rank_main) {
  std::string error;
  try {
    rank_main(*this->rank(rank).fabric);
    return;
  } catch (const std::exception& exception) {
    error = exception.what();
  } catch (const char* text) {
    error = text;
  } catch (...) {
    error = "threw something that is not a std::exception";
  }
  std::string& slot = result_.errors[static_cast<size_t>(rank)];
  if (aborted_) return;  // a consequence
  if (slot.empty()) slot = error.empty() ? "threw an exception without text" : error;
}

SimResult World::Run() {
  try {
    do {
      while (AnythingEnabled()) Step();
    } while (Stuck());
  } catch (...) {
    EndHosts();
    throw;
  }
  for (const auto& rank : ranks_) result_.live_blocks.push_back(rank->arena.live_blocks());
  return std::move(result_);
}

// The simulation itself has failed. What stands on the stacks of the hosts refers to this world, so
// they come to their ends before it goes: after an abort no call waits.
void World::EndHosts() {
  aborted_ = result_.aborted = true;
  for (auto& actions : enabled_) actions.clear();
  for (const auto& rank : ranks_) rank->device.Abandon();
  for (const auto& rank : ranks_) {
    while (!rank->fiber->done()) rank->fiber->Resume();
  }
}

bool World::AnythingEnabled() const {
  return std::any_of(enabled_.begin(), enabled_.end(),
                     [](const auto& actions) { return !actions.empty(); });
}

void World::Enable(ActionKind kind, int32_t rank, EntryId entry) {
  Action action;
  action.kind = kind;
  action.rank = rank;
  action.entry = entry;
  if (entry >= 0) action.stream = this->rank(rank).device.entry(entry).streams.front();
  enabled(kind).push_back(action);
}

void World::Step() {
  Action action;
  if (options_.policy != TimingPolicy::kLazyComm || !TakeNeededFinish(&action))
    action = chooser_.Take(&enabled_);
  ++result_.timing_steps;
  Fold(&result_.timing_hash, static_cast<uint64_t>(action.kind));
  Fold(&result_.timing_hash, static_cast<uint64_t>(action.rank));
  Fold(&result_.timing_hash, static_cast<uint64_t>(action.entry));
  switch (action.kind) {
    case ActionKind::kHost:
      return RunHost(action.rank);
    case ActionKind::kLocal:
      RunLocal(action.rank, action.entry);
      break;
    case ActionKind::kStart:
      StartKernel(action.rank, action.entry);
      break;
    case ActionKind::kFinish:
      FinishKernel(action.rank, action.entry);
      break;
  }
  if (options_.on_device_step) options_.on_device_step();
}

void World::RunHost(int32_t index) {
  Rank& rank = this->rank(index);
  rank.host = HostState::kRunnable;
  rank.fiber->Resume();
  if (rank.fiber->done()) {
    rank.host = HostState::kDone;
  } else if (rank.host == HostState::kRunnable) {
    Enable(ActionKind::kHost, index, -1);
  }
}

void World::RunLocal(int32_t index, EntryId entry) {
  Device& device = rank(index).device;
  try {
    device.Start(entry).body();
  } catch (const EngineThrew& threw) {
    result_.threw[static_cast<size_t>(index)] = threw.what();
    Fail(index, threw.what());
  }
  device.Complete(entry);
  Pump(index);
}

void World::StartKernel(int32_t index, EntryId id) {
  Rank& rank = this->rank(index);
  Entry& entry = rank.device.Start(id);
  Comm* comm = rank.comms[static_cast<size_t>(entry.group)];
  const int32_t me = rank.device.group(entry.group).me;
  rank.unready[id] = static_cast<int32_t>(entry.ops.size());
  for (size_t i = 0; i < entry.ops.size(); ++i) {
    comm->Start({index, id}, me, entry.ops[i], entry.positions[i], chooser_.ReadsEarly());
  }
  if (options_.queues > 0) Pump(index);  // the next one in its hardware queue may start
}

void World::PartReady(KernelId kernel) {
  if (--rank(kernel.rank).unready.at(kernel.entry) == 0)
    Enable(ActionKind::kFinish, kernel.rank, kernel.entry);
}

void World::FinishKernel(int32_t index, EntryId id) {
  Rank& rank = this->rank(index);
  const Entry& entry = rank.device.entry(id);
  Comm* comm = rank.comms[static_cast<size_t>(entry.group)];
  const int32_t me = rank.device.group(entry.group).me;
  for (size_t i = 0; i < entry.ops.size(); ++i) comm->Keep(me, entry.ops[i], entry.positions[i]);
  for (size_t i = 0; i < entry.ops.size(); ++i) comm->Finish(me, entry.ops[i], entry.positions[i]);
  rank.unready.erase(id);
  rank.device.Complete(id);
  Pump(index);
}

void World::Pump(int32_t index) {
  Device& device = rank(index).device;
  for (auto ready = device.TakeNewlyReady(); !ready.empty(); ready = device.TakeNewlyReady()) {
    for (const EntryId id : ready) {
      const EntryKind kind = device.entry(id).kind;
      if (kind == EntryKind::kLocal) {
        Enable(ActionKind::kLocal, index, id);
      } else if (kind == EntryKind::kKernel) {
        Enable(ActionKind::kStart, index, id);
      } else {
        // Records and waits take no time: delaying them is delaying what depends on them.
        device.Start(id);
        device.Complete(id);
      }
    }
  }
  WakeHost(index);
}

bool World::Satisfied(const Rank& rank) const {
  const HostWait& wait = rank.wait;
  return rank.device.Done(wait.entry) && (!wait.drained || rank.device.pending() == 0) &&
         (!wait.all || wait.all->arrived == wait.members);
}

void World::WakeHost(int32_t index) {
  Rank& rank = this->rank(index);
  if (rank.host != HostState::kBlocked || !(aborted_ || Satisfied(rank))) return;
  rank.host = HostState::kRunnable;
  Enable(ActionKind::kHost, index, -1);
}

void World::Issued(int32_t index) {
  Pump(index);
  if (chooser_.preempts() && !aborted_) rank(index).fiber->Yield();
}

spf_status World::BlockHost(int32_t index, HostWait wait) {
  Rank& rank = this->rank(index);
  if (chooser_.preempts() && !aborted_) rank.fiber->Yield();
  rank.wait = std::move(wait);
  if (!aborted_ && !Satisfied(rank)) {
    rank.host = HostState::kBlocked;
    rank.needed.clear();
    rank.fiber->Yield();
  }
  rank.wait = HostWait{};
  return aborted_ ? SPF_ABORTED : SPF_OK;
}

void World::Arrived(const HostMeeting& all, const std::vector<int32_t>& world_ranks) {
  if (all.arrived < static_cast<int32_t>(world_ranks.size())) return;
  for (const int32_t index : world_ranks) WakeHost(index);
}

Comm* World::FindComm(std::string_view key, const std::vector<int32_t>& world_ranks,
                      int32_t index) {
  const auto found = comms_.find(key);
  if (found != comms_.end() && found->second->members() == world_ranks) return found->second.get();
  std::string name(key);
  if (found != comms_.end()) {
    Mismatch("communicator " + name + ": rank " + std::to_string(index) +
             " gives other members than who opened it first");
    name += "!" + std::to_string(index) + "." + std::to_string(comms_.size());
  }
  auto comm = std::make_unique<Comm>(
      name, world_ranks, chooser_.minimal_waits(), [this](KernelId kernel) { PartReady(kernel); },
      [this](std::string text) { Mismatch(std::move(text)); });
  return comms_.emplace(std::move(name), std::move(comm)).first->second.get();
}

void World::Mismatch(std::string text) {
  if (result_.mismatches.size() < 64) result_.mismatches.push_back(std::move(text));
}

void World::Fail(int32_t index, std::string_view reason) {
  Abort();
  std::string& slot = result_.errors[static_cast<size_t>(index)];
  if (slot.empty()) slot = reason.empty() ? "failed without a reason" : std::string(reason);
}

// Under kLazyComm, of the communications that may complete, one that a blocked host waits for goes
// first: completing another one could hide that nobody waits for it.
bool World::TakeNeededFinish(Action* action) {
  auto& finishes = enabled(ActionKind::kFinish);
  if (!enabled(ActionKind::kHost).empty() || !enabled(ActionKind::kLocal).empty() ||
      !enabled(ActionKind::kStart).empty() || finishes.size() < 2) {
    return false;
  }
  const size_t first = chooser_.random().Below(ranks_.size());
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const auto index = static_cast<int32_t>((first + i) % ranks_.size());
    const EntryId entry = NeededFinish(&rank(index));
    if (entry < 0) continue;
    const auto found = std::find_if(finishes.begin(), finishes.end(), [&](const Action& finish) {
      return finish.rank == index && finish.entry == entry;
    });
    *action = *found;
    finishes.erase(found);
    return true;
  }
  return false;
}

// A kernel of rank that may complete and that its blocked host waits for, directly or not; -1:
// none.
EntryId World::NeededFinish(Rank* rank) {
  if (rank->host != HostState::kBlocked) return -1;
  if (rank->needed.empty()) FindNeeded(rank);
  for (const auto& [entry, unready] : rank->unready) {
    if (unready != 0) continue;
    if (std::binary_search(rank->needed.begin(), rank->needed.end(), entry)) return entry;
  }
  return -1;
}

// What must complete before the blocked host goes on. Fixed when it blocks: nothing is issued
// meanwhile.
void World::FindNeeded(Rank* rank) {
  std::vector<EntryId> awaited;
  if (rank->wait.drained) awaited = rank->device.Fronts();
  awaited.push_back(rank->wait.entry);
  rank->needed = rank->device.CompletesFirst(awaited);
}

bool World::Stuck() {
  if (aborted_) return false;
  bool unfinished = false, failed = false;
  for (const auto& rank : ranks_)
    unfinished = unfinished || rank->host != HostState::kDone || rank->device.pending() > 0;
  if (!unfinished) return false;
  for (const std::string& error : result_.errors) failed = failed || !error.empty();
  for (size_t index = 0; index < ranks_.size(); ++index) {
    result_.blocked[index] = DescribeBlocked(this, static_cast<int32_t>(index));
  }
  result_.deadlock = !failed;
  Abort();
  return true;
}

void World::Abort() {
  if (aborted_) return;
  aborted_ = result_.aborted = true;
  std::vector<Action> hosts = std::move(enabled(ActionKind::kHost));
  for (auto& actions : enabled_) actions.clear();
  enabled(ActionKind::kHost) = std::move(hosts);
  for (size_t index = 0; index < ranks_.size(); ++index) {
    ranks_[index]->device.Abandon();
    WakeHost(static_cast<int32_t>(index));
  }
}

}  // namespace shardproof
