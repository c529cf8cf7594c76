#include "conformance/checks/base/of_the_case.h"

#include <exception>

#include "conformance/abi/shardproof.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

using Instances = std::vector<std::unique_ptr<InstanceFacts>>;

// What an event names that the case does not have; empty: nothing.
std::string NotOfTheCase(const Trace& trace, const Event& event, const Instances& instances) {
  if (event.instance >= instances.size())
    return "engine instance " + std::to_string(event.instance);
  const InstanceFacts& facts = *instances[event.instance];
  const int32_t rank = trace.rank;
  // The last call of all is destroy, which stands in no script.
  if (event.call > Length(facts.calls())) return "entry call " + std::to_string(event.call);
  for (uint32_t i = event.reads.begin; i < event.reads.end; ++i) {
    if (trace.reads[i].param < 0 || trace.reads[i].param >= facts.n_params(rank))
      return "parameter " + std::to_string(trace.reads[i].param) + " as read";
  }
  const bool tensor = event.kind == EventKind::kInit ||
                      (event.kind == EventKind::kPublish &&
                       (event.result == SPF_RESULT_PARAM || event.result == SPF_RESULT_GRAD));
  if (tensor && (event.id < 0 || event.id >= facts.n_params(rank)))
    return "parameter " + std::to_string(event.id);
  if (event.kind != EventKind::kCompute) return "";
  if (event.id < 0 || event.id >= facts.node_count(rank)) return "node " + std::to_string(event.id);
  return event.phase > SPF_WGRAD ? "phase " + std::to_string(event.phase) : "";
}

}  // namespace

std::optional<Stranger> FindStranger(const std::vector<Trace>& traces, const Instances& instances) {
  for (const Trace& trace : traces) {
    for (size_t i = 0; i < trace.events.size(); ++i) {
      std::string what = NotOfTheCase(trace, trace.events[i], instances);
      if (!what.empty()) return Stranger{trace.rank, static_cast<int64_t>(i), std::move(what)};
    }
  }
  return std::nullopt;
}

std::optional<Stranger> FindStranger(const std::vector<Trace>& traces, const Case& c) {
  if (!c.illegal.empty()) return std::nullopt;
  Instances instances;
  try {
    for (const InstanceSpec& spec : c.instances)
      instances.push_back(std::make_unique<InstanceFacts>(spec, c.world));
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return FindStranger(traces, instances);
}

std::string StrangerText(const Stranger& stranger) {
  return "rank " + std::to_string(stranger.rank) + ", event " + std::to_string(stranger.event) +
         ", names " + stranger.what + ": the trace is not of this case";
}

}  // namespace shardproof
