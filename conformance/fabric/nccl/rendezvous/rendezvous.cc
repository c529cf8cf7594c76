#include "conformance/fabric/nccl/rendezvous/rendezvous.h"

namespace shardproof {

std::optional<std::vector<std::string>> AllGather(Rendezvous& rendezvous, const std::string& key,
                                                  const std::vector<int32_t>& members,
                                                  const std::string& mine, const GiveUp& give_up) {
  const auto of = [&](int32_t rank) { return key + "/" + std::to_string(rank); };
  rendezvous.Put(of(rendezvous.rank()), mine);
  std::vector<std::string> all;
  for (const int32_t member : members) {
    std::optional<std::string> bytes = rendezvous.Get(of(member), give_up);
    if (!bytes) return std::nullopt;
    all.push_back(std::move(*bytes));
  }
  return all;
}

}  // namespace shardproof
