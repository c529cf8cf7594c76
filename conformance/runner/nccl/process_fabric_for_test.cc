#include "conformance/runner/nccl/process_fabric_for_test.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <sstream>
#include <utility>

#include "conformance/common/at.h"
#include "conformance/fabric/arena.h"
#include "conformance/fabric/run_collective.h"
#include "conformance/host/cpu_executor.h"

namespace shardproof {
namespace {

using Clock = std::chrono::steady_clock;

struct Group {
  std::string key;
  std::vector<int32_t> members;
  int64_t next = 0;  // place in its sequence of operations
  int64_t creates = 0, registers = 0;
  int32_t me = 0;
};

// What a member needs to know of another one's operation, and the bytes that it sends.
std::string Pack(const CommOp& op, int32_t me, int32_t members) {
  std::ostringstream text;
  text << op.kind << ' ' << op.dtype << ' ' << op.reduction << ' ' << op.count << ' ' << op.peer;
  for (const std::vector<uint64_t>* counts : {&op.send_counts, &op.recv_counts}) {
    text << ' ' << counts->size();
    for (const uint64_t count : *counts) text << ' ' << count;
  }
  const uint64_t bytes = SendBytes(op, me, members);
  return text.str() + "\n" + std::string(reinterpret_cast<const char*>(op.send), bytes);
}

CommOp Unpack(const std::string& packed, const std::byte** send) {
  std::istringstream text(packed);
  CommOp op;
  text >> op.kind >> op.dtype >> op.reduction >> op.count >> op.peer;
  for (std::vector<uint64_t>* counts : {&op.send_counts, &op.recv_counts}) {
    size_t n = 0;
    text >> n;
    counts->resize(n);
    for (uint64_t& count : *counts) text >> count;
  }
  *send = reinterpret_cast<const std::byte*>(packed.data()) + packed.find('\n') + 1;
  return op;
}

class ProcessFabric : public Fabric {
 public:
  ProcessFabric(Rendezvous& rendezvous, CaseMachineOptions options)
      : rendezvous_(rendezvous),
        options_(std::move(options)),
        arena_(rendezvous.rank(), uint64_t{1} << 30) {}
  int rank() const override { return rendezvous_.rank(); }
  int world() const override { return rendezvous_.size(); }
  bool aborted() const override { return end_.cause != MachineEnd::Cause::kNone; }

  int32_t CreateStream(std::string_view, int) override { return streams_++; }
  void DestroyStream(int32_t) override {}
  spf_status SyncStream(int32_t) override { return Status(); }
  int32_t CreateEvent() override {
    recorded_.push_back(false);
    return static_cast<int32_t>(recorded_.size()) - 1;
  }
  void DestroyEvent(int32_t) override {}
  void Record(int32_t event, int32_t) override { At(recorded_, event) = true; }
  bool Wait(int32_t event, int32_t) override { return At(recorded_, event); }
  spf_status SyncEvent(int32_t event, bool* recorded) override {
    if (recorded != nullptr) *recorded = At(recorded_, event);
    return Status();
  }
  Block Alloc(int32_t stream, uint64_t bytes, bool pinned) override {
    const Block block = arena_.Alloc(stream, bytes, pinned);
    Arena::Poison(block);
    return block;
  }
  void Free(int32_t stream, const Block& block) override {
    arena_.Free(stream, block);
    Arena::Poison(block);
    if (!block.pinned) arena_.FreeExecuted(block.id);
  }
  void Enqueue(int32_t, std::string_view, Body body) override {
    if (!aborted()) body();
  }

  int32_t OpenGroup(std::string_view key, const std::vector<int32_t>& world_ranks) override {
    Group group;
    group.key = key;
    group.members = world_ranks;
    group.me = static_cast<int32_t>(std::find(world_ranks.begin(), world_ranks.end(), rank()) -
                                    world_ranks.begin());
    groups_.push_back(group);
    return static_cast<int32_t>(groups_.size()) - 1;
  }
  spf_status CreateGroup(int32_t parent, const std::vector<int32_t>& world_ranks, int32_t* group,
                         std::string* key) override {
    Group& from = At(groups_, parent);
    const std::string name = from.key + "/" + std::to_string(from.creates++);
    *group = -1;
    if (!Meet("create " + name, from, "")) return SPF_ABORTED;
    if (world_ranks.empty()) return SPF_OK;
    *key = name + "/" + std::to_string(world_ranks.front());
    *group = OpenGroup(*key, world_ranks);
    return SPF_OK;
  }
  spf_status DestroyGroup(int32_t group) override {
    const Group& gone = At(groups_, group);
    return Meet("destroy " + gone.key, gone, "") ? SPF_OK : SPF_ABORTED;
  }
  spf_status RegisterBlock(int32_t group, const Block&) override {
    Group& with = At(groups_, group);
    return Meet("register " + std::to_string(with.registers++) + with.key, with, "") ? SPF_OK
                                                                                     : SPF_ABORTED;
  }
  spf_status DeregisterBlock(int32_t, const Block&) override { return Status(); }

  void Communicate(std::vector<CommOp> ops) override {
    std::vector<int64_t> places;
    for (const CommOp& op : ops) {  // what is sent goes out before anything is awaited
      Group& group = At(groups_, op.group);
      if (aborted()) return;
      if (op.kind == SPF_RECV) {
        places.push_back(received_[{op.group, op.peer}]++);
      } else if (op.kind == SPF_SEND) {
        places.push_back(sent_[{op.group, op.peer}]++);
        rendezvous_.Put(Message(group, group.me, op.peer, places.back()),
                        Pack(op, group.me, Size(group)));
      } else {
        places.push_back(group.next++);
      }
    }
    for (size_t i = 0; i < ops.size(); ++i) Complete(ops[i], places[i]);
  }

  spf_status Drain() override { return Status(); }
  void Fail(std::string_view reason) override {
    if (aborted()) return;
    end_.cause = MachineEnd::Cause::kItself;
    end_.reason = reason;
    end_.reusable = false;
    rendezvous_.Abort(std::string(reason));
  }
  const MachineEnd& end() const { return end_; }

 private:
  static int32_t Size(const Group& group) { return static_cast<int32_t>(group.members.size()); }
  static std::string Message(const Group& group, int32_t from, int32_t to, int64_t place) {
    return "message on " + group.key + " " + std::to_string(from) + " " + std::to_string(to) + " " +
           std::to_string(place);
  }
  spf_status Status() const { return aborted() ? SPF_ABORTED : SPF_OK; }

  GiveUp Watch() {
    return [this, began = Clock::now()] {
      if (options_.waiting) options_.waiting();
      return std::chrono::duration<double>(Clock::now() - began).count() > options_.stall_seconds;
    };
  }
  void Ended(const std::string& what) {
    const auto why = rendezvous_.Aborted();
    end_.cause = why ? MachineEnd::Cause::kTold : MachineEnd::Cause::kHung;
    end_.reason = why ? *why : "rank " + std::to_string(rank()) + " waits for others in " + what;
    end_.pending = what;
    end_.reusable = false;
    rendezvous_.Abort(end_.reason);
  }
  std::optional<std::vector<std::string>> Meet(const std::string& key, const Group& group,
                                               const std::string& mine) {
    if (aborted()) return std::nullopt;
    auto all = AllGather(rendezvous_, key, group.members, mine, Watch());
    if (!all) Ended(key);
    return all;
  }

  void Complete(const CommOp& op, int64_t place) {
    const Group& group = At(groups_, op.group);
    if (aborted() || op.kind == SPF_SEND) return;
    const std::byte* send = nullptr;
    if (op.kind == SPF_RECV) {
      const std::string key = Message(group, op.peer, group.me, place);
      const auto packed = rendezvous_.Get(key, Watch());
      if (!packed) return Ended(op.what);
      const CommOp other = Unpack(*packed, &send);
      std::memcpy(
          op.recv, send,
          std::min(SendBytes(other, op.peer, Size(group)), RecvBytes(op, group.me, Size(group))));
      return;
    }
    const auto all =
        Meet(group.key + " #" + std::to_string(place), group, Pack(op, group.me, Size(group)));
    if (!all) return;
    std::vector<CommOp> ops(all->size());
    std::vector<MemberData> contributions(all->size());
    for (size_t i = 0; i < all->size(); ++i) {
      ops[i] = Unpack((*all)[i], &contributions[i].send);
      contributions[i].op = &ops[i];
      if (static_cast<int32_t>(i) == group.me) contributions[i].op = &op;
      const std::string differs =
          Mismatch(op, group.me, ops[i], static_cast<int32_t>(i), Size(group));
      if (!differs.empty()) end_.mismatches.push_back(group.key + ": " + differs);
    }
    RunCollective(contributions, group.me);
  }

  Rendezvous& rendezvous_;
  CaseMachineOptions options_;
  Arena arena_;
  int32_t streams_ = 0;
  std::vector<bool> recorded_;
  std::vector<Group> groups_;
  std::map<std::pair<int32_t, int32_t>, int64_t> sent_, received_;
  MachineEnd end_;
};

class HookedExecutor : public CpuExecutor {
 public:
  explicit HookedExecutor(std::function<void()> hook) : hook_(std::move(hook)) {}
  void Compute(int32_t stream, const Model& model, const NodeArgs& args, ModelRank rank) override {
    hook_();
    CpuExecutor::Compute(stream, model, args, rank);
  }

 private:
  std::function<void()> hook_;
};

class ProcessCase : public CaseMachine {
 public:
  ProcessCase(Rendezvous& rendezvous, const CaseMachineOptions& options,
              std::function<void()> on_compute)
      : fabric_(rendezvous, options), on_compute_(std::move(on_compute)) {}
  Fabric& fabric() override { return fabric_; }
  std::shared_ptr<Executor> MakeExecutor() override {
    return std::make_shared<HookedExecutor>(on_compute_);
  }
  MachineEnd End() override { return fabric_.end(); }
  int32_t Stamp(int32_t) override {
    stamps_.push_back(Clock::now());
    return static_cast<int32_t>(stamps_.size()) - 1;
  }
  double MillisecondsBetween(int32_t from, int32_t to) override {
    return std::chrono::duration<double, std::milli>(stamps_.at(static_cast<size_t>(to)) -
                                                     stamps_.at(static_cast<size_t>(from)))
        .count();
  }

 private:
  ProcessFabric fabric_;
  std::function<void()> on_compute_;
  std::vector<Clock::time_point> stamps_;
};

class ProcessMachine : public RankMachine {
 public:
  ProcessMachine(const RankMachineOptions& options, const ProcessHooks& hooks)
      : options_(options), hooks_(hooks) {}
  std::vector<std::string> Facts() override {
    return {"device: none, products by " + options_.gemm +
            " on paper; local ranks: " + std::to_string(options_.local_ranks)};
  }
  std::unique_ptr<CaseMachine> Begin(Rendezvous& rendezvous,
                                     const CaseMachineOptions& options) override {
    return std::make_unique<ProcessCase>(rendezvous, options, [this, nth = cases_++] {
      if (hooks_.on_compute) hooks_.on_compute(options_.rank, nth);
    });
  }

 private:
  RankMachineOptions options_;
  ProcessHooks hooks_;
  int cases_ = 0;
};

}  // namespace

NcclKit ProcessKitForTest(ProcessHooks hooks) {
  NcclKit kit;
  kit.open = [hooks](const RankMachineOptions& options) {
    if (hooks.on_open) hooks.on_open(options);
    return std::make_unique<ProcessMachine>(options, hooks);
  };
  return kit;
}

}  // namespace shardproof
