#include "conformance/checks/base/entry_answer.h"

#include "conformance/abi/shardproof.h"

namespace shardproof {

namespace {

using Kind = EngineOutcome::Kind;

EntryAnswer Unfounded(std::string why) { return {Kind::kFailed, std::move(why)}; }

EntryAnswer FromCreateOnly(std::string_view call, const char* name, Kind kind) {
  if (call == "create") return {kind, ""};
  return Unfounded(std::string(call) + " answered " + name + ": only create may");
}

}  // namespace

EntryAnswer AnswerOf(std::string_view call, int status, HostAnswers before) {
  switch (status) {
    case SPF_OK:
      return {};
    case SPF_UNSUPPORTED:
      if (call == "load" && before.another_leg) return {Kind::kUnsupported, ""};
      return FromCreateOnly(call, "SPF_UNSUPPORTED", Kind::kUnsupported);
    case SPF_REJECTED:
      return FromCreateOnly(call, "SPF_REJECTED", Kind::kRejected);
    case SPF_REFUSED:
      if (before.refused) return {Kind::kRefused, ""};
      return Unfounded(std::string(call) +
                       " answered SPF_REFUSED, but the host refused no call of this rank");
    case SPF_ABORTED:
      if (before.aborted) return {Kind::kAborted, ""};
      return Unfounded(std::string(call) +
                       " answered SPF_ABORTED, but the host aborted no call of this rank");
    case SPF_NO_MEMORY:
    case SPF_FAILED:
      return {Kind::kFailed, ""};
    default:
      return Unfounded(std::string(call) + " answered " + std::to_string(status) +
                       ", which is no spf_status");
  }
}

}  // namespace shardproof
