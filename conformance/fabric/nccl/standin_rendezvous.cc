#include "conformance/fabric/nccl/standin_rendezvous.h"

#include <stdexcept>
#include <vector>

namespace shardproof {
namespace {

int32_t PutterOf(const std::string& key, int32_t world) {
  const size_t slash = key.rfind('/');
  const std::string number = slash == std::string::npos ? "" : key.substr(slash + 1);
  const bool digits = !number.empty() && number.size() < 6 &&
                      number.find_first_not_of("0123456789") == std::string::npos;
  const int32_t rank = digits ? std::stoi(number) : -1;
  if (rank < 0 || rank >= world)
    throw std::logic_error("stand-in rendezvous: key \"" + key +
                           "\" does not end with the rank that puts it");
  return rank;
}

}  // namespace

StandinRendezvous::StandinRendezvous(Fabric& sim, StandinClock& clock, StandinTable& table)
    : sim_(sim), clock_(clock), table_(table), stream_(sim.CreateStream("rendezvous", 0)) {}

void StandinRendezvous::Put(const std::string& key, const std::string& bytes) {
  if (!table_.values.emplace(key, bytes).second) return;
  std::vector<int32_t> waiting;
  const auto [first, last] = table_.waiting.equal_range(key);
  for (auto it = first; it != last; ++it) waiting.push_back(it->second);
  table_.waiting.erase(first, last);
  if (!waiting.empty() && PutterOf(key, size()) != rank())
    throw std::logic_error("stand-in rendezvous: rank " + std::to_string(rank()) +
                           " puts the key \"" + key + "\"");
  for (const int32_t to : waiting) Message(SPF_SEND, rank(), to);
}

std::optional<std::string> StandinRendezvous::Get(const std::string& key, const GiveUp& give_up) {
  const int32_t from = PutterOf(key, size());
  const auto value = [&] { return table_.values.find(key); };
  if (value() == table_.values.end() && from != rank() && !table_.aborted && !give_up()) {
    table_.waiting.emplace(key, rank());
    Message(SPF_RECV, from, rank());
    sim_.SyncStream(stream_);
  }
  for (int second = 0; value() == table_.values.end(); ++second) {
    // The simulator has ended: nothing happens any more, only time passes.
    if (table_.aborted || give_up()) return std::nullopt;
    if (second > 1'000'000)
      throw GpuError("stand-in", "who waits for " + key + " does not give up");
    clock_.now_us += 1'000'000;
  }
  return value()->second;
}

void StandinRendezvous::Abort(const std::string& reason) {
  if (!table_.aborted) table_.aborted = reason;
}

void StandinRendezvous::Message(int32_t kind, int32_t from, int32_t to) {
  CommOp op;
  op.kind = kind;
  op.dtype = SPF_U8;
  op.group =
      sim_.OpenGroup("rendezvous " + std::to_string(from) + " " + std::to_string(to), {from, to});
  op.stream = stream_;
  op.send = &nothing_[0];
  op.recv = &nothing_[1];
  op.count = 1;
  op.peer = kind == SPF_SEND ? 1 : 0;
  op.what = "a word in the rendezvous";
  sim_.Communicate({op});
}

}  // namespace shardproof
