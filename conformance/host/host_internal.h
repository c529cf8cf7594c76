// host_internal.h: what is the one way into the host from its C table? Included by the host_*.cc
// files only.
#pragma once
#include <exception>

#include "conformance/common/dtype.h"
#include "conformance/host/host.h"
#include "conformance/host/refusal.h"

namespace shardproof {

// What refusals call the dtype that an engine gave.
inline std::string DtypeText(int32_t dtype) {
  return IsDtype(dtype) ? DtypeName(dtype) : "no dtype";
}

template <class F>
spf_status Host::Enter(spf_host* h, const char* call, Family family, F&& body) {
  Host& host = *static_cast<Table*>(h)->owner;
  if (host.CallerIsForeign(call)) return SPF_REFUSED;
  try {
    if (host.fabric_.aborted()) {
      if (family == Family::kCleanup) return SPF_OK;
      host.answered_aborted_ = true;
      return SPF_ABORTED;
    }
    if (host.RunsAway()) {
      host.answered_aborted_ = true;
      return SPF_ABORTED;
    }
    const spf_status status = body(host);
    if (status == SPF_ABORTED) host.answered_aborted_ = true;
    host.Beat(call);
    return status;
  } catch (const Refusal& refusal) {
    return host.Refuse(call, refusal.what());
  }
}

}  // namespace shardproof
