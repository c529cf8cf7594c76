// in_device_work.h: whose fault is an exception in device work?
//
// The suite's, unless it is an EngineThrew: bodies that call an engine's function turn into that
// whatever leaves it.
#pragma once
#include <stdexcept>

namespace shardproof {

// What an engine's function threw, in words.
struct EngineThrew : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Begins the words for what the code of the suite threw: no failure of the engine.
inline constexpr const char* kInTheSuite = "in the suite's code";

}  // namespace shardproof
