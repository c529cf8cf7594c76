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

// Of one kind that an engine may make, so that their numbers fit into a trace with those of the
// rank's other engines.
constexpr size_t kMostHandles = kMaxId / 16;

inline void RefuseTooMany(size_t made, const char* what) {
  RefuseUnless(made < kMostHandles, std::to_string(made) + " " + what +
                                        " were made by this engine: no more are numbered");
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
    host.Note(call);
    return host.Refuse(call, refusal.what(), refusal.breaks());
  } catch (const std::exception& error) {
    return host.Break(call, error.what());
  }
}

}  // namespace shardproof
