#include "conformance/fabric/nccl/rendezvous/case_table.h"

namespace shardproof {

std::optional<std::string> CaseTable::Get(const std::string& key, const GiveUp& give_up) {
  for (int round = 0;; ++round) {
    if (std::optional<std::string> bytes = store_.Look(Named(key))) return bytes;
    if (Aborted() || (give_up && give_up())) return std::nullopt;
    RestBeforeLook(round);
  }
}

std::optional<std::string> CaseTable::Aborted() {
  if (std::optional<std::string> reason = store_.Look(prefix_ + "!")) return reason;
  return store_.Broken();
}

}  // namespace shardproof
