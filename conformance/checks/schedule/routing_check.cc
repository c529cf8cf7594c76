// Does each dispatch send the rows that the router chose, of its own microbatch?
//
// What every rank sends to every other follows from the data and the weights alone, so the oracle
// knows it. Without an oracle exchanges are judged against one another (exchange_check.cc).
#include <algorithm>
#include <numeric>
#include <optional>

#include "conformance/checks/schedule/schedule.h"
#include "conformance/common/at.h"
#include "conformance/oracle/oracle.h"

namespace shardproof::schedule {

namespace {

using Rows = std::vector<int64_t>;

std::string RowsText(const Rows& rows) {
  std::string text;
  for (const int64_t n : rows) text += (text.empty() ? "[" : ",") + std::to_string(n);
  return text + "]";
}

class Routing {
 public:
  Routing(const Facts& facts, CheckResult& result, FindingSink& sink)
      : facts_(facts), a_(facts.a()), result_(result), sink_(sink) {}

  void Judge(const Exchange& exchange) {
    const bool dispatches =
        exchange.node >= 0 && !exchange.backward && !exchange.again && !exchange.counts;
    if (!dispatches || exchange.microbatch < 0) return;
    const InstanceFacts& of = a_.Facts(size_t(exchange.instance));
    const std::optional<Rows> want = Chosen(exchange, exchange.microbatch);
    if (!want) return;
    shardproof::Judge(result_, {"EP-28"});
    Rows seen = exchange.send;
    for (int64_t& count : seen) count /= std::max<int64_t>(1, exchange.row);
    if (seen == *want) return;
    for (int32_t m = 0; m < of.spec().microbatches; ++m) {
      if (m == exchange.microbatch || Chosen(exchange, m) != seen) continue;
      return Add("EP-27", exchange, *want, seen,
                 "the rows of microbatch " + std::to_string(exchange.microbatch) +
                     " are sent with the split sizes of microbatch " + std::to_string(m));
    }
    Add("EP-28", exchange, *want, seen,
        "other numbers of rows are sent than the router chose for this microbatch");
  }

 private:
  // Rows to each member of the group, as the router chose for a microbatch of the rank; nothing if
  // that is not known.
  std::optional<Rows> Chosen(const Exchange& exchange, int32_t microbatch) const {
    const auto instance = size_t(exchange.instance);
    const InstanceFacts& of = a_.Facts(instance);
    const spf_node& node = of.Node(exchange.node, exchange.rank);
    if (instance >= a_.run().oracles.size() || node.send_counts < 0) return std::nullopt;
    const auto& calls = a_.run().oracles[instance]->calls;
    if (exchange.call < 0 || exchange.call >= Length(calls)) return std::nullopt;
    std::string value = of.model().Tables(of.Place(exchange.rank)).values[node.send_counts].name;
    const size_t at = value.find(".send_counts");
    if (at == std::string::npos) return std::nullopt;  // the way back
    value.replace(at, std::string_view(".send_counts").size(), ".expert_counts");
    const int64_t sample = int64_t{microbatch} * DpCpSize(of.spec()) + of.DataRank(exchange.rank);
    const auto& known = At(calls, exchange.call).expert_rows;
    const auto rows = known.find({sample, value});
    const auto members = static_cast<int64_t>(exchange.send.size());
    if (rows == known.end() || members == 0) return std::nullopt;
    const bool in_parts = of.spec().model.sequence_parallel;
    const int64_t experts = Length(rows->second) / (in_parts ? of.spec().model.tp : 1);
    const int64_t each = experts / members;
    const int64_t part = in_parts ? of.Place(exchange.rank).tp : 0;
    Rows chosen;
    for (auto expert = rows->second.begin() + part * experts; Length(chosen) < members;
         expert += each)
      chosen.push_back(std::accumulate(expert, expert + each, int64_t{0}));
    return chosen;
  }

  void Add(const char* requirement, const Exchange& exchange, const Rows& expected,
           const Rows& seen, std::string message) {
    sink_.Add(a_.At(requirement, exchange.rank, exchange.event),
              RowsText(expected) + " rows to the members of the group", RowsText(seen),
              std::move(message) + " (" + Text(a_, exchange) + ")");
  }

  const Facts& facts_;
  const Analysis& a_;
  CheckResult& result_;
  FindingSink& sink_;
};

}  // namespace

CheckResult CheckRouting(const Facts& facts) {
  CheckResult result;
  FindingSink sink(result);
  Routing routing(facts, result, sink);
  for (const auto& of_rank : facts.exchanges()) {
    for (const Exchange& exchange : of_rank) routing.Judge(exchange);
  }
  return result;
}

}  // namespace shardproof::schedule
