// What published gradients are made of.
#include <algorithm>
#include <set>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/expected_grads.h"
#include "conformance/checks/reduction/reduction.h"
#include "conformance/common/dtype.h"

namespace shardproof {

namespace {

using Kind = Content::Kind;

std::string Text(const std::set<std::pair<int32_t, int32_t>>& where) {
  std::string text;
  int listed = 0;
  for (const auto& [rank, microbatch] : where) {
    if (++listed > 4) return text + " and " + std::to_string(where.size() - 4) + " more";
    text += (text.empty() ? "" : ", ") + ("rank " + std::to_string(rank)) + " microbatch " +
            std::to_string(microbatch);
  }
  return text;
}

// How a contribution set differs from the expected one.
struct Difference {
  std::set<std::pair<int32_t, int32_t>> missing, repeated, foreign, old;  // (rank, microbatch)
  std::set<int32_t> missing_nodes, nodes;
  bool Empty() const {
    return missing.empty() && repeated.empty() && foreign.empty() && old.empty();
  }
};

Difference Compare(const std::vector<Contribution>& expected, const std::vector<Contribution>& seen,
                   int32_t call) {
  Difference difference;
  std::vector<Contribution> once = seen;
  for (Contribution& one : once) one.times = 1;
  for (const Contribution& want : expected) {
    difference.nodes.insert(want.node);
    if (std::binary_search(once.begin(), once.end(), want)) continue;
    difference.missing.insert({want.rank, want.microbatch});
    difference.missing_nodes.insert(want.node);
  }
  for (const Contribution& one : seen) {
    Contribution single = one;
    single.times = 1;
    if (one.call != call) {
      difference.old.insert({one.rank, one.microbatch});
    } else if (!std::binary_search(expected.begin(), expected.end(), single)) {
      difference.foreign.insert({one.rank, one.microbatch});
    } else if (one.times > 1) {
      difference.repeated.insert({one.rank, one.microbatch});
    }
  }
  return difference;
}

class Contents {
 public:
  Contents(const Analysis& a, int instance, CheckResult& result)
      : a_(a),
        instance_(instance),
        facts_(a.Facts(size_t(instance))),
        expected_(a, instance),
        uncleared_(UnclearedSums(a)),
        result_(result),
        sink_(result) {}

  void JudgeRank(int32_t rank) {
    const Trace& trace = a_.trace(rank);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.kind != EventKind::kPublish || event.result != SPF_RESULT_GRAD ||
          event.instance != instance_)
        continue;
      const EventFlow& flow = a_.flow().At(rank, static_cast<int64_t>(i));
      if (!flow.ran || flow.before.empty() || size_t(event.call) >= facts_.calls().size()) continue;
      Judging(rank, static_cast<int64_t>(i), event, flow.before[0]);
    }
  }

 private:
  void Judging(int32_t rank, int64_t index, const Event& event, const std::vector<Chunk>& chunks) {
    const ParamFacts& param = facts_.Param(rank, event.id);
    Note(rank, event, param);
    const auto width = static_cast<int64_t>(DtypeBytes(event.dtype));
    for (const Chunk& chunk : chunks) {
      const int64_t element = event.offset + chunk.offset / width;
      const std::string where = param.name + "[" + std::to_string(element) + "]";
      switch (chunk.content.kind) {
        case Kind::kOther:
          continue;  // not followed: numerics judges the value
        case Kind::kMixed:
          Add("FS-29", rank, index, "the gradient of " + where, a_.ContentText(chunk.content),
              "the gradient of " + where +
                  " was summed with other elements: members reduce in different layouts");
          continue;
        case Kind::kPoison:
          if (uncleared_.contains({instance_, event.call, param.key})) continue;
          Add("FS-27", rank, index, "the gradient of " + where, a_.ContentText(chunk.content),
              "nothing was put where the gradient of " + where +
                  " is published from: it was never written, or was freed or discarded");
          continue;
        case Kind::kParam:
          Add("FS-27", rank, index, "the gradient of " + where, a_.ContentText(chunk.content),
              "what is published as the gradient of " + where + " is no gradient");
          continue;
        default:
          break;
      }
      const bool grad = chunk.content.kind == Kind::kGrad;
      if (grad && (chunk.content.param != param.key || chunk.content.element != element)) {
        Add("FS-27", rank, index, "the gradient of " + where, a_.ContentText(chunk.content),
            "what is published as the gradient of " + where + " belongs to other elements");
        continue;
      }
      JudgeSet(rank, index, event, param, where, grad ? chunk.content.tag : 0);
    }
  }

  // Which requirements this gradient is evidence for.
  void Note(int32_t rank, const Event& event, const ParamFacts& param) {
    Judge(result_, {"FS-05", "FS-22", "FS-27", "FS-29"});
    const std::vector<int32_t>* ranks = facts_.FullList(param.expert, rank);
    if (ranks == nullptr) return;
    std::set<int32_t> nodes;
    for (const Contribution& one : expected_.Whole(event.call, param.key, *ranks)) {
      nodes.insert(one.node);
    }
    if (nodes.size() > 1) Judge(result_, {"FS-12"});
    if (facts_.spec().outer > 1) Judge(result_, {"FS-19"});
  }

  void JudgeSet(int32_t rank, int64_t index, const Event& event, const ParamFacts& param,
                const std::string& where, int32_t set) {
    const std::vector<int32_t>* ranks = facts_.FullList(param.expert, rank);
    if (ranks == nullptr) return;
    const std::vector<Contribution> expected = expected_.Whole(event.call, param.key, *ranks);
    std::vector<Contribution> room;
    const Difference d = Compare(
        expected, OfThisPart(facts_, param, rank, a_.flow().sets().Get(set), room), event.call);
    if (d.Empty()) return;
    const std::string all = std::to_string(expected.size()) + " contributions, each once";
    if (!d.old.empty()) {
      Add("FS-22", rank, index, all, "also of an earlier step, from " + Text(d.old),
          "the gradient of " + where +
              " still holds contributions of an earlier step: clear accumulators each step");
    }
    if (!d.foreign.empty()) {
      Add("FS-05", rank, index, all, "also from " + Text(d.foreign),
          "the gradient of " + where +
              " holds contributions of ranks that are not in its data-parallel group");
    }
    if (!d.repeated.empty()) {
      Add(OuterOnly(param, rank, d.repeated, expected) ? "FS-19" : "FS-05", rank, index, all,
          "more than once from " + Text(d.repeated),
          "contributions to the gradient of " + where +
              " are reduced more than once: a sum counts them as often, an average of averages "
              "repeats its traffic");
    }
    if (!d.missing.empty()) {
      Add(MissingRequirement(param, rank, d, expected), rank, index, all,
          "nothing from " + Text(d.missing), "the gradient of " + where + " misses contributions");
    }
  }

  const char* MissingRequirement(const ParamFacts& param, int32_t rank, const Difference& d,
                                 const std::vector<Contribution>& expected) const {
    if (d.nodes.size() > 1 && d.missing_nodes.size() < d.nodes.size()) return "FS-12";
    const std::vector<int32_t>* inner = facts_.InnerList(param.expert, rank);
    const bool outer =
        facts_.spec().outer > 1 && inner != nullptr &&
        std::none_of(d.missing.begin(), d.missing.end(), [&](const auto& where) {
          return std::find(inner->begin(), inner->end(), where.first) != inner->end();
        });
    (void)expected;
    return outer ? "FS-19" : "FS-05";
  }

  // All contributions are repeated alike: what an outer reduction does that runs more than once.
  bool OuterOnly(const ParamFacts&, int32_t, const std::set<std::pair<int32_t, int32_t>>& repeated,
                 const std::vector<Contribution>& expected) const {
    std::set<std::pair<int32_t, int32_t>> all;
    for (const Contribution& one : expected) all.insert({one.rank, one.microbatch});
    return facts_.spec().outer > 1 && repeated == all;
  }

  void Add(const char* requirement, int32_t rank, int64_t event, std::string expected,
           std::string seen, std::string message) {
    sink_.Add(a_.At(requirement, rank, event), std::move(expected), std::move(seen),
              std::move(message));
  }

  const Analysis& a_;
  const int instance_;
  const InstanceFacts& facts_;
  ExpectedGrads expected_;
  const std::set<UnclearedSum> uncleared_;  // what is said of them where they are added to
  CheckResult& result_;
  FindingSink sink_;
};

}  // namespace

CheckResult CheckGradientContents(const Analysis& a) {
  CheckResult result;
  for (size_t i = 0; i < a.n_instances(); ++i) {
    Contents contents(a, static_cast<int>(i), result);
    for (int32_t rank = 0; rank < a.ranks(); ++rank) contents.JudgeRank(rank);
  }
  return result;
}

}  // namespace shardproof
