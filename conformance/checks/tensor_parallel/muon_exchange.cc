// Muon of shards exchanges over tp what muon_tp_mode needs, and nothing else (TP-07).
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "conformance/checks/tensor_parallel/tensor_parallel.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {

namespace {

// Engines may pad what they send to 256 bytes of fp32.
int64_t Padded(int64_t elements) { return (elements + 63) / 64 * 64; }

// Elements that arrive at a rank over tp while it steps one matrix, of which it holds rows x cols.
int64_t ArrivingOf(const MuonSpec& muon, int64_t rows, int64_t cols, int32_t dim, int32_t tp) {
  if (muon.tp_mode == MuonTpMode::kBlockwise) return 0;
  if (muon.tp_mode == MuonTpMode::kDuplicated) return tp * Padded(rows * cols);
  const int64_t side = dim == 0 ? cols : rows;  // of each step's Gram matrix
  return muon.ns_steps * Padded(side * side);
}

// Of all matrices of the rank.
int64_t ArrivingAt(const InstanceFacts& facts, int32_t rank) {
  const MuonSpec& muon = facts.spec().muon;
  const spf_model& tables = facts.model().Tables(facts.Place(rank));
  int64_t elements = 0;
  for (int32_t id = 0; id < tables.n_params; ++id) {
    const spf_param& param = tables.params[id];
    const ParamFacts& known = facts.Param(rank, id);
    if (param.tp_dim < 0 || !known.matrix || known.frozen) continue;
    const std::string_view module = tables.modules[param.module].name;
    const int64_t pieces = muon.split_qkv && module.ends_with("attention.qkv") ? 3 : 1;
    elements += pieces * ArrivingOf(muon, param.shape[0] / pieces, param.shape[1], param.tp_dim,
                                    facts.spec().model.tp);
  }
  return elements;
}

// Of an optimizer: flags, counts and norms are whole numbers or fp64.
bool Counts(const Event& event) {
  return event.dtype == SPF_F32 || event.dtype == SPF_BF16 || event.dtype == SPF_F16;
}

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
    const InstanceSpec& spec = facts_.spec();
    if (!IsSplit(facts_) || spec.optimizer != Optimizer::kMuon) return;
    const bool dealt = spec.strategy == ShardingStrategy::kLayerWise;
    for (int32_t call = 0; call < Length(facts_.calls()); ++call) {
      if (facts_.CallAt(call).letter != 't') continue;
      std::set<int32_t> done;
      for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
        if (!facts_.InGrid(rank) || done.contains(rank)) continue;
        // Each matrix is stepped by one of the ranks that it is dealt to, else by all of them.
        const std::vector<int32_t>* owners = dealt ? facts_.FullList(false, rank) : nullptr;
        const std::vector<int32_t> sharers =
            owners != nullptr ? *owners : std::vector<int32_t>{rank};
        done.insert(sharers.begin(), sharers.end());
        JudgeSharers(sharers, call);
      }
    }
  }

 private:
  void JudgeSharers(const std::vector<int32_t>& ranks, int32_t call) {
    const int64_t most = ArrivingAt(facts_, ranks.front());
    int64_t arrived = 0;
    for (const int32_t rank : ranks) {
      const Trace& trace = a_.trace(rank);
      for (const int64_t index : At(over_tp_, rank)) {
        const Event& event = At(trace.events, index);
        if (event.instance != instance_ || event.call != call || !Counts(event)) continue;
        const Range* recv = RecvRange(trace, event);
        arrived += recv->length / static_cast<int64_t>(DtypeBytes(event.dtype));
        if (arrived > most) return AddTooMuch(ranks, rank, index, arrived, most);
      }
    }
    Judge(result_, {"TP-07"});
    if (arrived > 0 || most == 0 || !Steps()) return;
    const Trace& trace = a_.trace(ranks.front());
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.kind != EventKind::kCallEnd || event.instance != instance_ || event.call != call ||
          event.status != SPF_OK)
        continue;
      sink_.Add(a_.At("TP-07", ranks.front(), static_cast<int64_t>(i)), Mode() + Exchanges(),
                "none does", "each rank orthogonalises its shard as if it were the matrix");
    }
  }

  void AddTooMuch(const std::vector<int32_t>& ranks, int32_t rank, int64_t index, int64_t arrived,
                  int64_t most) {
    Judge(result_, {"TP-07"});
    const std::string on = ranks.size() == 1 ? "" : " on the ranks " + ListText(ranks);
    sink_.Add(a_.At("TP-07", rank, index), Mode() + Needs(most) + on,
              std::to_string(arrived) + " with this one",
              "a matrix that every rank of tp holds whole goes over tp, or a split one more often "
              "than its mode asks");
  }

  // Every train step must change the weights.
  bool Steps() const { return facts_.spec().skip_norm <= 0 && !MustFail(facts_.spec()); }
  std::string Mode() const { return "muon_tp_mode = " + facts_.spec().muon.tp_mode.Text() + ": "; }
  static std::string Needs(int64_t most) {
    return most == 0 ? "nothing of a step of the optimizer goes over tp"
                     : "at most " + std::to_string(most) + " elements of a step arrive over tp";
  }
  std::string Exchanges() const {
    return facts_.spec().muon.tp_mode == MuonTpMode::kDistributed
               ? "Gram matrices of the shards are summed over tp"
               : "shards of the other ranks of tp arrive";
  }

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
