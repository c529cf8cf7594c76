// Gathered parameters under the schedule: there when read, of the right version, released after the
// last work.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/published.h"
#include "conformance/checks/schedule/rank_check.h"
#include "conformance/checks/schedule/residency.h"
#include "conformance/checks/schedule/schedule.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof::schedule {

namespace {

using Kind = Content::Kind;

bool Sharded(const InstanceSpec& spec) { return ShardsParams(spec); }

// In which combined step of a train_step a schedule node is issued: backward of microbatch k in
// that of forward k + 1.
int32_t CombinedStep(const Key& key) {
  return key.microbatch + (key.side == Side::kForward ? 0 : 1);
}

class Units : RankCheck {
 public:
  Units(const Facts& facts, int32_t rank, CheckResult& result, FindingSink& sink)
      : RankCheck(facts, rank, result, sink), residents_(FindResidents(a_, rank)) {}

  void Run() {
    FindVersions();
    for (const Step& step : facts_.steps()) {
      if (step.rank != rank_ || !facts_.Overlaps(size_t(step.instance)) || step.end < 0) continue;
      JudgeReads(step);
      JudgeNonUnits(step);
      const InstanceSpec& spec = facts_.spec(size_t(step.instance));
      if (!Sharded(spec)) continue;
      Judge(result_, {step.train ? "EP-10" : "EP-36"});
      for (const Resident& resident : residents_) {
        if (resident.instance != step.instance || resident.call != step.call) continue;
        if (resident.unit < 0 && step.train) continue;
        JudgeEnd(step, resident);
        if (step.train) JudgeRelease(step, resident);
      }
      if (step.train) JudgeBound(step);
    }
  }

 private:
  // Entry calls that made a new value of a parameter.
  void FindVersions() {
    for (const Trace& trace : a_.traces()) {
      for (const Event& event : trace.events) {
        const int32_t version = VersionMade(a_.Facts(event.instance), event);
        if (version < 0) continue;
        const ParamFacts& param = a_.Facts(event.instance).Param(trace.rank, event.id);
        versions_[{event.instance, param.key}].insert(version);
      }
    }
  }
  // The call whose values a call has to use; -1: not known.
  int32_t VersionFor(int32_t instance, int32_t key, int32_t call) const {
    const auto at = versions_.find({instance, key});
    if (at == versions_.end()) return -1;
    const auto next = at->second.lower_bound(call);
    return next == at->second.begin() ? -1 : *std::prev(next);
  }

  void JudgeReads(const Step& step) {
    const InstanceFacts& facts = a_.Facts(size_t(step.instance));
    if (facts.spec().strategy == ShardingStrategy::kNoShard) return;
    Judge(result_, {"EP-09"});
    for (int64_t i = step.begin; i < step.end; ++i) {
      const Event& event = At(trace_.events, i);
      if (event.kind != EventKind::kCompute || event.instance != step.instance) continue;
      const EventFlow& flow = a_.flow().At(rank_, i);
      const spf_uses& uses = facts.Node(event.id, rank_).uses[event.phase];
      if (!flow.ran || static_cast<size_t>(uses.n) != flow.before.size()) continue;
      for (int32_t k = 0; k < uses.n; ++k) {
        if (uses.use[k].table != SPF_IN_PARAM) continue;
        if (!JudgeRead(step, i, facts.Param(rank_, uses.use[k].id), At(flow.before, k))) break;
      }
    }
  }
  bool JudgeRead(const Step& step, int64_t index, const ParamFacts& param,
                 const std::vector<Chunk>& chunks) {
    for (const Chunk& chunk : chunks) {
      const Content& content = chunk.content;
      const bool here = content.kind == Kind::kOther ||
                        (content.kind == Kind::kParam && content.param == param.key);
      if (!here) {
        Add("EP-09", index, param.name + ", gathered and not released", a_.ContentText(content),
            "a schedule node reads " + param.name + " where it is not gathered");
        return false;
      }
      if (content.kind != Kind::kParam || param.frozen) continue;
      Judge(result_, {"EP-16"});
      if (content.tag >= step.call) {
        Add("EP-16", index, "values of an earlier entry call",
            "values of entry call " + std::to_string(content.tag),
            param.name + " is changed before the last schedule node of the step has read it");
        return false;
      }
      const int32_t want = VersionFor(step.instance, param.key, step.call);
      if (want < 0) continue;  // nothing was published to compare with
      Judge(result_, {"EP-15"});
      if (content.tag == want) continue;
      Add("EP-15", index, "values of entry call " + std::to_string(want),
          "values of entry call " + std::to_string(content.tag),
          param.name +
              " is read as it was before the last optimizer step: the gathered copy is stale");
      return false;
    }
    return true;
  }

  // Elements outside units are gathered at most once in a step.
  void JudgeNonUnits(const Step& step) {
    if (facts_.spec(size_t(step.instance)).strategy == ShardingStrategy::kNoShard) return;
    Judge(result_, {"EP-14"});
    std::vector<const Resident*> earlier;
    for (const Resident& resident : residents_) {
      if (resident.unit >= 0 || resident.instance != step.instance || resident.call != step.call)
        continue;
      for (const Elements& elements : resident.elements) {
        const auto again = [&](const Resident* other) { return other->HasSomeOf(elements); };
        if (std::none_of(earlier.begin(), earlier.end(), again)) continue;
        Add("EP-14", resident.gather, "gathered once in the step and kept",
            a_.Facts(size_t(step.instance)).ByKey(elements.key).name + " gathered again",
            "a parameter outside units is released, or forgotten, within a step");
        return;
      }
      earlier.push_back(&resident);
    }
  }

  void JudgeEnd(const Step& step, const Resident& resident) {
    if (resident.release >= 0 && resident.release < step.end) return;
    Add(step.train ? "EP-10" : "EP-36", resident.gather,
        Text(a_, rank_, resident) + " released within the call", "still there at its end",
        step.train ? Text(a_, rank_, resident) + " stay gathered after the step"
                   : "an eval_step leaves gathered parameters behind for the next step");
  }

  // Released after the last node of the layer that reads it, and before the next combined step is
  // under way.
  void JudgeRelease(const Step& step, const Resident& resident) {
    if (resident.release < 0) return;
    if (resident.reads.empty()) {
      Add("EP-10", resident.gather, "gathered for a schedule node that reads them",
          "released without a reader",
          Text(a_, rank_, resident) + " are gathered when nobody needs them any more");
      return;
    }
    Judge(result_, {"EP-11"});
    JudgeLeftOver(step, resident);
    JudgeAlone(step, resident);
    for (const int64_t read : resident.reads) {
      const Token* token = step.At(read);
      if (token == nullptr || token->key.layer < 0) continue;
      const bool middle = IsMiddle(step, token->key);
      if (middle) Judge(result_, {"EP-13"});
      const bool forward = token->key.side == Side::kForward;
      if (middle && forward && facts_.spec(size_t(step.instance)).early_release) continue;
      const Token* end = EndOf(step, token->key);
      if (end == nullptr || end->last() < resident.release) continue;
      Add(middle ? "EP-13" : "EP-11", resident.release, "released after " + Text(end->key),
          "before it",
          Text(a_, rank_, resident) + " are released while " +
              (middle    ? "the other microbatch is in the same layer"
               : forward ? "forward"
                         : "backward") +
              " has work of the layer left");
      return;
    }
  }
  // Both sides of a combined step are in this layer at the same time.
  static bool IsMiddle(const Step& step, const Key& key) {
    const int32_t f = CombinedStep(key), b = f - 1;
    if (b < 0 || size_t(f) >= step.nodes.size()) return false;
    const auto& forward = At(step.nodes, f)->layers();
    const auto& backward = At(step.nodes, b)->layers();
    for (size_t i = 0; i < std::min(forward.size(), backward.size()); ++i) {
      if (forward[i] == key.layer && backward[backward.size() - 1 - i] == key.layer) return true;
    }
    return false;
  }
  // The last node of a layer on one side.
  const Token* EndOf(const Step& step, const Key& key) const {
    Key end = key;
    if (key.side == Side::kForward) {
      const Nodes& nodes = *At(step.nodes, key.microbatch);
      end.node = nodes.IsMoe(key.layer) ? ScheduleNode::kCombine : ScheduleNode::kMlp;
      return step.Find(end);
    }
    end.node = ScheduleNode::kPreDispatch;
    end.side = Side::kWeights;
    const Token* weights = step.Find(end);
    end.side = Side::kBackward;
    return weights != nullptr ? weights : step.Find(end);
  }
  // Where one side runs alone, nobody else comes back to a layer: its parameters are gone when the
  // next layer but one is through, or as many more as may be gathered ahead.
  void JudgeAlone(const Step& step, const Resident& resident) {
    for (const int64_t read : resident.reads) {
      const Token* token = step.At(read);
      if (token == nullptr || token->key.layer < 0) continue;
      const bool forward = token->key.side == Side::kForward;
      if (token->key.microbatch != (forward ? 0 : static_cast<int32_t>(step.nodes.size()) - 1))
        continue;
      std::vector<int32_t> layers = At(step.nodes, token->key.microbatch)->layers();
      if (!forward) std::reverse(layers.begin(), layers.end());
      const auto at = std::find(layers.begin(), layers.end(), token->key.layer);
      const auto place = static_cast<size_t>(at - layers.begin());
      const size_t far = place + 2 + Depth(step.instance);
      if (far >= layers.size()) continue;
      Key key = token->key;
      key.layer = layers[far];
      const Token* end = EndOf(step, key);
      if (end == nullptr || resident.release < end->last()) continue;
      Add("EP-10", resident.release, "released before " + Text(end->key), "after it",
          Text(a_, rank_, resident) + " stay gathered while the side that runs alone goes on");
      return;
    }
  }
  // What one combined step has read is gone, or read again, when the next one has issued two nodes
  // of layers.
  void JudgeLeftOver(const Step& step, const Resident& resident) {
    std::set<int32_t> steps;
    for (const int64_t read : resident.reads) {
      if (const Token* token = step.At(read); token != nullptr)
        steps.insert(CombinedStep(token->key));
    }
    for (const int32_t of : steps) {
      int32_t seen = 0;
      for (const Token& token : step.tokens) {
        if (token.key.layer < 0 || CombinedStep(token.key) != of + 1) continue;
        if (++seen < 2) continue;
        const bool again =
            std::any_of(resident.reads.begin(), resident.reads.end(), [&](int64_t read) {
              const Token* reader = step.At(read);
              return reader != nullptr && CombinedStep(reader->key) == of + 1 &&
                     read <= token.last();
            });
        if (again || resident.release < token.first()) break;
        Add("EP-10", resident.release,
            "released by the end of the combined step, or with its next gather",
            "still there in " + Text(token.key),
            Text(a_, rank_, resident) +
                " are still gathered when the next combined step is under way");
        return;
      }
    }
  }

  // Not more than two units, and what may be gathered ahead.
  void JudgeBound(const Step& step) {
    Judge(result_, {"EP-17"});
    const size_t bound = 2 + Depth(step.instance);
    for (const Resident& at : residents_) {
      if (at.unit < 0 || at.instance != step.instance || at.call != step.call) continue;
      std::set<int32_t> units;
      for (const Resident& other : residents_) {
        if (other.unit >= 0 && other.instance == step.instance && other.OpenAt(at.gather))
          units.insert(other.unit);
      }
      if (units.size() <= bound) continue;
      std::string seen;
      for (const int32_t unit : units) {
        seen +=
            (seen.empty() ? "" : ", ") + a_.Facts(size_t(step.instance)).ModuleName(unit, rank_);
      }
      Add("EP-17", at.gather, "at most " + std::to_string(bound) + " units gathered at a time",
          seen, "more units are gathered at a time than the schedule needs");
      return;
    }
  }
  size_t Depth(int32_t instance) const {
    const InstanceFacts& facts = a_.Facts(size_t(instance));
    const int64_t limit = facts.spec().prefetch_limit_bytes;
    if (limit <= 0) return limit < 0 ? 1 : 0;
    std::map<std::pair<int32_t, bool>, int64_t> bytes;  // by unit, expert
    for (int32_t id = 0; id < facts.n_params(rank_); ++id) {
      const ParamFacts& param = facts.Param(rank_, id);
      if (param.unit < 0) continue;
      bytes[{param.unit, param.expert}] +=
          param.numel * static_cast<int64_t>(DtypeBytes(param.dtype));
    }
    int64_t least = INT64_MAX;
    for (const auto& [group, size] : bytes) least = std::min(least, size);
    return bytes.empty() ? 0 : static_cast<size_t>((limit + least - 1) / least);
  }

  const std::vector<Resident> residents_;
  std::map<std::pair<int32_t, int32_t>, std::set<int32_t>> versions_;  // (instance, key) -> calls
};

}  // namespace

CheckResult CheckUnits(const Facts& facts) {
  CheckResult result;
  if (!facts.a().has_flow()) {
    CannotJudge(result,
                {"EP-09", "EP-10", "EP-11", "EP-13", "EP-14", "EP-15", "EP-16", "EP-17", "EP-36"},
                facts.a().flow_why());
    return result;
  }
  FindingSink sink(result);
  for (int32_t rank = 0; rank < facts.a().ranks(); ++rank) Units(facts, rank, result, sink).Run();
  if (!result.judged.contains("EP-15"))
    CannotJudge(result, {"EP-15"}, "nothing was published to compare with");
  return result;
}

}  // namespace shardproof::schedule
