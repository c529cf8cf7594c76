#include <stdexcept>
#include <utility>

#include "conformance/fabric/sim/world.h"

namespace shardproof {
namespace {

std::string Text(const std::vector<int32_t>& ranks) {
  std::string text;
  for (const int32_t rank : ranks) text += (text.empty() ? "[" : " ") + std::to_string(rank);
  return text.empty() ? "[]" : text + "]";
}

class SimFabric : public Fabric {
 public:
  SimFabric(World* world, int32_t rank) : world_(world), index_(rank) {}

  int rank() const override { return index_; }
  int world() const override { return world_->size(); }
  bool aborted() const override { return world_->aborted(); }

  int32_t CreateStream(std::string_view name, int) override { return device().CreateStream(name); }
  void DestroyStream(int32_t stream) override { device().DestroyStream(stream); }
  spf_status SyncStream(int32_t stream) override {
    HostWait wait;
    wait.entry = device().LastOn(stream);
    wait.what = "stream_sync of " + device().StreamName(stream);
    return world_->BlockHost(index_, std::move(wait));
  }

  int32_t CreateEvent() override { return device().CreateEvent(); }
  void DestroyEvent(int32_t event) override { device().DestroyEvent(event); }
  void Record(int32_t event, int32_t stream) override {
    if (aborted()) return;
    device().AddRecord(event, stream);
    world_->Issued(index_);
  }
  bool Wait(int32_t event, int32_t stream) override {
    const bool recorded = device().LatestRecord(event) >= 0;
    if (aborted() || !recorded) return recorded;
    device().AddWait(event, stream);
    world_->Issued(index_);
    return true;
  }
  spf_status SyncEvent(int32_t event, bool* recorded) override {
    HostWait wait;
    wait.entry = device().LatestRecord(event);
    wait.what = "event_sync of event " + std::to_string(event);
    if (recorded) *recorded = wait.entry >= 0;
    return world_->BlockHost(index_, std::move(wait));
  }

  Block Alloc(int32_t stream, uint64_t bytes, bool pinned) override {
    Block block;
    try {
      block = arena().Alloc(stream, bytes, pinned);
    } catch (const std::runtime_error& error) {
      Fail(error.what());  // nothing runs any more, so nobody uses the empty block
      return block;
    }
    if (pinned) {
      Arena::Poison(block);
    } else {
      Enqueue(stream, "alloc of block " + std::to_string(block.id),
              [block] { Arena::Poison(block); });
    }
    return block;
  }
  void Free(int32_t stream, const Block& block) override {
    if (block.id < 0) return;
    arena().Free(stream, block);
    if (block.pinned) return Arena::Poison(block);
    if (aborted()) return arena().FreeExecuted(block.id);
    Enqueue(stream, "free of block " + std::to_string(block.id), [this, block] {
      Arena::Poison(block);
      arena().FreeExecuted(block.id);
    });
  }

  void Enqueue(int32_t stream, std::string_view what, Body body) override {
    if (aborted()) return;
    device().AddLocal(stream, what, std::move(body));
    world_->Issued(index_);
  }

  int32_t OpenGroup(std::string_view key, const std::vector<int32_t>& world_ranks) override {
    Comm* comm = world_->FindComm(key, world_ranks, index_);
    for (size_t id = 0; id < me().comms.size(); ++id) {
      // Two names for one communicator.
      if (me().comms[id] == comm) return static_cast<int32_t>(id);
    }
    me().comms.push_back(comm);
    return device().AddGroup(comm->key(), world_ranks);
  }
  spf_status CreateGroup(int32_t parent, const std::vector<int32_t>& world_ranks, int32_t* group,
                         std::string* key) override;
  spf_status DestroyGroup(int32_t group) override;
  spf_status RegisterBlock(int32_t group, const Block& block) override;
  spf_status DeregisterBlock(int32_t group, const Block& block) override;

  void Communicate(std::vector<CommOp> ops) override {
    if (aborted() || ops.empty()) return;
    device().AddGroupCall(std::move(ops));
    world_->Issued(index_);
  }

  spf_status Drain() override {
    HostWait wait;
    wait.drained = true;
    wait.what = "all its device work";
    return world_->BlockHost(index_, std::move(wait));
  }
  void Fail(std::string_view reason) override { world_->Fail(index_, reason); }

 private:
  // Tells the members that this rank has come to its place-th call of the kind, and waits for them.
  spf_status Meet(const Comm& comm, HostMeeting& all, std::string what);
  spf_status AwaitWorkOn(int32_t group, std::string_view call);

  Rank& me() const { return world_->rank(index_); }
  Device& device() const { return me().device; }
  Arena& arena() const { return me().arena; }

  World* world_;
  int32_t index_;
};

spf_status SimFabric::Meet(const Comm& comm, HostMeeting& all, std::string what) {
  ++all.arrived;
  world_->Arrived(all, comm.members());
  HostWait wait;
  wait.all = &all;
  wait.members = static_cast<int32_t>(comm.members().size());
  wait.what = std::move(what);
  return world_->BlockHost(index_, std::move(wait));
}

spf_status SimFabric::AwaitWorkOn(int32_t group, std::string_view call) {
  HostWait work;
  work.entry = device().LastKernel(group);
  work.what = std::string(call) + " of " + device().group(group).key + ", for the work on it";
  return world_->BlockHost(index_, std::move(work));
}

spf_status SimFabric::CreateGroup(int32_t parent, const std::vector<int32_t>& world_ranks,
                                  int32_t* group, std::string* key) {
  *group = -1;
  key->clear();
  if (aborted()) return SPF_ABORTED;
  Comm* comm = me().comms[static_cast<size_t>(parent)];
  const auto member = static_cast<size_t>(device().group(parent).me);
  const int64_t call = comm->creates.Next(device().group(parent).me);
  HostMeeting& all = comm->creates.meetings[call];
  all.lists.resize(comm->members().size());
  all.lists[member] = world_ranks;
  const spf_status status =
      Meet(*comm, all, "group_create #" + std::to_string(call) + " on " + comm->key());
  if (status != SPF_OK || world_ranks.empty()) return status;
  // The members of my list must have given the same one; otherwise I am alone with it.
  std::string name =
      comm->key() + "/" + std::to_string(call) + "/" + std::to_string(world_ranks.front());
  for (size_t i = 0; i < all.lists.size(); ++i) {
    const int32_t other = comm->members()[i];
    bool listed = false;
    for (const int32_t rank : world_ranks) listed = listed || rank == other;
    if (!listed || all.lists[i] == world_ranks) continue;
    world_->Mismatch("group_create #" + std::to_string(call) + " on " + comm->key() + ": rank " +
                     std::to_string(index_) + " lists " + Text(world_ranks) + ", rank " +
                     std::to_string(other) + " lists " + Text(all.lists[i]));
    if (name.find('!') == std::string::npos) name += "!" + std::to_string(index_);
  }
  *group = OpenGroup(name, world_ranks);
  *key = device().group(*group).key;
  return SPF_OK;
}

spf_status SimFabric::DestroyGroup(int32_t group) {
  if (aborted()) return SPF_ABORTED;
  Comm* comm = me().comms[static_cast<size_t>(group)];
  const spf_status status = AwaitWorkOn(group, "group_destroy");
  if (status != SPF_OK) return status;
  const int64_t call = comm->destroys.Next(device().group(group).me);
  return Meet(*comm, comm->destroys.meetings[call], "group_destroy of " + comm->key());
}

spf_status SimFabric::RegisterBlock(int32_t group, const Block&) {
  if (aborted()) return SPF_ABORTED;
  Comm* comm = me().comms[static_cast<size_t>(group)];
  const int64_t call = comm->registers.Next(device().group(group).me);
  return Meet(*comm, comm->registers.meetings[call],
              "group_register #" + std::to_string(call) + " on " + comm->key());
}

spf_status SimFabric::DeregisterBlock(int32_t group, const Block&) {
  return aborted() ? SPF_ABORTED : AwaitWorkOn(group, "group_deregister");
}

}  // namespace

std::unique_ptr<Fabric> MakeSimFabric(World* world, int32_t rank) {
  return std::make_unique<SimFabric>(world, rank);
}

}  // namespace shardproof
