#include "reference/core/host.h"

namespace reference {

void Host::Communicate(const std::vector<spf_collective>& ops) {
  if (!chained_ || ops.empty()) return spf::Host::Communicate(ops);
  const spf_stream stream = ops[0].stream;
  if (last_ == nullptr) {
    last_ = Event();
  } else if (stream != last_stream_) {
    Wait(stream, last_);
  }
  spf::Host::Communicate(ops);
  Record(last_, stream);
  last_stream_ = stream;
}

void Host::EndChain() {
  if (last_ != nullptr) spf::Check(DestroyEvent(std::exchange(last_, nullptr)));
}

}  // namespace reference
