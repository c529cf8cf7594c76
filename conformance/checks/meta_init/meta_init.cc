#include "conformance/checks/meta_init/meta_init.h"

#include <map>
#include <string_view>

#include "conformance/checks/base/rank_check.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

constexpr int64_t kScratchBytes = 1024;  // for an agreement, say

using Kind = Content::Kind;

// What nothing has brought: bytes that were never written, or that some constant was put into.
bool NoValue(const Content& content) {
  return content.kind == Kind::kFill || content.kind == Kind::kPoison;
}

class OnRank : RankCheck {
 public:
  OnRank(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink) {}

  void Run() {
    const auto n = static_cast<int64_t>(trace_.events.size());
    for (int64_t i = 0; i < n; ++i) {
      const Event& event = At(trace_.events, i);
      const InstanceFacts& facts = a_.Facts(event.instance);
      if (InitsLater(facts.spec()) && facts.InGrid(rank_)) Visit(i, event, facts);
    }
  }
  bool created() const { return created_; }
  bool asked() const { return asked_; }  // create came back, or asked for values before
  bool used() const { return used_; }
  // There was a load, and what was read or published came from elsewhere than the suite can follow.
  bool unknown() const { return unknown_ && loaded_; }

 private:
  struct OfInstance {
    bool no_values = false;  // create has begun, and no call after it has ended
    bool told = false;       // FS-50, of this engine: what comes first says most
    std::string_view call;
    std::map<int32_t, int64_t> blocks;  // of device memory: bytes
    int64_t bytes = 0, peak = 0;        // peak: of this call, at event peak_at
    int64_t peak_at = -1;
  };

  void Visit(int64_t index, const Event& event, const InstanceFacts& facts) {
    OfInstance& of = instances_[event.instance];
    switch (event.kind) {
      case EventKind::kCallBegin:
        of.call = trace_.Text(event.text);
        if (of.call == "create") of.no_values = true, of.told = false;
        loaded_ = loaded_ || of.call == "load";
        of.peak = of.bytes;
        return;
      case EventKind::kCallEnd:
        return CallEnd(event, of);
      case EventKind::kInit:
        return JudgeAsking(index, event, of);
      case EventKind::kRefused:
        if (trace_.Text(event.text) == "init") JudgeAsking(index, event, of);
        return;
      case EventKind::kPublish:
        return Published(index, event, facts, of);
      case EventKind::kCompute:
        return JudgeReads(index, event, facts, of);
      case EventKind::kAlloc:
        return Alloc(index, event, of);
      case EventKind::kFree:
        of.bytes -= of.blocks[event.alloc];
        of.blocks.erase(event.alloc);
        return;
      default:
        return;
    }
  }

  void Alloc(int64_t index, const Event& event, OfInstance& of) {
    if (event.id == SPF_PINNED) return;
    of.blocks[event.alloc] = event.count;
    of.bytes += event.count;
    if (of.bytes <= of.peak) return;
    of.peak = of.bytes;
    of.peak_at = index;
  }

  void CallEnd(const Event& event, OfInstance& of) {
    if (of.call != "create") {
      of.no_values = false;
      return;
    }
    if (event.status != SPF_OK) return;
    created_ = asked_ = true;
    if (of.peak <= of.bytes + kScratchBytes) return;
    Add("FS-49", of.peak_at,
        "at most the " + std::to_string(of.bytes) + " bytes that create leaves, and " +
            std::to_string(kScratchBytes) + " of scratch",
        std::to_string(of.peak) + " bytes",
        "create makes more room than the engine keeps: whole parameters are there for a time, "
        "which init_device = meta is to avoid");
  }

  void JudgeAsking(int64_t index, const Event& event, const OfInstance& of) {
    if (!of.no_values || (of.call != "create" && of.call != "load")) return;
    asked_ = true;
    const bool refused = event.kind == EventKind::kRefused;
    Add("FS-48", index,
        of.call == "create" ? "no value before the first call after create"
                            : "all values from the checkpoint",
        refused ? "init, which was refused" : "init",
        std::string(of.call) + " asks for initial values although init_device is meta");
  }

  void Published(int64_t index, const Event& event, const InstanceFacts& facts, OfInstance& of) {
    if (event.result != SPF_RESULT_PARAM) return;
    const ParamFacts& param = facts.Param(rank_, event.id);
    if (of.call == "create") {
      return Add("FS-48", index, "no value before the first call after create",
                 "a published value of " + param.name,
                 "create publishes parameters although init_device is meta: they have no values "
                 "yet");
    }
    JudgeContent(index, param, 0, event.offset, of);
  }

  void JudgeReads(int64_t index, const Event& event, const InstanceFacts& facts, OfInstance& of) {
    if (event.id < 0 || event.id >= facts.node_count(rank_)) return;
    const spf_uses& uses = facts.Node(event.id, rank_).uses[event.phase];
    if (static_cast<uint32_t>(uses.n) != event.ranges.size()) return;
    for (int32_t i = 0; i < uses.n; ++i) {
      if (uses.use[i].table == SPF_IN_PARAM)
        JudgeContent(index, facts.Param(rank_, uses.use[i].id), i, 0, of);
    }
  }

  // Of the event's range with this number, which begins with this element.
  void JudgeContent(int64_t index, const ParamFacts& param, int32_t range, int64_t begin,
                    OfInstance& of) {
    if (!a_.has_flow()) return;
    const EventFlow& flow = a_.flow().At(rank_, index);
    if (!flow.ran || range >= Length(flow.before)) return;
    for (const Chunk& chunk : At(flow.before, range)) {
      // Bytes of an unknown origin show nothing: a load need not publish what it brings.
      const bool known = chunk.content.kind == Kind::kParam || NoValue(chunk.content);
      used_ = used_ || known;
      unknown_ = unknown_ || !known;
      if (of.told || !NoValue(chunk.content) || chunk.length == 0) continue;
      of.told = true;
      const int64_t element = begin + ElementAt(index, param, range, chunk.offset);
      const bool read = At(trace_.events, index).kind == EventKind::kCompute;
      Add("FS-50", index, "a value of " + param.name + "[" + std::to_string(element) + "]",
          a_.ContentText(chunk.content),
          param.name + (read ? " is read" : " is published") +
              ", but nothing has brought a value of element " + std::to_string(element) +
              " since create");
    }
  }
  // Which of the range's elements lies there; a read range has all of the parameter's.
  int64_t ElementAt(int64_t index, const ParamFacts& param, int32_t range, int64_t byte) const {
    const Event& event = At(trace_.events, index);
    const int64_t elements = event.kind == EventKind::kCompute ? param.numel : event.count;
    const int64_t bytes = At(trace_.ranges, event.ranges.begin + range).length;
    return bytes > 0 ? byte * elements / bytes : 0;
  }

  std::map<int32_t, OfInstance> instances_;
  bool created_ = false, asked_ = false, used_ = false, unknown_ = false, loaded_ = false;
};

// What instances show that get their values later and have the rank in their grid.
std::set<std::string> ShownOn(const Analysis& a, int32_t rank) {
  std::set<std::string> ids;
  for (size_t i = 0; i < a.n_instances(); ++i) {
    if (a.Facts(i).InGrid(rank)) ids.merge(ShownWithMetaInit(a.Facts(i)));
  }
  return ids;
}

}  // namespace

CheckResult CheckMetaInit(const Analysis& a) {
  CheckResult result;
  if (!a.has_case() || !a.legal()) return result;
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) {
    const std::set<std::string> shown = ShownOn(a, rank);
    if (shown.empty()) continue;
    OnRank on_rank(a, rank, result, sink);
    on_rank.Run();
    const Provides& provides = a.trace(rank).provides;
    const std::string of_rank = " on rank " + std::to_string(rank);
    if (on_rank.asked() && provides.work && provides.results) {
      Judge(result, {"FS-48"});
    } else {
      CannotJudge(result, {"FS-48"}, "no event says what create asked for" + of_rank);
    }
    if (on_rank.created() && provides.memory) {
      Judge(result, {"FS-49"});
    } else {
      CannotJudge(result, {"FS-49"}, "no event says what create made room for" + of_rank);
    }
    if (on_rank.used()) {
      Judge(result, {"FS-50"});
    } else if (on_rank.unknown()) {
      // Whether the values are right is judged by what is computed from them.
      result.not_checkable.push_back({"FS-50",
                                      "parameters are read from bytes of unknown origin" + of_rank +
                                          ": publish in load what it brings",
                                      NotCheckable::Kind::kNotAsked});
    } else if (shown.contains("FS-50")) {
      CannotJudge(result, {"FS-50"}, "no event says what a parameter was read from" + of_rank);
    }
  }
  return result;
}

std::set<std::string> ShownWithMetaInit(const InstanceFacts& facts) {
  if (!InitsLater(facts.spec())) return {};
  std::set<std::string> ids = {"FS-48", "FS-49"};
  if (facts.spec().script.find_first_of("tel") != std::string::npos) ids.insert("FS-50");
  return ids;
}

}  // namespace shardproof
