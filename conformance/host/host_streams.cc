// Streams and events.
#include "conformance/host/host_internal.h"
#include "conformance/trace/clean_text.h"

namespace shardproof {

namespace {
const std::string kForeign =
    " is no handle of this host: handles of another engine or rank cannot be used";
}

Host::StreamHandle& Host::Stream(spf_stream stream, const char* what) {
  RefuseUnless(stream != nullptr, std::string(what) + " is NULL: pass a stream from stream_create");
  RefuseUnless(known_streams_.contains(stream), what + kForeign);
  auto& handle = *reinterpret_cast<StreamHandle*>(stream);
  RefuseUnless(
      handle.alive,
      std::string(what) + " \"" + handle.name + "\" was destroyed: use it before destroying it",
      Breaks::kGE19);
  return handle;
}

Host::EventHandle& Host::EventOf(spf_event event) {
  RefuseUnless(event != nullptr, "event is NULL: pass an event from event_create");
  RefuseUnless(known_events_.contains(event), "event" + kForeign);
  auto& handle = *reinterpret_cast<EventHandle*>(event);
  RefuseUnless(handle.alive,
               "event " + std::to_string(handle.id) + " was destroyed: use it before destroying it",
               Breaks::kGE19);
  return handle;
}

spf_status Host::CreateStream(const char* name, int32_t priority, spf_stream* out) {
  RefuseTooMany(streams_.size(), "streams");
  StreamHandle& handle = streams_.emplace_back();
  handle.name = name == nullptr ? "stream" : CleanText(name);
  handle.id = fabric_.CreateStream(handle.name, priority);
  Event& event = Add(EventKind::kStreamCreate);
  event.stream = handle.id;
  event.id = priority;
  recorder_.SetText(handle.name);
  recorder_.NameStream(handle.id, handle.name);
  *out = reinterpret_cast<spf_stream>(&handle);
  known_streams_.insert(*out);
  return SPF_OK;
}

spf_status Host::DestroyStream(spf_stream stream) {
  StreamHandle& handle = Stream(stream, "stream");
  Add(EventKind::kStreamDestroy).stream = handle.id;
  handle.alive = false;
  fabric_.DestroyStream(handle.id);
  return SPF_OK;
}

spf_status Host::SyncStream(spf_stream stream) {
  const StreamHandle& handle = Stream(stream, "stream");
  Add(EventKind::kStreamSync).stream = handle.id;
  return fabric_.SyncStream(handle.id);
}

spf_status Host::CreateEvent(spf_event* out) {
  RefuseTooMany(events_.size(), "events");
  EventHandle& handle = events_.emplace_back();
  handle.id = fabric_.CreateEvent();
  Add(EventKind::kEventCreate).event = handle.id;
  *out = reinterpret_cast<spf_event>(&handle);
  known_events_.insert(*out);
  return SPF_OK;
}

spf_status Host::DestroyEvent(spf_event event) {
  EventHandle& handle = EventOf(event);
  Add(EventKind::kEventDestroy).event = handle.id;
  handle.alive = false;
  fabric_.DestroyEvent(handle.id);
  return SPF_OK;
}

spf_status Host::RecordEvent(spf_event event, spf_stream stream) {
  const EventHandle& handle = EventOf(event);
  const StreamHandle& on = Stream(stream, "stream");
  Event& row = Add(EventKind::kRecord);
  row.event = handle.id;
  row.stream = on.id;
  fabric_.Record(handle.id, on.id);
  return SPF_OK;
}

spf_status Host::WaitEvent(spf_event event, spf_stream stream) {
  const EventHandle& handle = EventOf(event);
  const StreamHandle& on = Stream(stream, "stream");
  Event& row = Add(EventKind::kWait);
  row.event = handle.id;
  row.stream = on.id;
  row.flag = fabric_.Wait(handle.id, on.id);
  return SPF_OK;
}

spf_status Host::SyncEvent(spf_event event) {
  const EventHandle& handle = EventOf(event);
  Event& row = Add(EventKind::kEventSync);
  row.event = handle.id;
  bool recorded = false;
  const spf_status status = fabric_.SyncEvent(handle.id, &recorded);
  row.flag = recorded;
  return status;
}

}  // namespace shardproof
