// link_costs.h: what do a step's kernels and its communication cost, where the first take a stated
// time and the second goes over one link between two hosts?
//
// Ranks below half of the world are on one host, the others on the other one. All times in
// microseconds.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/model/model.h"
#include "conformance/trace/event.h"

namespace shardproof {

// Of an operation: latency, and a byte in the direction in which more go.
struct LinkCost {
  double latency_us = 0, us_per_byte = 0;
};

// Bytes that an operation sends over the link, in the direction in which more go, as one member
// issued it: all_to_all_v as if all members on this host sent alike. Every rank sends to every
// other one what that one needs (conformance/fabric/mpi).
uint64_t BytesOverLink(const Trace& trace, const Event& event);

// How long nodes last, by "NODE PHASE", the name that the host gives their work: in proportion to
// the elements of the matrices that they use, a whole backward twice as long as a forward.
class NodeTimes {
 public:
  NodeTimes(const Model& model, ModelRank rank, double us_per_element);
  // 0: it is no such node.
  double Of(std::string_view work) const;
  double Of(const Event& compute) const;  // REQUIRES: kCompute

 private:
  const Model& model_;
  ModelRank rank_;
  std::map<std::string, double, std::less<>> by_work_;
};

// What device work took, told as it ends (MpiOptions::lasts_us); for one rank.
class WorkTally {
 public:
  void Count(bool on) { counting_ = on; }
  // How long it lasts. What has no stated time takes its own: the optimizer, casts, nodes without a
  // matrix. Poison of fresh and freed memory is left out.
  double Lasts(const NodeTimes& times, std::string_view what, double took_us);
  int64_t nodes() const { return nodes_; }  // with a stated time
  int64_t late() const { return late_; }    // of them: took longer
  double other_us() const { return other_us_; }

 private:
  bool counting_ = false;
  int64_t nodes_ = 0, late_ = 0;
  double other_us_ = 0;
};

// Of one rank, a step on average, of the operations that its engine has issued.
struct StepCosts {
  double compute = 0;        // nodes; with us_per_element = 1: elements
  double communication = 0;  // all operations, one after another
  // Work without a stated time (WorkTally), most of it the optimizer's. CostsOf does not know it.
  double other = 0;
  // Of the communication what stands at an end: the first gather and the last reduction; of tokens,
  // the exchanges of the first microbatch's forward and of the last one's backward.
  double ends = 0;
  int64_t launches = 0, nodes = 0;  // nodes: of those that last
};
// Of the train steps behind the first one. REQUIRES: there are some.
StepCosts CostsOf(const Trace& trace, const NodeTimes& nodes, const LinkCost& link);

// The same traces replayed under these costs (checks/graph/cost_model.h): a train step behind the
// first one, on average. launch_us: of each launch. nodes: by rank.
double PredictedStep(const std::vector<Trace>& traces, const std::vector<NodeTimes>& nodes,
                     const LinkCost& link, double launch_us);

}  // namespace shardproof
