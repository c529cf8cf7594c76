#include "conformance/cases/knob_text.h"

#include "conformance/cases/knob.h"

namespace shardproof {
namespace {

std::string Line(const std::string& first, const std::string& second, const std::string& third) {
  return "| " + first + " | " + second + " | " + third + " |\n";
}

// The knob or the choice, and which words have tokens of their own.
std::string WhatTokenSays(const Knob& knob) {
  std::string text = knob.told == Told::kNever ? knob.meaning : knob.name;
  std::string words;
  for (const auto& [word, token] : knob.short_words) {
    if (word != token) words += (words.empty() ? ": " : ", ") + token + " is " + word;
  }
  return text + words;
}

}  // namespace

std::string KnobLines() {
  std::string lines = Line("knob", "values (default first)", "meaning") + "|---|---|---|\n";
  for (const Knob& knob : KnobTable()) {
    if (knob.told == Told::kNever) continue;
    lines += Line(knob.name, knob.values + (knob.told == Told::kAlways ? " (always set)" : ""),
                  knob.meaning);
  }
  return lines;
}

std::string TokenLines() {
  const InstanceSpec usual;
  std::string lines = Line("token", "says", "default") + "|---|---|---|\n";
  for (const Knob& knob : KnobTable()) {
    if (knob.token.empty()) continue;
    const std::string otherwise = knob.text(usual);
    lines += Line(knob.token, WhatTokenSays(knob), otherwise.empty() ? "none" : otherwise);
  }
  return lines;
}

}  // namespace shardproof
