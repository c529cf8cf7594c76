// refusal.h: how does a host call say that its caller broke a precondition?
#pragma once
#include <stdexcept>
#include <string>

#include "conformance/trace/event.h"

namespace shardproof {

// Thrown inside a host call before anything was done; becomes SPF_REFUSED, an event and a finding.
// The text says what is wrong and what to do; the call's name, rank and entry call are added where
// it is caught. breaks: the requirement that the call, carried out, would plainly have broken.
class Refusal : public std::runtime_error {
 public:
  explicit Refusal(const std::string& text, Breaks breaks = Breaks::kNothing)
      : std::runtime_error(text), breaks_(breaks) {}
  Breaks breaks() const { return breaks_; }

 private:
  Breaks breaks_;
};

// RefuseUnless(condition, text) and RefuseUnless(condition, text, breaks). A macro, so that the
// text is made for a call that is wrong only: of several texts a call, and a million right calls,
// nearly all would be thrown away.
#define RefuseUnless(condition, ...) \
  ((condition) ? static_cast<void>(0) : throw ::shardproof::Refusal(__VA_ARGS__))

}  // namespace shardproof
