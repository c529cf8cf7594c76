#include "reference/optim/muon_step.h"

#include "reference/optim/orthogonaliser.h"
#include "reference/optim/shard_step.h"

namespace reference {
namespace {

void StepMatrix(Context& c, const Bucket& b, const BucketSlice& matrix, spf_addr u) {
  const MuonOptions& options = c.config.muon;
  const int64_t cols = c.host.model().params[matrix.param].shape[1];
  const uint64_t offset = b.Bytes(matrix.range_offset, SPF_F32);
  if (SplitOf(c, matrix.param).splits())
    return StepShard(c, matrix.param, b.module, u + offset, b.main + offset);
  for (const MatrixPiece& piece : PiecesOf(c.host.model(), matrix.param, options)) {
    const int64_t rows = RowsOf(piece);
    const NewtonSchulzPlan plan =
        PlanNewtonSchulz(rows, cols, StepsOf(options.coefficients, options.steps), options.eps,
                         options.bf16_iteration ? SPF_BF16 : SPF_F32);
    Orthogonaliser ortho(c, plan, b.module);
    ortho.Run(piece, u + offset);
    const double scale = options.extra_scale * ScaleOf(options.scale, rows, cols);
    ortho.Apply(OwnPart({}, piece, cols), -(c.config.lr * scale),
                1 - c.config.lr * c.config.weight_decay, b.main + offset);
    ortho.Free();
  }
}

}  // namespace

void StepMuon(Context& c, const Bucket& b, spf_addr x) {
  const auto n = Count(b.shard_size());
  const double beta = c.config.muon.momentum;
  c.host.Axpby(c.streams.compute, 1 - beta, x, SPF_F32, beta, b.momentum, SPF_F32, n);
  if (c.config.muon.nesterov)
    c.host.Axpby(c.streams.compute, beta, b.momentum, SPF_F32, 1 - beta, x, SPF_F32, n);
  const spf_addr u = c.config.muon.nesterov ? x : b.momentum;
  for (const BucketSlice& matrix : b.MySlices()) StepMatrix(c, b, matrix, u);
}

}  // namespace reference
