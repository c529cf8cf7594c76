// What is still in flight? Collectives move their bytes while the program goes on, as on a GPU:
// whoever touches such bytes, or synchronises with their stream, waits. Waits give Python's lock
// away.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace shardproof::device {

// Transfers by number, in the order of issue.
using Flights = std::set<int64_t>;

int64_t BeginFlight();
void EndFlight(int64_t flight);
Flights StillOpen(Flights* flights);  // takes off what has ended, answers the rest
bool AreDone(const Flights& flights);
void WaitForFlights(const Flights& flights);

// Bytes that a transfer has still to write, or to read late: they stay where they are even if their
// owner frees them.
int64_t BeginTransfer(const void* address);  // the block's id; -1: of no block
// error: why the bytes never came; empty: they did.
void EndTransfer(int64_t block, const std::string& error);
// Until no transfer is in flight on the block of this address. Throws c10::Error if its bytes never
// came.
void WaitForTransfers(const void* address);

// The run is given up: all waits throw this.
void StopWaits(const std::string& why);

}  // namespace shardproof::device
