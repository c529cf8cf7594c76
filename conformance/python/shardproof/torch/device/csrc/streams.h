// Streams and events: what a thread's current stream is, and who waits for whom. Work of the CPU is
// done when it is issued; what a stream has still to wait for are transfers (transfers.h), so the
// host waits for those alone.
#pragma once

#include <cstdint>
#include <string>

#include "transfers.h"

namespace shardproof::device {

constexpr int64_t kDefaultStream = 0;

int64_t CurrentStream();
int64_t ExchangeStream(int64_t stream);  // of the calling thread; the stream before
int64_t NewStream(const std::string& name, int priority);
// All that there are but the default stream: torch's pools of streams are the process's, so an
// engine has no way to give one back; the driver says when an engine's are no longer in use.
void DestroyStreams();

struct Event {
  int64_t id = -1;
  bool recorded = false;
  Flights flights;  // what the stream was still waiting for at the record
};

Event* NewEvent();
void RecordEvent(Event* event, int64_t stream);
void WaitEvent(const Event& event, int64_t stream);
// The host waits.
void SyncEvent(const Event& event);
// Is it done? "Yes" tells the host as much about order as a wait.
bool QueryEvent(const Event& event);
void DropEvent(Event* event);

void SyncStream(int64_t stream);
bool QueryStream(int64_t stream);
void SyncDevice();
Flights AllFlights();  // what some stream still waits for

// A transfer that is an operation of this stream; ends with EndFlight (transfers.h).
int64_t BeginFlightOn(int64_t stream);

}  // namespace shardproof::device
