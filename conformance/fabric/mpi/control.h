// control.h: what do the supervisors tell each other beside the traffic of the case?
//
// Everybody reports to rank 0, which decides. This side channel has a communicator of its own, and
// no engine code runs in a supervisor, so it works whatever the engines do.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof::mpi {

enum class ControlKind : int32_t {
  kStatus = 1,  // to 0: numbers = {Level}
  kFailed,      // to 0: text = the reason that a rank gave to Fail
  kProbe,       // from 0: numbers = {wave}
  kAnswer,      // to 0: numbers = {wave, quiet, messages sent, messages received}
  kAbort,       // from 0: numbers = {AbortCause}, text = reason
  kResult,      // to 0: text = a packed RankReport
  kEnd  // from 0: numbers = {hang, messages to expect from each rank...}, text = hang report
};

enum class Level : uint64_t {
  kRunning = 0,
  kBlocked,  // both threads of the child sleep and wait for other ranks, nothing is under way here
  kStalled   // no progress for stall_seconds although something runs
};

enum class AbortCause : uint64_t { kHang = 1, kDeath, kFailure };

struct ControlMessage {
  uint64_t epoch = 0;
  ControlKind kind = ControlKind::kStatus;
  int32_t from = -1;
  std::vector<uint64_t> numbers;
  std::string text;
};

std::string PackControl(const ControlMessage& message);
ControlMessage UnpackControl(std::string_view packed);

// Writes and reads plain values in order.
class Packer {
 public:
  void Number(uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Text(std::string_view text) {
    Number(text.size());
    bytes_.append(text);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}
  uint64_t Number();  // throws std::runtime_error at the end
  std::string Text();

 private:
  std::string_view bytes_;
};

}  // namespace shardproof::mpi
