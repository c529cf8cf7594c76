// frame.h: how do texts travel over a socket?
//
// A frame is its size in bytes (uint64, little endian as on all hosts of a job) and its fields,
// each a size and the bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof {

using Frame = std::vector<std::string>;
using FrameView = std::vector<std::string_view>;

// A peer that is no rank of ours may send anything: a frame of more bytes is refused.
inline constexpr uint64_t kMostFrameBytes = uint64_t{1} << 32;

std::string PackFrame(const Frame& fields);
uint64_t BytesOf(const Frame& fields);               // when packed
void PackFrameTo(const Frame& fields, char* bytes);  // REQUIRES: room for BytesOf(fields)

// Takes the first whole frame off the front of *received. Nothing: it is not whole yet; or *bad is
// set: it is no frame.
std::optional<Frame> TakeFrame(std::string* received, bool* bad);
// The same without copies: what is taken lies in *bytes.
std::optional<FrameView> FrameIn(std::string_view* bytes, bool* bad);

// The decimal number that a field is. Throws std::runtime_error: it is none, or out of range.
int64_t NumberOf(std::string_view field, int64_t lowest = INT64_MIN, int64_t highest = INT64_MAX);

// Sends all of it, and waits for room; false: nobody reads any more. No signal is raised.
bool SendAll(int socket, const std::string& bytes);

// Waits for a whole frame. Nothing: the other end is closed, the socket's time is over, or what
// came is no frame. REQUIRES: the other end sends one frame at a time and waits for its answer.
std::optional<Frame> ReceiveFrame(int socket);

}  // namespace shardproof
