// agreement.h: how do all ranks of an engine come to know what each of them has to say?
//
// By collectives alone: ranks share a folder but no clock, and a file that is there for one rank
// may not be there yet for another. Texts are gathered along one axis after the other.
#pragma once
#include "reference/core/context.h"

namespace reference {

class Agreement {
 public:
  Agreement(Host& host, spf_stream stream, const std::vector<Communicator>& axes)
      : host_(host), stream_(stream), axes_(axes) {}

  // This rank's place among the ranks of the engine, the first axis fastest.
  int32_t me() const;
  // The texts of all ranks, by place. Blocks. Every rank returns the same.
  std::vector<std::string> Gather(const std::string& mine);

 private:
  // All members' bytes (each n), in rank order.
  std::string GatherBytes(const Communicator& axis, const std::string& mine);

  Host& host_;
  spf_stream stream_;
  const std::vector<Communicator>& axes_;
};

}  // namespace reference
