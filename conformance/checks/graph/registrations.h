// registrations.h: which blocks are registered with which communicator, and when?
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "conformance/checks/base/check.h"
#include "conformance/checks/program/program.h"

namespace shardproof::graph {

// What one rank registers. Registering is a host call, so "when" is the order of this rank's
// events: a collective uses what is registered at its own event, when it is issued.
class Registrations {
 public:
  // A registration call that is wrong by itself, whatever the other ranks do (GE-17).
  struct Misuse {
    int64_t event = 0;
    std::string expected, seen;
  };

  // trace must outlive this.
  Registrations(const Program& program, const Trace& trace);

  // With any group that is this communicator.
  bool Has(int32_t communicator, int32_t alloc, int64_t event) const;
  // What the trace says about a block that Has() denies, to be appended to a sentence; may be
  // empty.
  std::string WhyNot(int32_t communicator, int32_t alloc, int64_t event) const;
  const std::vector<Misuse>& misuses() const { return misuses_; }

 private:
  // After event begin and before event end.
  struct Interval {
    int64_t begin = 0, end = 0;
  };
  struct Block {
    int64_t bytes = -1;  // -1: not live
    bool freed = false;
    std::vector<int32_t> groups;  // with which it is registered at the end of what was walked
  };

  void Register(const Event& event);
  void Deregister(const Event& event);
  void Free(const Event& event);
  void Destroy(const Event& event);
  // Ends the registration of the block with the group; false: there is none.
  bool End(Block& block, int32_t group, int32_t alloc);
  // The last registration with the local group that began before the event, or null.
  const Interval* LastBefore(int32_t group, int32_t alloc, int64_t event) const;
  const std::string& Name(int32_t group) const;
  void Add(std::string expected, std::string seen);

  static uint64_t Key(int32_t group, int32_t alloc) {
    return static_cast<uint64_t>(static_cast<uint32_t>(group)) << 32 | static_cast<uint32_t>(alloc);
  }

  const Trace& trace_;
  int64_t event_ = 0;
  std::vector<std::vector<int32_t>> groups_of_;          // by communicator: local groups
  std::unordered_map<int32_t, Block> blocks_;            // by allocation
  std::map<uint64_t, std::vector<Interval>> intervals_;  // by Key, in order
  std::vector<Misuse> misuses_;
};

// GE-15: the i-th registration of all members has one size. False: it has not.
bool JudgeRegistrationSizes(const Program& program, CheckResult& result);
// GE-17. registrations: by rank.
void JudgeRegistrationCalls(const Program& program, const std::vector<Registrations>& registrations,
                            CheckResult& result);

}  // namespace shardproof::graph
