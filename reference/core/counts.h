// counts.h: how does the host learn how many rows go to and come from each rank of "ep"?
//
// A router decides on the device. The host needs the numbers, because they size the pieces of an
// all-to-all and the rows of what it delivers. A value that holds such numbers (SPF_VALUE_COUNTS)
// is copied to pinned memory on the stream that wrote it, and the host waits for that copy when it
// first needs a number, not before.
// They are kept for the microbatch's backward, and for recompute (EP-27).
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "conformance/abi/spf.hpp"

namespace reference {

// The COUNTS values of one microbatch.
class Counts {
 public:
  // Only values that govern an exchange of this program, or the rows of another value, are wanted.
  Counts(spf::Host& host, const spf_program& program, int32_t microbatch);

  // Right after an operation on this stream has written the value at this address. A value that is
  // known already (written again by recompute) or that nobody wants is left alone.
  void Fetch(int32_t value, spf_addr device, spf_stream stream);
  // Rows per member of "ep". The first call blocks until the copy is done.
  const std::vector<int64_t>& Rows(int32_t value);
  int64_t Total(int32_t value);

 private:
  struct Copied {
    spf_event done = nullptr;
    spf_addr pinned = 0;  // until the host has read it
    spf_stream stream = nullptr;
    std::vector<int64_t> rows;
  };

  spf::Host& host_;
  int32_t microbatch_;
  std::vector<bool> wanted_;  // by value
  std::map<int32_t, Copied> copied_;
};

}  // namespace reference
