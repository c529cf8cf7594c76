// nccl_fabric_internal.h: how do the fabric's calls begin and end? For its own sources.
#pragma once
#include <exception>
#include <string>

#include "conformance/fabric/nccl/nccl_fabric.h"

namespace shardproof {

template <class F>
void NcclFabric::Try(const std::string& what, F&& body) {
  if (aborted_) return;
  try {
    body();
  } catch (const std::exception& error) {
    if (watchdog_.cause() != Watchdog::Cause::kNone)
      return StopByWatchdog();  // a wait inside the call was given up
    Stop(Watchdog::Cause::kNone, "in " + what + ": " + error.what());
  }
}

template <class F>
spf_status NcclFabric::Blocking(const std::string& what, F&& wait) {
  if (aborted_) return SPF_ABORTED;
  try {
    const GiveUp give_up = watchdog_.Waiting(what);
    if (watchdog_.Bites() || !wait(give_up)) {
      StopByWatchdog();
    } else {
      ledger_.Look();
    }
  } catch (const std::exception& error) {
    Stop(Watchdog::Cause::kNone, "in " + what + ": " + error.what());
  }
  return aborted_ ? SPF_ABORTED : SPF_OK;
}

}  // namespace shardproof
