#include "reference/optim/muon_step.h"

#include <array>

#include "reference/optim/muon.h"

namespace reference {
namespace {

// Scratch of one orthogonalisation, and its launches.
class Orthogonaliser {
 public:
  Orthogonaliser(Context& context, const NewtonSchulzPlan& plan, int32_t module)
      : c_(context), plan_(plan) {
    for (Operand operand : {Operand::kSquares, Operand::kInverse, Operand::kX, Operand::kY,
                            Operand::kGram, Operand::kMixed}) {
      at(operand) = c_.host.Alloc(c_.streams.compute, ElementsOf(operand) * SizeOf(operand),
                                  spf::For(SPF_FOR_SCRATCH, module));
    }
  }
  void Free() {
    for (spf_addr& block : blocks_) c_.host.Free(c_.streams.compute, block);
  }

  // u: the rows of the piece, in order, as they lie in the parameter.
  void Run(const MatrixPiece& piece, spf_addr u) {
    c_.host.Fill(c_.streams.compute, at(Operand::kSquares), 1, SPF_F64, 0);
    for (const RowRange& range : piece) {
      c_.host.Launch(c_.streams.compute, SPF_K_SUM_SQUARES,
                     {Rows(u, range.begin, range.count, SPF_F32, SPF_READ),
                      Whole(Operand::kSquares, SPF_ADD)});
    }
    Launch(plan_.norm);
    int64_t done = 0;
    for (const RowRange& range : piece) {
      c_.host.Launch(c_.streams.compute, plan_.normalise.kernel,
                     {Rows(u, range.begin, range.count, SPF_F32, SPF_READ),
                      Rows(at(Operand::kX), done, range.count, plan_.dtype, SPF_WRITE),
                      Whole(Operand::kInverse, SPF_READ)},
                     plan_.normalise.scalars);
      done += range.count;
    }
    for (const PlannedLaunch& launch : plan_.iterate) Launch(launch);
  }

  // weight = a * result + b * weight, row by row of the piece.
  void Apply(const MatrixPiece& piece, double a, double b, spf_addr weight) {
    int64_t done = 0;
    for (const RowRange& range : piece) {
      const spf_span from = Rows(at(plan_.result), done, range.count, plan_.dtype, SPF_READ);
      const spf_span to = Rows(weight, range.begin, range.count, SPF_F32, SPF_ADD);
      c_.host.Axpby(c_.streams.compute, a, from.addr, from.dtype, b, to.addr, to.dtype, to.count);
      done += range.count;
    }
  }

 private:
  spf_addr& at(Operand operand) { return blocks_[static_cast<size_t>(operand)]; }

  uint64_t ElementsOf(Operand operand) const {
    const int64_t matrix = plan_.rows * plan_.cols, gram = plan_.side * plan_.side;
    const bool scalar = operand == Operand::kSquares || operand == Operand::kInverse;
    const bool square = operand == Operand::kGram || operand == Operand::kMixed;
    return static_cast<uint64_t>(scalar ? 1 : square ? gram : matrix);
  }
  int32_t DtypeOf(Operand operand) const {
    const bool scalar = operand == Operand::kSquares || operand == Operand::kInverse;
    return scalar ? SPF_F64 : plan_.dtype;
  }
  uint64_t SizeOf(Operand operand) const { return spf::SizeOf(DtypeOf(operand)); }

  spf_span Whole(Operand operand, spf_access access) {
    return {at(operand), ElementsOf(operand), DtypeOf(operand), access};
  }
  spf_span Rows(spf_addr matrix, int64_t begin, int64_t count, int32_t dtype,
                spf_access access) const {
    const auto cols = static_cast<uint64_t>(plan_.cols);
    return {matrix + static_cast<uint64_t>(begin) * cols * spf::SizeOf(dtype),
            static_cast<uint64_t>(count) * cols, dtype, access};
  }
  void Launch(const PlannedLaunch& launch) {
    std::vector<spf_span> spans;
    for (const PlannedSpan& span : launch.spans) spans.push_back(Whole(span.operand, span.access));
    c_.host.Launch(c_.streams.compute, launch.kernel, spans, launch.scalars);
  }

  Context& c_;
  const NewtonSchulzPlan plan_;
  std::array<spf_addr, 7> blocks_{};  // by Operand
};

void StepMatrix(Context& c, const Bucket& b, const BucketSlice& matrix, spf_addr u) {
  const MuonOptions& options = c.config.muon;
  const int64_t cols = c.host.model().params[matrix.param].shape[1];
  const uint64_t offset = b.Bytes(matrix.range_offset, SPF_F32);
  for (const MatrixPiece& piece : PiecesOf(c.host.model(), matrix.param, options.split_qkv)) {
    const int64_t rows = RowsOf(piece);
    const NewtonSchulzPlan plan =
        PlanNewtonSchulz(rows, cols, StepsOf(options.coefficients, options.steps), options.eps,
                         options.bf16_iteration ? SPF_BF16 : SPF_F32);
    Orthogonaliser ortho(c, plan, b.module);
    ortho.Run(piece, u + offset);
    const double scale = options.extra_scale * ScaleOf(options.scale, rows, cols);
    ortho.Apply(piece, -(c.config.lr * scale), 1 - c.config.lr * c.config.weight_decay,
                b.main + offset);
    ortho.Free();
  }
}

}  // namespace

void StepMuon(Context& c, const Bucket& b, spf_addr x) {
  const auto n = static_cast<uint64_t>(b.shard_size());
  const double beta = c.config.muon.momentum;
  c.host.Axpby(c.streams.compute, 1 - beta, x, SPF_F32, beta, b.momentum, SPF_F32, n);
  if (c.config.muon.nesterov)
    c.host.Axpby(c.streams.compute, beta, b.momentum, SPF_F32, 1 - beta, x, SPF_F32, n);
  const spf_addr u = c.config.muon.nesterov ? x : b.momentum;
  for (const BucketSlice& matrix : b.MySlices()) StepMatrix(c, b, matrix, u);
}

}  // namespace reference
