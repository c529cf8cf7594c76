// What Muon exchanges of shards: something where muon_tp_mode asks for it, nothing where it does
// not, and not much more than it takes (TP-07).
//
// How shards meet is the engine's affair: in which group, by which calls, in which dtype, on which
// data-parallel rank, and whether in one piece. So that nothing is exchanged is said only where
// nothing but single numbers goes between ranks of other shards, in the whole step and on all ranks
// that could share the work. That too much is, only of what goes over tp behind the step's last
// node, holds nothing that a node has computed, and is more than twice what gathering or adding up
// each matrix brings.
#include <algorithm>
#include <string_view>

#include "conformance/checks/tensor_parallel/tensor_parallel.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

constexpr int64_t kNumbers = 64;  // bytes of a message: norms, flags, counts

// Bytes that arrive at a rank over tp while it steps one matrix in fp32, of which it holds rows x
// cols.
int64_t ArrivingOf(const MuonSpec& muon, int64_t rows, int64_t cols, int32_t dim, int32_t tp) {
  if (muon.tp_mode == MuonTpMode::kBlockwise) return 0;
  if (muon.tp_mode == MuonTpMode::kDuplicated) return 4 * tp * rows * cols;
  const int64_t side = dim == 0 ? cols : rows;  // of each step's Gram matrix
  return 4 * muon.ns_steps * side * side;
}

// Of all matrices of the rank.
int64_t ArrivingAt(const InstanceFacts& facts, int32_t rank) {
  const MuonSpec& muon = facts.spec().muon;
  const spf_model& tables = facts.model().Tables(facts.Place(rank));
  int64_t bytes = 0;
  for (int32_t id = 0; id < tables.n_params; ++id) {
    const spf_param& param = tables.params[id];
    const ParamFacts& known = facts.Param(rank, id);
    if (param.tp_dim < 0 || !known.matrix || known.frozen) continue;
    const std::string_view module = tables.modules[param.module].name;
    const int64_t pieces = muon.split_qkv && module.ends_with("attention.qkv") ? 3 : 1;
    bytes += pieces * ArrivingOf(muon, param.shape[0] / pieces, param.shape[1], param.tp_dim,
                                 facts.spec().model.tp);
  }
  return bytes;
}

// What a rank's exchange of one call amounts to, in bytes.
struct Exchanged {
  int64_t between = 0;    // ranks of other shards
  int64_t behind = 0;     // the last node, over tp
  int64_t last = -1;      // the last event of that
  int64_t call_end = -1;  // of a call that went well
};

class Exchange {
 public:
  Exchange(const Analysis& a, const OverTp& over_tp, size_t instance, CheckResult& result,
           FindingSink& sink)
      : a_(a),
        over_tp_(over_tp),
        instance_(static_cast<int32_t>(instance)),
        facts_(a.Facts(instance)),
        result_(result),
        sink_(sink) {}

  void Run() {
    if (!IsSplit(facts_) || facts_.spec().optimizer != Optimizer::kMuon) return;
    for (int32_t call = 0; call < Length(facts_.calls()); ++call) {
      if (facts_.CallAt(call).letter != 't') continue;
      for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
        if (!facts_.InGrid(rank)) continue;
        const std::vector<int32_t>* list = facts_.FullList(false, rank);
        const std::vector<int32_t> sharers = list != nullptr ? *list : std::vector<int32_t>{rank};
        if (*std::min_element(sharers.begin(), sharers.end()) == rank) JudgeCall(sharers, call);
      }
    }
  }

 private:
  Exchanged Of(int32_t rank, int32_t call) const {
    const Trace& trace = a_.trace(rank);
    Exchanged sum;
    int64_t last_node = -1;
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.instance != instance_ || event.call != call) continue;
      const auto index = static_cast<int64_t>(i);
      if (event.kind == EventKind::kCompute) last_node = index;
      if (event.kind == EventKind::kCallEnd && event.status == SPF_OK) sum.call_end = index;
    }
    const std::vector<int32_t>* tp = facts_.List("tp", rank);
    // Two numbers in fp64 for each parameter from each rank, and some for all of them.
    const int64_t numbers = kNumbers + 16 * facts_.spec().model.tp * facts_.n_params(rank);
    for (const Crossing& crossing : At(over_tp_, rank)) {
      const Event& event = At(trace.events, crossing.event);
      if (event.instance != instance_ || event.call != call) continue;
      const int64_t bytes = RecvRange(trace, event)->length;
      if (bytes > kNumbers) sum.between += bytes;
      std::vector<int32_t> ranks = At(trace.groups, event.group).world_ranks;
      std::sort(ranks.begin(), ranks.end());
      if (!crossing.plain || bytes <= numbers || crossing.event < last_node || tp == nullptr ||
          ranks != *tp)
        continue;
      sum.behind += bytes;
      sum.last = crossing.event;
    }
    return sum;
  }

  // The ranks that hold the same shards: each steps all of them, or they share them out.
  void JudgeCall(const std::vector<int32_t>& ranks, int32_t call) {
    Exchanged all, busiest, first;
    int32_t busiest_rank = ranks.front();
    for (const int32_t rank : ranks) {
      const Exchanged one = Of(rank, call);
      if (one.call_end < 0) return;  // what it would have received is not known
      if (rank == ranks.front()) first = one;
      all.between += one.between;
      all.behind += one.behind;
      if (one.behind <= busiest.behind) continue;
      busiest = one;
      busiest_rank = rank;
    }
    const bool dealt = facts_.spec().strategy == ShardingStrategy::kLayerWise;
    const int64_t needs = ArrivingAt(facts_, ranks.front()) * (dealt ? 1 : Length(ranks));
    const std::string on =
        ranks.size() == 1 ? "" : " on the ranks " + ListText(ranks) + " together";
    Judge(result_, {"TP-07"});
    if (all.behind > 2 * needs) {
      sink_.Add(a_.At("TP-07", busiest_rank, busiest.last), Mode() + Most(2 * needs) + on,
                std::to_string(all.behind) + " bytes",
                needs == 0 ? "each rank steps what it holds as if it were the matrix: shards do "
                             "not meet in this mode"
                           : "matrices that every rank of tp holds whole go over tp, or split ones "
                             "more than twice");
    } else if (all.between == 0 && needs > 0 && MustStep()) {
      sink_.Add(a_.At("TP-07", ranks.front(), first.call_end), Mode() + Least() + on,
                "nothing but single numbers",
                "each rank orthogonalises its shard as if it were the matrix, or exchanges it with "
                "ranks that hold the same one");
    }
  }

  static std::string Most(int64_t bytes) {
    return bytes == 0 ? "nothing arrives over tp behind the last node of a step"
                      : "at most " + std::to_string(bytes) +
                            " bytes (twice what the split matrices take) arrive over tp behind "
                            "the last node of a step";
  }
  std::string Least() const {
    return facts_.spec().muon.tp_mode == MuonTpMode::kDistributed
               ? "Gram matrices of the shards are summed over tp"
               : "shards of the other ranks of tp arrive";
  }
  // Every train step must change the weights.
  bool MustStep() const { return facts_.spec().skip_norm <= 0 && !MustFail(facts_.spec()); }
  std::string Mode() const { return "muon_tp_mode = " + facts_.spec().muon.tp_mode.Text() + ": "; }

  const Analysis& a_;
  const OverTp& over_tp_;
  const int32_t instance_;
  const InstanceFacts& facts_;
  CheckResult& result_;
  FindingSink& sink_;
};

}  // namespace

CheckResult CheckTpMuon(const Analysis& a, const OverTp& over_tp) {
  CheckResult result;
  FindingSink sink(result);
  for (size_t i = 0; i < a.n_instances(); ++i) Exchange(a, over_tp, i, result, sink).Run();
  return result;
}

}  // namespace shardproof
