#include "streams.h"

#include <map>

#include "memory.h"
#include "recorder.h"

namespace shardproof::device {
namespace {

thread_local int64_t t_stream = kDefaultStream;
int64_t g_next_stream = kDefaultStream + 1;
int64_t g_first_alive = kDefaultStream + 1;  // those before it are destroyed
int64_t g_next_event = 0;

// What each stream still waits for, as far as it is known not to have ended.
std::map<int64_t, Flights>& StreamFlights() {
  static auto* flights = new std::map<int64_t, Flights>;
  return *flights;
}

Flights FlightsOf(int64_t stream) {
  Hold hold;
  return StillOpen(&StreamFlights()[stream]);
}

}  // namespace

Flights AllFlights() {
  Hold hold;
  Flights all;
  for (auto& [stream, flights] : StreamFlights()) {
    const Flights open = StillOpen(&flights);
    all.insert(open.begin(), open.end());
  }
  return all;
}

int64_t CurrentStream() { return t_stream; }

int64_t ExchangeStream(int64_t stream) {
  const int64_t before = t_stream;
  t_stream = stream;
  return before;
}

int64_t NewStream(const std::string& name, int priority) {
  Hold hold;
  const int64_t stream = g_next_stream++;
  TheRecorder().Write(Row("stream_create")
                          .Number("s", stream)
                          .Text("x", name + std::to_string(stream))
                          .Number("id", priority));
  return stream;
}

void DestroyStreams() {
  Hold hold;
  ForgetFreeStream();
  for (; g_first_alive < g_next_stream; ++g_first_alive) {
    TheRecorder().Write(Row("stream_destroy").Number("s", g_first_alive));
  }
}

Event* NewEvent() {
  Hold hold;
  auto* event = new Event{g_next_event++, false, {}};
  TheRecorder().Write(Row("event_create").Number("ev", event->id));
  return event;
}

void RecordEvent(Event* event, int64_t stream) {
  TheRecorder().Write(Row("record").Number("ev", event->id).Number("s", stream));
  event->recorded = true;
  event->flights = FlightsOf(stream);
}

void WaitEvent(const Event& event, int64_t stream) {
  Hold hold;
  TheRecorder().Write(
      Row("wait").Number("ev", event.id).Number("s", stream).Flag("f", event.recorded));
  StreamFlights()[stream].insert(event.flights.begin(), event.flights.end());
}

void SyncEvent(const Event& event) {
  TheRecorder().Write(Row("event_sync").Number("ev", event.id).Flag("f", event.recorded));
  WaitForFlights(event.flights);
}

bool QueryEvent(const Event& event) {
  if (!AreDone(event.flights)) return false;
  SyncEvent(event);
  return true;
}

void DropEvent(Event* event) {
  TheRecorder().Write(Row("event_destroy").Number("ev", event->id));
  delete event;
}

void SyncStream(int64_t stream) {
  TheRecorder().Write(Row("stream_sync").Number("s", stream));
  WaitForFlights(FlightsOf(stream));
}

bool QueryStream(int64_t stream) {
  if (!FlightsOf(stream).empty()) return false;
  SyncStream(stream);
  return true;
}

void SyncDevice() {
  TheRecorder().Write(Row("device_sync"));
  WaitForFlights(AllFlights());
}

int64_t BeginFlightOn(int64_t stream) {
  Hold hold;
  const int64_t flight = BeginFlight();
  StreamFlights()[stream].insert(flight);
  return flight;
}

}  // namespace shardproof::device
