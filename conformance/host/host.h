// host.h: what stands behind the spf_host that an engine is given?
//
// The front end of one engine instance on one rank, the same for every fabric: it knows handles,
// live memory and the model, refuses what is wrong under every timing, records what happened, and
// hands valid operations to the fabric.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/fabric/fabric.h"
#include "conformance/host/executor.h"
#include "conformance/host/memory_map.h"
#include "conformance/host/progress.h"
#include "conformance/model/model.h"
#include "conformance/trace/recorder.h"

namespace shardproof {

struct HostConfig {
  struct NamedGroup {
    std::string name;
    std::string key;  // world-unique
    std::vector<int32_t> world_ranks;
  };
  int instance = 0;
  std::map<std::string, std::string> knobs;
  const Model* model = nullptr;  // outlives the host
  ModelRank model_rank;          // whose experts, which pipeline stages, which shards
  // Of microbatches whose loss is another pipeline rank's: their scale is not seen here.
  double loss_scale = 1;
  int32_t data_ranks = 1;  // size of dp_cp
  int32_t data_rank = 0;   // index in dp_cp; -1 outside the grid
  int32_t microbatches = 1;
  std::vector<NamedGroup> groups;    // those that this rank is a member of, "world" included
  uint64_t device_memory_bytes = 0;  // 0: most_bytes
  // Of live memory of one engine on a rank, device and pinned memory each: more is answered
  // SPF_NO_MEMORY, on every fabric at the same call.
  uint64_t most_bytes = uint64_t{1} << 28;
  // This allocation of device memory, counted from 0, is answered SPF_NO_MEMORY; -1: none is.
  int64_t no_memory_at = -1;
  Progress* progress = nullptr;        // may be null; outlives the host
  std::shared_ptr<Executor> executor;  // of this rank; null: a CpuExecutor
};

class Host {
 public:
  Host(HostConfig config, Fabric& fabric, Recorder& recorder);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  spf_host* table() { return &table_; }

  // Brackets every entry call into the engine.
  void BeginCall(std::string_view what, int64_t step);
  // status: the number that it answered, an spf_status or not.
  void EndCall(int status);

  // "more than 24500 host calls in train_step 1", or "": the engine goes on and on.
  const std::string& runaway() const { return runaway_; }
  // What went wrong in the suite's own code during a host call, or "": no fault of the engine.
  const std::string& broken() const { return broken_; }
  int refusals() const { return refusals_; }
  // Whether a host call of this engine was answered SPF_ABORTED.
  bool answered_aborted() const { return answered_aborted_; }
  const std::string& first_refusal() const { return first_refusal_; }
  const std::string& explanation() const { return explanation_; }
  int64_t collectives() const { return collectives_; }
  // Knobs that are set and were not asked for so far.
  std::vector<std::string> UnreadKnobs() const;

 private:
  struct Table : spf_host {
    Host* owner = nullptr;
  };
  struct StreamHandle {
    int32_t id = -1;
    bool alive = true;
    std::string name;
  };
  struct EventHandle {
    int32_t id = -1;
    bool alive = true;
  };
  struct GroupHandle {
    std::string key;  // world-unique
    int32_t fabric_id = -1;
    int32_t local_id = -1;  // in the trace
    bool alive = true;
    std::string name;
    int32_t rank = -1;
    std::vector<int32_t> world_ranks;
    std::set<int32_t> registered;  // blocks
  };
  enum class Family { kNormal, kCleanup };  // kCleanup: answers SPF_OK after an abort

  // Runs one host call: refuses calls from elsewhere, answers SPF_ABORTED after an abort, turns
  // Refusal into SPF_REFUSED plus an event. No other exception of the suite passes through an
  // engine either, which could take it for its own: it ends the run.
  template <class F>
  static spf_status Enter(spf_host* h, const char* call, Family family, F&& body);
  spf_status Refuse(const char* call, const std::string& why, Breaks breaks = Breaks::kNothing);
  spf_status Break(const char* call, const char* why);
  bool CallerIsForeign(const char* call);
  std::string Where() const;
  void Beat(const char* call);
  void Note(const char* call);
  bool RunsAway();
  // host_table.cc
  void FillTable();
  void FillFacts();
  void FillGroups();
  void FillStreams();
  void FillMemory();
  void FillWork();
  void FillValues();

  // handles: each answers the live object or refuses
  StreamHandle& Stream(spf_stream stream, const char* what);
  EventHandle& EventOf(spf_event event);
  GroupHandle& Group(spf_group group, const char* what);
  spf_group AddGroup(const std::string& name, const std::string& key, int32_t fabric_id,
                     const std::vector<int32_t>& world_ranks);

  Event& Add(EventKind kind);

  // host calls, by file: host_groups.cc, host_streams.cc, host_memory.cc, host_collective.cc,
  // host_compute.cc, host_launch.cc, host.cc
  spf_group FindGroup(const char* name);
  spf_status CreateGroup(spf_group parent, const char* name, int32_t n, const int32_t* ranks,
                         spf_group* out);
  spf_status GroupInfoOf(spf_group group, int32_t* rank, int32_t* n, const int32_t** world_ranks);
  spf_status DestroyGroup(spf_group group);
  spf_status RegisterBlock(spf_group group, spf_addr address);
  spf_status DeregisterBlock(spf_group group, spf_addr address);
  spf_status CreateStream(const char* name, int32_t priority, spf_stream* out);
  spf_status DestroyStream(spf_stream stream);
  spf_status SyncStream(spf_stream stream);
  spf_status CreateEvent(spf_event* out);
  spf_status DestroyEvent(spf_event event);
  spf_status RecordEvent(spf_event event, spf_stream stream);
  spf_status WaitEvent(spf_event event, spf_stream stream);
  spf_status SyncEvent(spf_event event);
  spf_status Alloc(spf_stream stream, uint64_t bytes, spf_place place, spf_label label,
                   spf_addr* out);
  spf_status Free(spf_stream stream, spf_addr address);
  spf_status Copy(spf_stream stream, spf_addr to, spf_addr from, uint64_t bytes);
  spf_status HostAccess(spf_addr address, uint64_t bytes, spf_access access, void** out);
  spf_status Communicate(int32_t n, const spf_collective* ops);
  spf_status Compute(spf_stream stream, const spf_compute& compute);
  spf_status Launch(spf_stream stream, const spf_launch& launch);
  spf_status Init(spf_stream stream, int32_t param, int64_t offset, int64_t count, spf_dtype dtype,
                  spf_addr to);
  spf_status Publish(spf_stream stream, spf_result what, int32_t id, int64_t offset, int64_t count,
                     spf_dtype dtype, spf_addr from);
  spf_status Mark(spf_hook hook, int32_t module, int32_t microbatch);

  // host.cc: a label is an engine's own word, but it names what there is
  void CheckLabel(const spf_label& label, const std::string& what) const;
  // host_memory.cc: elements of a dtype inside one live block, aligned to it
  Resolved ResolveElements(spf_addr address, uint64_t count, int32_t dtype, uint8_t access,
                           const std::string& what) const;

  // host_collective.cc
  struct CheckedOp;
  CheckedOp CheckOp(const spf_collective& op, const std::string& what);
  void CheckFields(const spf_collective& op, const GroupHandle& group,
                   const std::string& what) const;
  std::string ForWhat(const spf_label& label) const;
  // host_compute.cc
  struct ComputePlan;
  const spf_node& ComputedNode(const spf_compute& compute);
  void CheckPhase(const spf_compute& compute, const spf_node& node) const;
  void CheckSampleAndDtype(const spf_compute& compute, const spf_node& node) const;
  void AddComputeRow(const spf_compute& compute, const spf_node& node, ComputePlan& plan);
  void ResolveUses(const spf_compute& compute, const spf_node& node, ComputePlan& plan);
  Resolved ResolveUse(const spf_compute& compute, const spf_use& use, ComputePlan& plan) const;
  int64_t RowsOf(const spf_compute& compute, int32_t value) const;
  bool IsRouter(const spf_node& node) const;
  void SetScales(const spf_compute& compute, const spf_node& node, NodeArgs* args);
  const spf_program& ProgramOf(int64_t step, int32_t microbatch) const;
  bool InProgram(int32_t node, int32_t microbatch);
  // host_launch.cc
  void CheckMayInit() const;
  spf_status LaunchCustom(int32_t stream, const spf_launch& launch, std::vector<SpanData> spans);

  HostConfig config_;
  Fabric& fabric_;
  Recorder& recorder_;
  const Model& model_;
  Table table_{};
  MemoryMap memory_;
  size_t blocks_made_ = 0;
  int64_t device_allocations_ = 0;  // asked for
  std::deque<StreamHandle> streams_;
  std::deque<EventHandle> events_;
  std::deque<GroupHandle> groups_;
  std::unordered_set<const void*> known_streams_, known_events_, known_groups_;
  std::map<std::string, spf_group, std::less<>> named_;
  std::set<std::string> read_knobs_;

  std::thread::id thread_;
  // The thread that is inside a spf_launch.fn, if any. Shared with enqueued bodies, which may
  // outlive the host.
  std::shared_ptr<std::atomic<std::thread::id>> custom_thread_ =
      std::make_shared<std::atomic<std::thread::id>>();
  std::mutex foreign_mutex_;
  // From other threads, recorded when the entry call ends.
  std::vector<std::string> foreign_refusals_;
  int32_t call_ = -1;  // index of the entry call
  int64_t step_ = -1;
  std::string call_name_ = "no entry call";
  bool inside_call_ = false;
  // For Progress: the entry call and its last host call, and that of the calls before it.
  std::string call_text_, last_before_;
  const char* last_call_ = "";
  // With init_device = meta: create has begun, and no call after it has returned.
  bool no_values_yet_ = false;
  // (node, microbatch) -> phases run in this call.
  std::map<std::pair<int32_t, int32_t>, uint8_t> phases_;
  struct GivenScale {
    double scale = 1;
    int32_t node = -1;  // that was given it first
  };
  // By microbatch, of this call: given to nodes that originate a loss gradient.
  std::map<int32_t, GivenScale> loss_scale_;
  std::unordered_map<const spf_program*, std::set<int32_t>> program_nodes_;
  int refusals_ = 0;
  bool answered_aborted_ = false;
  int64_t collectives_ = 0;
  const int64_t most_calls_;  // in one entry call
  int64_t calls_ = 0;         // in this one
  std::string first_refusal_, last_error_, explanation_, runaway_, broken_;
};

}  // namespace shardproof
