#include "conformance/checks/graph/overlap_check.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/base/facts.h"
#include "conformance/checks/graph/cost_model.h"
#include "conformance/checks/graph/deadlock.h"
#include "conformance/checks/graph/early_buckets.h"
#include "conformance/checks/graph/finding_at.h"
#include "conformance/checks/graph/overlap_expected.h"
#include "conformance/checks/graph/overlap_work.h"
#include "conformance/checks/graph/read_buckets.h"
#include "conformance/checks/graph/requirement_ids.h"
#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

using namespace graph;
using overlap::Collector;
using overlap::Expect;
using overlap::Expected;
using overlap::Work;

constexpr size_t kNeighboursMax = 24;  // of a kernel, in issue order, that are tried on each side
constexpr size_t kModulesMin = 3;      // fewer units than this leave nothing to hide under

// As many as one entry call has.
size_t Most(const std::map<int32_t, std::set<int32_t>>& by_call) {
  size_t most = 0;
  for (const auto& [call, modules] : by_call) most = std::max(most, modules.size());
  return most;
}

// In some step there are several buckets, and none has more than half of the elements.
bool Spread(const Work& work) {
  return std::any_of(work.elements.begin(), work.elements.end(), [](const auto& call) {
    int64_t all = 0, largest = 0;
    for (const auto& [bucket, elements] : call.second) {
      all += elements;
      largest = std::max(largest, elements);
    }
    return call.second.size() >= kModulesMin && largest <= all / 2;
  });
}

// "layers.1" of "layers.1.mlp.fc1"; a module that is in no layer is its own.
std::string LayerOf(const std::string& module) {
  const size_t number = module.rfind("layers.", 0) == 0 ? std::string_view("layers.").size() : 0;
  return number == 0 ? module : module.substr(0, module.find('.', number));
}

class Judge {
 public:
  Judge(const Lowered& run, const std::vector<BroughtByEvent>& brought, CheckResult& result)
      : program_(*run.program()),
        collector_(program_, brought),
        result_(result),
        order_(run.may()) {}

  // facts: of an engine with buckets, else null.
  // An engine is the same on all ranks, but what a rank computes may differ: one that can hide is
  // enough.
  void Run(size_t instance, const Expected& expected, const InstanceFacts* facts) {
    Figures gathers, reductions;
    Overtaking twin;
    bool lumped = false, unused = false;
    for (size_t rank = 0; rank + 1 < program_.first_entry.size(); ++rank) {
      const Work work = collector_.Collect(rank, static_cast<int32_t>(instance), expected);
      const bool many = Most(work.gathered) >= kModulesMin;
      if (expected.gathers && many) {
        if (NothingBeside(work, rank, instance, facts))
          unused = true;
        else
          Count(work.gathers, work.computes, gathers);
      }
      if (expected.reductions && facts != nullptr && expected.aligned &&
          !(Spread(work) && Early(work, rank, instance, *facts))) {
        lumped |= !work.reductions.empty();
      } else if (expected.reductions && Most(work.reduced) >= kModulesMin) {
        Count(work.reductions, work.computes, reductions);
      }
      if (expected.twin && many) Twin(work, expected.limited, twin);
    }
    Report(kGathersHide, gathers, "gather",
           "let the gather wait only for the buffer that it fills");
    Report(kReductionsHide, reductions, "reduction",
           "wait for it only when its buffer is needed again");
    if (gathers.all == 0) TellWhyNoGather(expected, unused);
    if (reductions.all == 0) TellWhyNot(expected, lumped);
    ReportTwin(twin);
  }

 private:
  void NotAsked(const char* id, const std::string& why) {
    result_.not_checkable.push_back({id, why, NotCheckable::Kind::kNotAsked});
  }

  void NothingHides(const char* id, const std::string& what) {
    NotAsked(id, "no rank " + what +
                     " of three units or buckets in collectives of their own in a "
                     "train step: there is nothing to hide under");
  }

  // No gather was judged.
  void TellWhyNoGather(const Expected& expected, bool unused) {
    if (unused) {
      NotAsked(kGathersHide,
               "on each rank that gathers three buckets or more in a train step, the first compute "
               "needs the last of them, and no later one another: modules go unused, and there is "
               "nothing to hide under");
    } else if (expected.gathers && expected.gathers_by_name && expected.shared) {
      NothingHides(kGathersHide, "gathers parameters");
    }
  }

  // No reduction was judged.
  void TellWhyNot(const Expected& expected, bool lumped) {
    if (lumped) {
      NotAsked(kReductionsHide,
               "the engine's layout of aligned shards has fewer than three buckets, one with most "
               "of the elements, or none that is complete before the backward of the last layer: "
               "there is nothing to hide under");
    } else if (expected.reductions && expected.reductions_by_name && expected.shared) {
      NothingHides(kReductionsHide, "reduces gradients");
    }
  }

  // Modules that the gather of a bucket could run beside go unused.
  bool NothingBeside(const Work& work, size_t rank, size_t instance,
                     const InstanceFacts* facts) const {
    return facts != nullptr &&
           !SomethingRunsBeside(program_.trace(static_cast<int32_t>(rank)),
                                static_cast<int32_t>(instance), work.buckets, *facts);
  }

  bool Early(const Work& work, size_t rank, size_t instance, const InstanceFacts& facts) const {
    const auto world_rank = static_cast<int32_t>(rank);
    return SomeBucketIsEarly(
        program_.trace(world_rank), static_cast<int32_t>(instance), work.reduced,
        [&](int32_t node) -> std::string {
          if (node < 0 || node >= facts.node_count(world_rank)) return "";
          return LayerOf(facts.ModuleName(facts.Node(node, world_rank).module, world_rank));
        });
  }

  bool Hides(uint32_t kernel, const std::vector<uint32_t>& computes) {
    const auto behind = std::upper_bound(computes.begin(), computes.end(), kernel);
    const auto from = static_cast<size_t>(behind - computes.begin());
    for (size_t i = 0; i < kNeighboursMax; ++i) {
      if (i < from && order_.Unordered(kernel, computes[from - 1 - i])) return true;
      if (from + i < computes.size() && order_.Unordered(kernel, computes[from + i])) return true;
    }
    return false;
  }

  struct Figures {
    size_t all = 0, hidden = 0;
    uint32_t first = kNone;
  };

  void Count(const std::vector<uint32_t>& kernels, const std::vector<uint32_t>& computes,
             Figures& figures) {
    if (kernels.empty() || computes.empty()) return;
    if (figures.first == kNone) figures.first = kernels[0];
    figures.all += kernels.size();
    for (const uint32_t e : kernels) figures.hidden += Hides(e, computes);
  }

  void Report(const char* id, const Figures& figures, const std::string& what,
              const std::string& advice) {
    if (figures.all == 0) return;
    result_.judged.insert(id);
    const std::string share =
        std::to_string(figures.hidden) + " of " + std::to_string(figures.all) + " " + what + "s";
    result_.notes.push_back("overlap: " + share + " can run beside compute");
    if (figures.hidden > 0) return;
    const Entry& first = program_.entries[figures.first];
    Finding finding = FindingAt(id, program_, first.rank, first.event);
    finding.operation = Describe(program_, first);
    finding.expected = "a " + what + " that no order keeps apart from all compute";
    finding.seen = share;
    finding.message =
        "on all ranks, each of the " + std::to_string(figures.all) + " " + what +
        "s is ordered before or after all compute around it, so none can hide: " + advice;
    result_.findings.push_back(std::move(finding));
  }

  struct Overtaking {
    uint32_t blocked = kNone;  // the first gather that waits for a reduction
    bool free = false;         // one does not
    std::string left_out;      // why one need not
  };

  // Is there, in a step, a reduction that is issued before a gather, which can complete without it?
  void Twin(const Work& work, bool limited, Overtaking& twin) {
    for (const uint32_t gather : work.gathers) {
      const auto at = std::lower_bound(work.reductions.begin(), work.reductions.end(), gather);
      if (at == work.reductions.begin()) continue;
      const uint32_t reduction = *(at - 1);
      // The gathers of a step need the weights that came of the reductions of the one before.
      if (program_.event(program_.entries[gather]).call !=
          program_.event(program_.entries[reduction]).call)
        continue;
      if (order_.CompletesWithout(gather, reduction)) {
        result_.judged.insert(kTwinProgress);
        twin.free = true;
        return;
      }
      // What fills up its shard behind the reduction shares a communicator with outer reductions.
      const auto filled = work.filled_up.find(gather);
      if (filled != work.filled_up.end() && filled->second > reduction &&
          !order_.CompletesWithout(filled->second, reduction)) {
        twin.left_out = "sends a shard that outer ranks filled up behind that reduction";
        continue;
      }
      // It may not be issued ahead of compute, which waits for the reduction's buffer.
      const auto next = std::lower_bound(work.on_compute.begin(), work.on_compute.end(), gather);
      if (limited && next != work.on_compute.begin() &&
          !order_.CompletesWithout(*(next - 1), reduction)) {
        twin.left_out = "follows compute that waits for that reduction (prefetch_limit_bytes)";
        continue;
      }
      result_.judged.insert(kTwinProgress);
      if (twin.blocked == kNone) twin.blocked = gather;
    }
  }

  void ReportTwin(const Overtaking& twin) {
    if (twin.free) return;
    if (twin.blocked == kNone) {
      if (!twin.left_out.empty())
        NotAsked(kTwinProgress, "each gather behind a reduction of its step " + twin.left_out);
      return;
    }
    const Entry& entry = program_.entries[twin.blocked];
    Finding finding = FindingAt(kTwinProgress, program_, entry.rank, entry.event);
    finding.operation = Describe(program_, entry);
    finding.expected = "a gather that completes although the reduction issued before it does not";
    finding.seen = "every gather waits for the reduction issued before it";
    finding.message = "on all ranks, " + finding.seen +
                      ", so the twin communicator brings nothing: gather on the twin, on a stream "
                      "of its own, and wait for "
                      "reductions only where their results or buffers are needed";
    result_.findings.push_back(std::move(finding));
  }

  const Program& program_;
  const Collector collector_;
  CheckResult& result_;
  MayOrder& order_;
};

void NoteCost(const Program& program, CheckResult& result) {
  const CostedRun run = Simulate(program, {});
  double exposed = 0, wire = 0;
  for (const CostedRank& rank : run.ranks) {
    exposed = std::max(exposed, rank.exposed_us);
    wire = std::max(wire, rank.communication_us);
  }
  char text[160];
  std::snprintf(text, sizeof text,
                "overlap: under the default cost model %.0f us in all, communication %.0f us, "
                "exposed %.0f us",
                run.total_us, wire, exposed);
  result.notes.push_back(text);
}

}  // namespace

CheckResult CheckOverlap(const Case& spec, const graph::Lowered& run,
                         const std::vector<BroughtByEvent>& brought) {
  CheckResult result;
  const auto not_checkable = [&](const std::string& why) {
    for (const char* id : {kGathersHide, kReductionsHide, kTwinProgress})
      result.not_checkable.push_back({id, why});
    return result;
  };
  if (!spec.illegal.empty()) return result;
  const bool wanted =
      std::any_of(spec.instances.begin(), spec.instances.end(), [&](const InstanceSpec& instance) {
        const Expected expected = Expect(instance, spec.world);
        return expected.gathers || expected.reductions || expected.twin;
      });
  if (!wanted || static_cast<size_t>(spec.world) != run.traces().size()) return result;
  for (const Trace& trace : run.traces()) {
    if (trace.end != TraceEnd::kComplete) return not_checkable("the run was ended early");
    const Provides& has = trace.provides;
    if (!has.collectives || !has.sync || !has.work || !has.calls)
      return not_checkable("the traces do not provide all work and synchronisation");
  }
  const Program* program = run.program();
  if (program == nullptr) return not_checkable(run.why());
  if (!Sound(*program)) return not_checkable("the run does not match or can hang");
  Judge judge(run, brought, result);
  for (size_t i = 0; i < spec.instances.size(); ++i) {
    const Expected expected = Expect(spec.instances[i], spec.world);
    std::optional<InstanceFacts> facts;
    if (expected.buckets) facts.emplace(spec.instances[i], spec.world);
    judge.Run(i, expected, facts ? &*facts : nullptr);
  }
  NoteCost(*program, result);
  return result;
}

}  // namespace shardproof
