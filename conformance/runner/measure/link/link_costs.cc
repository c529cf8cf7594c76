#include "conformance/runner/measure/link/link_costs.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/graph/cost_model.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {
namespace {

constexpr const char* kPhases[] = {"FWD", "BWD", "DGRAD", "WGRAD"};

// Members on each host.
struct Sides {
  int64_t here = 0, there = 0;
  std::vector<bool> across;  // by member: on the other host
};

Sides SidesOf(const Trace& trace, const Event& event) {
  const std::vector<int32_t>& members = At(trace.groups, event.group).world_ranks;
  const auto far = [&](int32_t rank) { return rank >= trace.world / 2; };
  Sides sides;
  for (size_t i = 0; i < members.size(); ++i) {
    sides.across.push_back(far(members[i]) != far(trace.rank));
    ++(sides.across.back() ? sides.there : sides.here);
  }
  return sides;
}

int64_t SumAcross(const Trace& trace, Slice counts, const Sides& sides, bool across) {
  int64_t sum = 0;
  for (size_t i = 0; i < counts.size(); ++i)
    if (sides.across[i] == across) sum += trace.numbers[counts.begin + i];
  return sum;
}

int64_t ElementsOverLink(const Trace& trace, const Event& event) {
  const Sides sides = SidesOf(trace, event);
  switch (event.collective) {
    case SPF_ALL_GATHER:
    case SPF_REDUCE_SCATTER:
    case SPF_ALL_REDUCE:
      return event.count * sides.here * sides.there;
    case SPF_ALL_GATHER_V:
      return std::max(SumAcross(trace, event.recv_counts, sides, true) * sides.here,
                      SumAcross(trace, event.recv_counts, sides, false) * sides.there);
    case SPF_ALL_TO_ALL_V:
      return std::max(SumAcross(trace, event.send_counts, sides, true),
                      SumAcross(trace, event.recv_counts, sides, true)) *
             sides.here;
    case SPF_BROADCAST:
      return event.count *
             (sides.across[static_cast<size_t>(event.peer)] ? sides.here : sides.there);
    case SPF_SEND:
    case SPF_RECV:
      return sides.across[static_cast<size_t>(event.peer)] ? event.count : 0;
    default:
      return 0;
  }
}

double Elements(const Model& model, ModelRank rank, const spf_node& node) {
  double elements = 0;
  const spf_uses& uses = node.uses[SPF_FWD];
  for (int32_t i = 0; i < uses.n; ++i) {
    if (uses.use[i].table != SPF_IN_PARAM) continue;
    const spf_param& param = model.Tables(rank).params[uses.use[i].id];
    if (param.n_dim > 1) elements += static_cast<double>(param.numel);
  }
  return elements;
}

bool IsGather(const Event& event) { return event.purpose == SPF_FOR_PARAM_FULL; }
bool IsReduction(const Event& event) {
  return event.purpose == SPF_FOR_GRAD || event.purpose == SPF_FOR_GRAD_SHARD ||
         event.purpose == SPF_FOR_OUTER_GRAD;
}

// Events of the train steps, by step; "begin" is where the first of the step's stands.
std::vector<Slice> TrainSteps(const Trace& trace) {
  std::vector<Slice> steps;
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (trace.Text(event.text) != "train_step") continue;
    if (event.kind == EventKind::kCallBegin) steps.push_back({i, i});
    if (event.kind == EventKind::kCallEnd && !steps.empty()) steps.back().end = i + 1;
  }
  if (steps.size() < 2) throw std::invalid_argument("a trace with fewer than two train steps");
  return steps;
}

class Ends {
 public:
  void Add(const Event& event, double cost) {
    if (IsGather(event) && !first_gather_) first_gather_ = cost;
    if (IsReduction(event)) last_reduction_ = cost;
    if (event.purpose == SPF_FOR_EXPERT_TOKENS) tokens_[event.microbatch].push_back(cost);
  }
  double Sum() const {
    double sum = first_gather_.value_or(0) + last_reduction_;
    if (tokens_.empty()) return sum;
    const std::vector<double>& first = tokens_.begin()->second;
    const std::vector<double>& last = tokens_.rbegin()->second;
    for (size_t i = 0; i < first.size() / 2; ++i) sum += first[i];
    for (size_t i = last.size() / 2; i < last.size(); ++i) sum += last[i];
    return sum;
  }

 private:
  std::optional<double> first_gather_;
  double last_reduction_ = 0;
  std::map<int32_t, std::vector<double>> tokens_;  // by microbatch, in order of issue
};

// What was issued until the end of that train step.
std::vector<Trace> UpTo(const std::vector<Trace>& traces, size_t step) {
  std::vector<Trace> cut;
  for (const Trace& trace : traces) {
    cut.push_back(trace);
    cut.back().events.resize(TrainSteps(trace)[step].end);
  }
  return cut;
}

double TotalOf(const std::vector<Trace>& traces, const graph::CostModel& costs) {
  return graph::Simulate(graph::Lower(traces), costs).total_us;
}

}  // namespace

uint64_t BytesOverLink(const Trace& trace, const Event& event) {
  return static_cast<uint64_t>(ElementsOverLink(trace, event)) * DtypeBytes(event.dtype);
}

NodeTimes::NodeTimes(const Model& model, ModelRank rank, double us_per_element)
    : model_(model), rank_(rank) {
  for (int32_t id = 0; id < model.node_count(rank); ++id) {
    const spf_node& node = model.Node(id, rank);
    const double forward = us_per_element * Elements(model, rank, node);
    if (forward == 0) continue;
    for (const int phase : {SPF_FWD, SPF_BWD, SPF_DGRAD, SPF_WGRAD}) {
      by_work_[std::string(node.name) + " " + kPhases[phase]] =
          phase == SPF_BWD ? 2 * forward : forward;
    }
  }
}

double NodeTimes::Of(std::string_view work) const {
  const auto found = by_work_.find(work);
  return found == by_work_.end() ? 0 : found->second;
}

double NodeTimes::Of(const Event& compute) const {
  return Of(std::string(model_.Node(compute.id, rank_).name) + " " + kPhases[compute.phase]);
}

double WorkTally::Lasts(const NodeTimes& times, std::string_view what, double took_us) {
  const double stated = times.Of(what);
  if (counting_ && stated > 0) {
    ++nodes_;
    late_ += took_us > stated;
  } else if (counting_ && !what.starts_with("alloc of") && !what.starts_with("free of")) {
    other_us_ += took_us;
  }
  return std::max(stated, took_us);
}

StepCosts CostsOf(const Trace& trace, const NodeTimes& nodes, const LinkCost& link) {
  const std::vector<Slice> steps = TrainSteps(trace);
  StepCosts costs;
  for (size_t step = 1; step < steps.size(); ++step) {
    Ends ends;
    for (uint32_t i = steps[step].begin; i < steps[step].end; ++i) {
      const Event& event = trace.events[i];
      if (event.kind == EventKind::kCompute) {
        costs.compute += nodes.Of(event);
        costs.nodes += nodes.Of(event) > 0;
      }
      if (event.kind == EventKind::kLaunch) ++costs.launches;
      if (event.kind != EventKind::kCollective || event.stream < 0) continue;
      const auto bytes = static_cast<double>(BytesOverLink(trace, event));
      if (bytes == 0) continue;
      const double cost = link.latency_us + link.us_per_byte * bytes;
      costs.communication += cost;
      ends.Add(event, cost);
    }
    costs.ends += ends.Sum();
  }
  const auto n = static_cast<int64_t>(steps.size() - 1);
  costs.compute /= static_cast<double>(n);
  costs.communication /= static_cast<double>(n);
  costs.ends /= static_cast<double>(n);
  costs.launches /= n;
  costs.nodes /= n;
  return costs;
}

double PredictedStep(const std::vector<Trace>& traces, const std::vector<NodeTimes>& nodes,
                     const LinkCost& link, double launch_us) {
  graph::CostModel costs;
  costs.duration_us = [&](const Trace& trace, const Event& event) {
    if (event.kind == EventKind::kCompute) return At(nodes, trace.rank).Of(event);
    if (event.kind == EventKind::kLaunch) return launch_us;
    if (event.kind != EventKind::kCollective || event.stream < 0) return 0.0;
    const auto bytes = static_cast<double>(BytesOverLink(trace, event));
    return bytes == 0 ? 0.0 : link.latency_us + link.us_per_byte * bytes;
  };
  const size_t steps = TrainSteps(traces.front()).size() - 1;
  return (TotalOf(UpTo(traces, steps), costs) - TotalOf(UpTo(traces, 0), costs)) /
         static_cast<double>(steps);
}

}  // namespace shardproof
