// host_scalars.h: how does a number get from the device to the host, and back?
//
// A few F64 accumulators on the device with a pinned twin. Reading blocks until the stream has come
// that far.
#pragma once
#include <vector>

#include "conformance/abi/spf.hpp"

namespace reference {

class HostScalars {
 public:
  explicit HostScalars(uint64_t count) : count_(count) {}

  void Create(spf::Host& host, spf_stream stream) {
    device_ = host.Alloc(stream, Bytes(), spf::For(SPF_FOR_NORM));
    pinned_ = host.Alloc(stream, Bytes(), spf::For(SPF_FOR_NORM), SPF_PINNED);
  }
  spf_addr at(uint64_t index) const { return device_ + 8 * index; }
  void Clear(spf::Host& host, spf_stream stream) { host.Fill(stream, device_, count_, SPF_F64, 0); }

  // Blocks.
  std::vector<double> Read(spf::Host& host, spf_stream stream) {
    host.Copy(stream, pinned_, device_, Bytes());
    host.Sync(stream);
    const double* values = host.Touch<double>(pinned_, count_, SPF_READ);
    return {values, values + count_};
  }
  // Puts a number where a stream can read it. Nothing may be in flight on that place: call Read
  // before.
  spf_addr Write(spf::Host& host, uint64_t index, double value) {
    const spf_addr place = pinned_ + 8 * index;
    *host.Touch<double>(place, 1, SPF_WRITE) = value;
    return place;
  }
  // Blocks: pinned memory goes at once, whatever a stream still does with it.
  void Destroy(spf::Host& host, spf_stream stream) {
    host.Free(stream, device_);
    host.Sync(stream);
    host.Free(stream, pinned_);
  }

 private:
  uint64_t Bytes() const { return 8 * count_; }

  uint64_t count_;
  spf_addr device_ = 0, pinned_ = 0;
};

}  // namespace reference
