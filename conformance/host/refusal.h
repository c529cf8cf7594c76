// refusal.h: how does a host call say that its caller broke a precondition?
#pragma once
#include <stdexcept>
#include <string>

namespace shardproof {

// Thrown inside a host call before anything was done; becomes SPF_REFUSED, an event and a finding.
// The text says what is wrong and what to do; the call's name, rank and entry call are added where
// it is caught.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void RefuseUnless(bool condition, const std::string& text) {
  if (!condition) throw Refusal(text);
}

}  // namespace shardproof
