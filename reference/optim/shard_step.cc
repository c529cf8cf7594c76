#include "reference/optim/shard_step.h"

#include <algorithm>
#include <utility>

#include "reference/core/collectives.h"
#include "reference/optim/orthogonaliser.h"

namespace reference {
namespace {

// The shards of one matrix, put together on every rank.
class WholeMatrix {
 public:
  WholeMatrix(Context& context, const Communicator& ranks, const TpSplit& split, int32_t module)
      : c_(context), ranks_(ranks), split_(split), module_(module) {}

  // u: the rows of the piece, of so many columns, as they lie in the parameter.
  spf_addr Gather(const MatrixPiece& piece, int64_t cols, spf_addr u) {
    const int64_t rows = RowsOf(piece), count = rows * cols;
    whole_ = Floats(count * split_.ranks);
    const std::vector<BlockMove> moves = PutTogether(split_, rows, cols);
    spf_addr arrived = moves.empty() ? whole_ : Floats(count * split_.ranks);
    const spf_addr mine = arrived + Count(split_.rank * count) * sizeof(float);
    Move(OneAfterTheOther(piece, cols), u, mine);
    CollectiveBatch batch(c_.host, ranks_, c_.streams.compute);
    batch.AllGather(SPF_F32, mine, arrived, count, spf::For(SPF_FOR_OPTIMIZER, module_));
    batch.Issue();
    Move(moves, arrived, whole_);
    if (arrived != whole_) c_.host.Free(c_.streams.compute, arrived);
    return whole_;
  }
  void Free() { c_.host.Free(c_.streams.compute, whole_); }

 private:
  static std::vector<BlockMove> OneAfterTheOther(const MatrixPiece& piece, int64_t cols) {
    std::vector<BlockMove> moves = OwnPart({}, piece, cols);
    for (BlockMove& move : moves) std::swap(move.from, move.to);
    return moves;
  }
  spf_addr Floats(int64_t count) {
    return c_.host.Alloc(c_.streams.compute, Count(count) * sizeof(float),
                         spf::For(SPF_FOR_SCRATCH, module_));
  }
  void Move(const std::vector<BlockMove>& moves, spf_addr from, spf_addr to) {
    for (const BlockMove& move : moves) {
      c_.host.Copy(c_.streams.compute, to + Count(move.to) * sizeof(float),
                   from + Count(move.from) * sizeof(float), Count(move.count) * sizeof(float));
    }
  }

  Context& c_;
  const Communicator& ranks_;
  const TpSplit split_;
  const int32_t module_;
  spf_addr whole_ = 0;
};

}  // namespace

const Communicator& TpRanksOf(const Context& c, int32_t param) {
  const bool expert = (c.host.model().params[param].flags & SPF_PARAM_EXPERT) != 0;
  return expert ? c.groups.expert_tp : c.groups.tp;
}

TpSplit SplitOf(const Context& c, int32_t param) {
  const Communicator& ranks = TpRanksOf(c, param);
  return {c.host.model().params[param].tp_dim, std::max(ranks.size(), 1), ranks.rank};
}

void StepShard(Context& c, int32_t param, int32_t module, spf_addr u, spf_addr weight) {
  const MuonOptions& options = c.config.muon;
  const Communicator& ranks = TpRanksOf(c, param);
  const TpSplit split = SplitOf(c, param);
  const int64_t cols = c.host.model().params[param].shape[1];
  for (const MatrixPiece& piece : PiecesOf(c.host.model(), param, options, split)) {
    const ShardPlan plan = PlanShard(options.tp_mode, split, RowsOf(piece), cols,
                                     StepsOf(options.coefficients, options.steps), options.eps,
                                     options.bf16_iteration ? SPF_BF16 : SPF_F32);
    const double scale =
        options.extra_scale * ScaleOf(options.scale, plan.scale_rows, plan.scale_cols);
    const double a = -(c.config.lr * scale), b = 1 - c.config.lr * c.config.weight_decay;
    Orthogonaliser ortho(c, plan.newton_schulz, module, &ranks);
    if (plan.gather) {
      WholeMatrix whole(c, ranks, split, module);
      ortho.Run({{0, plan.newton_schulz.rows}}, whole.Gather(piece, cols, u));
      whole.Free();
    } else {
      ortho.Run(piece, u);
    }
    ortho.Apply(OwnPart(plan.gather ? split : TpSplit{}, piece, cols), a, b, weight);
    ortho.Free();
  }
}

}  // namespace reference
