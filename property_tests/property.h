// property.h: how is a property checked so that a failure can be run again, even if shrinking never
// ends?
//
// The line that reproduces a failure, RC_PARAMS="seed=...", is printed at the first failing
// evaluation, before shrinking starts. Without RC_PARAMS the seed follows from the property's name,
// so that a gate gives the same verdict twice; any other seed can be given in the environment. The
// seed is also printed before the first evaluation, in case that crashes.
#pragma once
#include <rapidcheck.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

namespace shardproof {

struct PropertyOptions {
  int evaluations = 100;
  std::optional<uint64_t> seed;  // wins over the environment; for lockstep under MPI
  std::ostream* log = &std::cerr;
};

// The seed that a run without one of its own starts from: the environment's, or the name's.
uint64_t PropertySeed(const std::string& name, const PropertyOptions& options);

struct PropertyResult {
  bool held = false;
  std::string counterexample;  // the smallest one: its values, joined by "; "
};
PropertyResult RunProperty(const std::string& name, const rc::detail::Property& property,
                           const PropertyOptions& options);

// True when no counterexample was found.
template <typename Testable>
bool CheckProperty(const std::string& name, Testable&& testable,
                   const PropertyOptions& options = {}) {
  return RunProperty(name, rc::detail::toProperty(std::forward<Testable>(testable)), options).held;
}

// A property that is known not to hold, and why nothing is done about it now.
struct PropertyWaiver {
  std::string counterexample;  // as PropertyResult's: any other one is not waived
  std::string reason;          // not empty
};
// Strict both ways. True only when the property fails, and at this counterexample: one that holds
// by now, or that fails elsewhere, is an error that the log explains.
bool JudgeWaived(const std::string& name, const PropertyWaiver& waiver,
                 const PropertyResult& result, std::ostream& log);

template <typename Testable>
bool CheckWaivedProperty(const std::string& name, const PropertyWaiver& waiver, Testable&& testable,
                         const PropertyOptions& options = {}) {
  const PropertyResult result =
      RunProperty(name, rc::detail::toProperty(std::forward<Testable>(testable)), options);
  return JudgeWaived(name, waiver, result, *options.log);
}

}  // namespace shardproof
