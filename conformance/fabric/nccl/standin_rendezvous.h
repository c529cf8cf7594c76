// standin_rendezvous.h: how do ranks meet that are fibers of a simulator? For tests.
//
// Waiting must let the others run, and must be seen by the simulator as waiting, or it would not
// know a deadlock. So whoever waits for a key posts a message from the rank that will put it, which
// is the number that the key ends with
// ("id/dp/3"), and whoever puts a key sends such a message to all who wait for it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "conformance/fabric/fabric.h"
#include "conformance/fabric/nccl/rendezvous/rendezvous.h"
#include "conformance/fabric/nccl/standin_gpu.h"

namespace shardproof {

// Common to all ranks of a run.
struct StandinTable {
  std::map<std::string, std::string> values;
  std::multimap<std::string, int32_t> waiting;  // key -> rank
  std::optional<std::string> aborted;
};

class StandinRendezvous : public Rendezvous {
 public:
  // All outlive the rendezvous.
  StandinRendezvous(Fabric& sim, StandinClock& clock, StandinTable& table);
  int rank() const override { return sim_.rank(); }
  int size() const override { return sim_.world(); }
  void Put(const std::string& key, const std::string& bytes) override;
  std::optional<std::string> Get(const std::string& key, const GiveUp& give_up) override;
  void Abort(const std::string& reason) override;
  std::optional<std::string> Aborted() override { return table_.aborted; }

 private:
  void Message(int32_t kind, int32_t from, int32_t to);

  Fabric& sim_;
  StandinClock& clock_;
  StandinTable& table_;
  int32_t stream_;
  std::byte nothing_[2] = {};  // sent, received
};

}  // namespace shardproof
