// faulty.h: what does a run look like when one service call goes wrong?
//
// Wraps the table that an engine is given and makes one chosen call misbehave. It stands between
// the engine and the recording front end, so the trace shows a run of an engine with that bug: the
// suite must find it.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "conformance/abi/shardproof.h"
#include "conformance/host/fault.h"
#include "conformance/host/known_handles.h"

namespace shardproof {

// Forwards to inner, except for the one call. Handles are inner's own.
class FaultyHost {
 public:
  // struck becomes true when something goes wrong; may be null.
  FaultyHost(spf_host* inner, Fault fault, std::atomic<bool>* struck = nullptr);
  FaultyHost(const FaultyHost&) = delete;
  FaultyHost& operator=(const FaultyHost&) = delete;
  spf_host* table() { return &table_; }
  bool fired() const { return fired_; }

 private:
  struct Table : spf_host {
    FaultyHost* owner = nullptr;
  };
  using Call = std::function<spf_status()>;
  static FaultyHost& Of(spf_host* h) { return *static_cast<Table*>(h)->owner; }
  void Strikes();
  // Whether this call is the chosen one; counts it.
  bool Chosen(std::string_view name);
  // Forwards a call that may be dropped, delayed or duplicated; corrupted is what happens instead
  // under kCorrupt.
  spf_status Pass(std::string_view name, Call call, Call corrupted);
  spf_status After(spf_status status);
  const char* Knob(const char* name);
  void FillFacts();
  void FillGroups();
  void FillStreams();
  void FillEvents();
  void FillMemory();
  void FillWork();
  spf_status Communicate(int32_t n, const spf_collective* ops);
  spf_status Compute(spf_stream stream, const spf_compute* compute);
  spf_status Launch(spf_stream stream, const spf_launch* launch);

  spf_host* inner_;
  Fault fault_;
  std::atomic<bool>* const struck_;
  Table table_{};
  std::map<std::string, int64_t, std::less<>> counts_;
  bool fired_ = false;
  Call held_;
  KnownHandles<spf_stream> streams_;
  KnownHandles<spf_event> events_;
  KnownHandles<spf_addr> blocks_;
  KnownHandles<spf_group> groups_;
  // The held call happens: whoever made it has returned, and what it answers is lost.
  bool late_ = false;
  int32_t hold_ = 0;
};

}  // namespace shardproof
