// config_for_test.h: what do knobs say, and which are refused? For tests of config.h.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "reference/core/config.h"

namespace reference {

using Texts = std::map<std::string, std::string>;

// The contract knobs are there.
inline Config Read(Texts texts) {
  texts.try_emplace("microbatches", "2");
  texts.try_emplace("lr", "0.5");
  return ReadConfig([&](const char* name) -> const char* {
    const auto found = texts.find(name);
    return found == texts.end() ? nullptr : found->second.c_str();
  });
}

// Rejected, with a message that has both texts.
inline void ExpectRejected(const Texts& texts, const std::string& knob, const std::string& value) {
  try {
    Read(texts);
    ADD_FAILURE() << knob << " = " << value << " was accepted";
  } catch (const Rejected& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(knob), std::string::npos) << message;
    EXPECT_NE(message.find(value), std::string::npos) << message;
  }
}

}  // namespace reference
