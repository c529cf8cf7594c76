#include "conformance/checks/schedule/asked.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "conformance/checks/base/nodes.h"

namespace shardproof::schedule {

bool Asks(const InstanceSpec& spec) { return spec.overlap_moe || spec.model.moe.experts > 0; }

bool Overlaps(const InstanceSpec& spec) {
  return spec.overlap_moe && spec.pp == 1 && spec.chunks == 1 && !spec.model.reused;
}

bool OverlapsInPipeline(const InstanceSpec& spec) {
  return spec.overlap_moe && spec.pp > 1 && spec.chunks > 1 && !spec.model.reused;
}

namespace {

// What the entry calls of an instance have in them.
struct Contents {
  bool trains = false, evaluates = false;
  bool moves = false;    // rows between ranks
  bool gathers = false;  // parameters are held by several ranks
  bool meets = false;    // a layer in which both sides of a combined step are at the same time
};

// Forward layer i stands beside backward layer L - 1 - i of the microbatch before.
bool Meet(const std::vector<int32_t>& forward, const std::vector<int32_t>& backward) {
  for (size_t i = 0; i < std::min(forward.size(), backward.size()); ++i) {
    if (forward[i] == backward[backward.size() - 1 - i]) return true;
  }
  return false;
}

void LookAtCall(const InstanceFacts& facts, int32_t rank, const ScriptCall& call,
                Contents& contents) {
  const InstanceSpec& spec = facts.spec();
  const std::vector<int32_t>* ep = facts.List("ep", rank);
  const bool alone = ep == nullptr || ep->size() < 2;
  std::vector<int32_t> before;
  for (int32_t m = 0; m < spec.microbatches; ++m) {
    const int64_t sample = int64_t{m} * DpCpSize(spec) + facts.DataRank(rank);
    const Nodes nodes(facts.model().Tables(facts.Place(rank)),
                      facts.model().Program(call.step, sample, facts.Place(rank)));
    const std::vector<int32_t>& layers = nodes.layers();
    contents.moves |= !alone && std::any_of(layers.begin(), layers.end(),
                                            [&](int32_t l) { return nodes.IsMoe(l); });
    contents.meets |= call.letter == 't' && Meet(layers, before);
    before = layers;
  }
}

Contents LookAt(const InstanceFacts& facts, int32_t world) {
  Contents contents;
  for (int32_t rank = 0; rank < world; ++rank) {
    if (!facts.InGrid(rank)) continue;
    const std::vector<int32_t>* list = facts.InnerList(false, rank);
    contents.gathers |= list != nullptr && list->size() > 1;
    for (const ScriptCall& call : facts.calls()) {
      contents.trains |= call.letter == 't';
      contents.evaluates |= call.letter == 'e';
      if (call.letter == 't' || call.letter == 'e') LookAtCall(facts, rank, call, contents);
    }
  }
  return contents;
}

// Rows, each asked for under a condition.
class Rows {
 public:
  void Ask(bool asked, std::initializer_list<const char*> ids) {
    if (asked) rows_.insert(ids.begin(), ids.end());
  }
  std::set<std::string> Take() { return std::move(rows_); }

 private:
  std::set<std::string> rows_;
};

// What is issued, in which order, and where rows go.
void AskForOrder(const InstanceSpec& spec, const Contents& has, Rows& rows) {
  const bool steps = has.trains || has.evaluates;
  const bool whole = spec.pp == 1 && spec.chunks == 1 && !spec.model.reused;
  const bool combined = spec.overlap_moe && has.trains;
  rows.Ask(steps && whole, {"EP-01"});
  rows.Ask(combined && whole, {"EP-05"});
  rows.Ask(combined && whole && spec.model.layers > 0, {"EP-02", "EP-03", "EP-04"});
  rows.Ask(steps && whole && !spec.delay_wgrad, {"EP-38"});
  rows.Ask(!spec.overlap_moe && has.trains && whole && !spec.recompute, {"EP-38"});
  const bool pipelined = OverlapsInPipeline(spec) && has.trains;
  rows.Ask(pipelined, {"EP-01", "EP-05"});
  rows.Ask(pipelined && spec.model.layers > 0, {"EP-02"});
  rows.Ask(pipelined && !spec.delay_wgrad, {"EP-38"});
  rows.Ask(has.moves, {"EP-25", "EP-26", "EP-28", "EP-29"});
  rows.Ask(has.moves && has.trains, {"EP-27"});
}

// What is hidden, held and reduced under the schedule.
void AskForSharding(const InstanceFacts& facts, const Contents& has, Rows& rows) {
  const InstanceSpec& spec = facts.spec();
  const bool sharded = ShardsParams(spec), replicated = spec.strategy == ShardingStrategy::kNoShard;
  const bool released = sharded && has.trains && has.gathers && !facts.units(spec.offset).empty();
  rows.Ask(true, {"EP-07", "EP-08"});
  rows.Ask(has.evaluates, {"EP-36"});
  rows.Ask(has.moves, {"EP-06"});
  rows.Ask(has.moves && has.trains && spec.microbatches > 1 && !spec.check_for_nan, {"EP-33"});
  rows.Ask(!replicated, {"EP-09", "EP-14", "EP-15", "EP-16"});
  rows.Ask(sharded && has.trains, {"EP-10", "EP-17"});
  // A layer-wise step need not gather: LW rows say when it must.
  const bool layer_wise = spec.strategy == ShardingStrategy::kLayerWise;
  rows.Ask(!replicated && !layer_wise && has.gathers, {"EP-10", "EP-12"});
  rows.Ask(released, {"EP-11"});
  rows.Ask(released && has.meets, {"EP-13"});
  rows.Ask(has.trains, {"EP-18", "EP-19", "EP-20", "EP-21"});
  rows.Ask(has.trains && has.gathers, {"EP-24"});
}

}  // namespace

std::set<std::string> RowsAskedFor(const InstanceFacts& facts, int32_t world) {
  const InstanceSpec& spec = facts.spec();
  if (!Asks(spec)) return {};
  const Contents has = LookAt(facts, world);
  Rows rows;
  AskForOrder(spec, has, rows);
  if (Overlaps(spec) && (has.trains || has.evaluates)) AskForSharding(facts, has, rows);
  return rows.Take();
}

}  // namespace shardproof::schedule
