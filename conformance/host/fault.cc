#include "conformance/host/fault.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <stdexcept>

namespace shardproof {

namespace {

struct ActionName {
  Fault::Action action;
  std::string_view name;
};
constexpr ActionName kActions[] = {
    {Fault::Action::kDrop, "drop"},       {Fault::Action::kDelay, "delay"},
    {Fault::Action::kReorder, "reorder"}, {Fault::Action::kDuplicate, "duplicate"},
    {Fault::Action::kCorrupt, "corrupt"}, {Fault::Action::kIgnore, "ignore"}};

constexpr int32_t kMost = std::numeric_limits<int32_t>::max();

[[noreturn]] void Bad(std::string_view whole, std::string_view part, const std::string& why) {
  throw std::invalid_argument("fault \"" + std::string(whole) + "\": \"" + std::string(part) +
                              "\" is " + why);
}

// what: of which the number is, in words.
template <typename Int>
Int Number(std::string_view text, std::string_view whole, const char* what, Int least, Int most) {
  Int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
    return value;
  Bad(whole, text,
      "no " + std::string(what) + ", a number from " + std::to_string(least) + " to " +
          std::to_string(most));
}

int32_t Rank(std::string_view text, std::string_view whole) {
  return Number<int32_t>(text, whole, "rank", 0, kMost);
}

// How many calls later, or which argument is wrong (faulty_work.cc); others take none.
int32_t Amount(const Fault& fault, std::string_view text, std::string_view whole) {
  if (fault.action == Fault::Action::kDelay)
    return Number<int32_t>(text, whole, "number of calls", 1, kMost);
  if (fault.action != Fault::Action::kCorrupt)
    Bad(whole, text, "an amount, which delay and corrupt alone have");
  const int32_t most = fault.call == "communicate" ? 3 : fault.call == "compute" ? 2 : 0;
  return Number<int32_t>(text, whole, ("way to corrupt " + fault.call).c_str(), 0, most);
}

std::string_view Take(std::string_view& rest, char until) {
  const size_t at = rest.find(until);
  const std::string_view head = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return head;
}

// "drop@" and "corrupt=@1" announce what they do not have.
void RequireParts(std::string_view text) {
  for (size_t at = text.find_first_of("=@"); at != std::string_view::npos;
       at = text.find_first_of("=@", at + 1)) {
    if (at + 1 < text.size() && text[at + 1] != '@') continue;
    throw std::invalid_argument("fault \"" + std::string(text) + "\": nothing stands behind \"" +
                                text[at] + "\"");
  }
}

// NAME:ignore[=VALUE][@RANK]
Fault IgnoredKnob(std::string_view rest, std::string_view text) {
  Fault fault;
  fault.call = "knob";
  fault.action = Fault::Action::kIgnore;
  fault.rank = Fault::kEveryRank;
  fault.knob = Take(rest, ':');
  std::string_view value = Take(rest, '@');
  const std::string_view action = Take(value, '=');
  if (fault.knob.empty() || action != "ignore") {
    throw std::invalid_argument("fault \"" + std::string(text) +
                                "\" is not knob:NAME:ignore[=VALUE][@RANK]");
  }
  fault.value = value;
  if (!rest.empty()) fault.rank = Rank(rest, text);
  return fault;
}

void RequireCall(const std::string& call, std::string_view text) {
  const std::vector<std::string>& calls = CallsOfFaults();
  if (std::find(calls.begin(), calls.end(), call) != calls.end()) return;
  std::string names;
  for (const std::string& name : calls) names += (names.empty() ? "" : ", ") + name;
  throw std::invalid_argument("fault \"" + std::string(text) + "\": \"" + call + "\" is none of " +
                              names + "; nor knob");
}

}  // namespace

const std::vector<std::string>& CallsOfFaults() {
  static const std::vector<std::string> calls = {
      "communicate",    "compute",    "copy",           "event_destroy", "event_record",
      "event_sync",     "event_wait", "group_create",   "group_destroy", "group_deregister",
      "group_register", "init",       "launch",         "mark",          "mem_alloc",
      "mem_free",       "publish",    "stream_destroy", "stream_sync"};
  return calls;
}

Fault ParseFault(std::string_view text) {
  RequireParts(text);
  std::string_view rest = text;
  Fault fault;
  fault.call = Take(rest, ':');
  if (fault.call == "knob") return IgnoredKnob(rest, text);
  RequireCall(fault.call, text);
  fault.nth = Number<int64_t>(Take(rest, ':'), text, "number of a call", 0,
                              std::numeric_limits<int64_t>::max());
  std::string_view action = Take(rest, '@');
  std::string_view amount = action;
  const std::string_view name = Take(amount, '=');
  bool known = false;
  for (const ActionName& row : kActions) {
    if (row.name != name || row.action == Fault::Action::kIgnore) continue;
    fault.action = row.action;
    known = true;
  }
  if (!known) {
    throw std::invalid_argument("fault \"" + std::string(text) + "\": \"" + std::string(name) +
                                "\" is none of drop, delay, reorder, duplicate, corrupt");
  }
  if (!amount.empty()) fault.amount = Amount(fault, amount, text);
  if (fault.action == Fault::Action::kCorrupt && amount.empty()) fault.amount = 0;
  if (!rest.empty()) fault.rank = Rank(rest, text);
  return fault;
}

std::string FaultText(const Fault& fault) {
  if (fault.action == Fault::Action::kIgnore) {
    return "knob:" + fault.knob + ":ignore" + (fault.value.empty() ? "" : "=" + fault.value) +
           (fault.rank == Fault::kEveryRank ? "" : "@" + std::to_string(fault.rank));
  }
  std::string text = fault.call + ":" + std::to_string(fault.nth) + ":";
  for (const ActionName& row : kActions) {
    if (row.action == fault.action) text += row.name;
  }
  if (fault.action == Fault::Action::kDelay || fault.action == Fault::Action::kCorrupt) {
    text += "=" + std::to_string(fault.amount);
  }
  return text + "@" + std::to_string(fault.rank);
}

}  // namespace shardproof
