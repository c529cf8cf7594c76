#include "conformance/fabric/nccl/nccl_fabric.h"

#include <chrono>
#include <exception>
#include <utility>

#include "conformance/fabric/nccl/nccl_fabric_internal.h"

namespace shardproof {
namespace {

int64_t SteadyMicroseconds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// So that whoever reads all ranks' reports sees who is behind.
std::string IssuedText(const std::vector<CommPosition>& positions) {
  std::string text;
  for (const CommPosition& one : positions) {
    if (one.issued > 0)
      text += (text.empty() ? "" : ", ") + std::to_string(one.issued) + " on " + one.key;
  }
  return text.empty() ? "" : "collectives issued here: " + text + "\n";
}

}  // namespace

NcclFabric::NcclFabric(Gpu& gpu, PinnedPool& pinned, Rendezvous& rendezvous, NcclOptions options)
    : gpu_(gpu),
      pinned_(pinned),
      rendezvous_(rendezvous),
      options_(std::move(options)),
      ledger_(rendezvous.rank(), gpu),
      communicators_(gpu, rendezvous, options.connect_up_to),
      watchdog_({options_.now_us ? options_.now_us : SteadyMicroseconds,
                 [this] { return rendezvous_.Aborted(); },
                 [this]() -> std::optional<std::string> {
                   try {
                     communicators_.Check();
                     return std::nullopt;
                   } catch (const GpuError& error) {
                     return error.what();
                   }
                 },
                 [this] { return ledger_.Look(); },
                 static_cast<int64_t>(options_.stall_seconds * 1e6)}) {
  gpu_.SetBeginWait([this](const std::string& what) { return watchdog_.Waiting(what); });
}

NcclFabric::~NcclFabric() {
  Close();
  gpu_.SetBeginWait({});
  try {
    GiveEverythingBack();
  } catch (const std::exception&) {
    // The device is beyond use; whoever opens it next is told.
  }
}

spf_status NcclFabric::Close() {
  if (aborted_ || Drain() != SPF_OK) return SPF_ABORTED;
  if (std::exchange(closed_, true)) return SPF_OK;
  return Blocking("the end of its communicators", [&](const GiveUp& give_up) {
    while (!registrations_.empty()) DeregisterAllOf(registrations_.begin()->first.first);
    return communicators_.CloseAll(give_up);
  });
}

// After an abort, work may still be in the streams: blocks go back behind it.
void NcclFabric::GiveEverythingBack() {
  const int32_t end = gpu_.CreateStream("end", 0);
  if (edge_event_ < 0) edge_event_ = gpu_.CreateEvent(false);
  for (const int32_t stream : streams_) {
    if (stream < 0) continue;
    gpu_.Record(edge_event_, stream);
    gpu_.Wait(edge_event_, end);
  }
  for (const auto& [id, block] : live_) {
    if (block.pinned) {
      pinned_.Give(block.host);
    } else if (!registrable_.contains(block.host)) {
      gpu_.Free(end, block.host);
    }
  }
  // Not after an abort: work may still be using it, and another fabric would not wait for that.
  for (const auto& [data, had] : registrable_) {
    if (!aborted_) pinned_.GiveRegistrable(had.memory, had.bytes);
  }
  ledger_.DropEvents();
  events_.insert(events_.end(), stamps_.begin(), stamps_.end());
  events_.push_back(edge_event_);
  for (const int32_t event : events_) {
    if (event >= 0) gpu_.DestroyEvent(event);
  }
  streams_.push_back(end);
  for (const int32_t stream : streams_) {
    if (stream >= 0) gpu_.DestroyStream(stream);
  }
}

void NcclFabric::Stop(Watchdog::Cause cause, const std::string& reason) {
  if (std::exchange(aborted_, true)) return;
  try {
    ledger_.Look();  // for the latest news
  } catch (const std::exception&) {
  }
  end_.cause = cause;
  end_.reason =
      cause == Watchdog::Cause::kEnded ? reason : "rank " + std::to_string(rank()) + ": " + reason;
  end_.host = watchdog_.waiting();
  end_.positions = ledger_.Positions();
  end_.pending = ledger_.Pending() + IssuedText(end_.positions);
  if (cause != Watchdog::Cause::kEnded) {
    rendezvous_.Abort(end_.reason + (end_.pending.empty() ? "" : "\n" + end_.pending));
  }
  communicators_.AbortAll();
  ledger_.Abandon();
}

void NcclFabric::StopByWatchdog() {
  // A wait in the rendezvous ends by itself when the run has ended.
  if (watchdog_.Bites()) return Stop(watchdog_.cause(), watchdog_.reason());
  Stop(Watchdog::Cause::kNone, "a wait was given up without a reason: " + watchdog_.waiting());
}

void NcclFabric::Fail(std::string_view reason) {
  Stop(Watchdog::Cause::kNone, reason.empty() ? "failed without a reason" : std::string(reason));
}

int32_t NcclFabric::CreateStream(std::string_view name, int priority) {
  int32_t stream = -1;
  Try("stream_create", [&] { stream = gpu_.CreateStream(name, priority); });
  streams_.push_back(stream);
  return ledger_.AddStream(name, stream);
}

void NcclFabric::DestroyStream(int32_t stream) {
  Try("stream_destroy", [&] {
    ledger_.DropStream(stream);
    gpu_.DestroyStream(std::exchange(streams_[static_cast<size_t>(stream)], -1));
  });
}

spf_status NcclFabric::SyncStream(int32_t stream) {
  return Blocking("stream_sync of " + ledger_.device().StreamName(stream),
                  [&](const GiveUp& give_up) {
                    const int32_t event = ledger_.EventBehind(stream);
                    return event < 0 || gpu_.Await(event, give_up);
                  });
}

int32_t NcclFabric::CreateEvent() {
  int32_t event = -1;
  Try("event_create", [&] { event = gpu_.CreateEvent(false); });
  events_.push_back(event);
  return ledger_.AddEvent();
}

void NcclFabric::DestroyEvent(int32_t event) {
  Try("event_destroy", [&] {
    ledger_.DropEvent(event);
    gpu_.DestroyEvent(std::exchange(events_[static_cast<size_t>(event)], -1));
  });
}

void NcclFabric::Record(int32_t event, int32_t stream) {
  Try("event_record", [&] {
    gpu_.Record(At(events_, event), At(streams_, stream));
    ledger_.Record(event, stream);
  });
}

bool NcclFabric::Wait(int32_t event, int32_t stream) {
  const bool recorded = ledger_.device().LatestRecord(event) >= 0;
  if (!recorded) return false;
  Try("event_wait", [&] {
    gpu_.Wait(At(events_, event), At(streams_, stream));
    ledger_.Wait(event, stream);
  });
  return true;
}

spf_status NcclFabric::SyncEvent(int32_t event, bool* recorded) {
  const bool there = ledger_.device().LatestRecord(event) >= 0;
  if (recorded) *recorded = there;
  return Blocking("event_sync of event " + std::to_string(event), [&](const GiveUp& give_up) {
    return !there || gpu_.Await(At(events_, event), give_up);
  });
}

void NcclFabric::Enqueue(int32_t stream, std::string_view what, Body body) {
  Try(std::string(what), [&] {
    if (body) body();
    ledger_.Local(stream, what);
  });
}

spf_status NcclFabric::Drain() {
  return Blocking("all its device work", [&](const GiveUp& give_up) {
    for (auto busy = ledger_.Busy(); !busy.empty(); busy = ledger_.Busy()) {
      const int32_t event = ledger_.EventBehind(busy.front());
      if (event >= 0 && !gpu_.Await(event, give_up)) return false;
      ledger_.Look();
    }
    return true;
  });
}

int32_t NcclFabric::Stamp(int32_t stream) {
  stamps_.push_back(-1);
  Try("time stamp", [&] {
    stamps_.back() = gpu_.CreateEvent(true);
    gpu_.Record(stamps_.back(), At(streams_, stream));
    ledger_.Local(stream, "time stamp");
  });
  return static_cast<int32_t>(stamps_.size()) - 1;
}

double NcclFabric::MillisecondsBetween(int32_t from, int32_t to) {
  double milliseconds = 0;
  Try("time between stamps",
      [&] { milliseconds = gpu_.ElapsedMs(At(stamps_, from), At(stamps_, to)); });
  return milliseconds;
}

}  // namespace shardproof
