#include "reference/optim/orthogonaliser.h"

#include "reference/core/collectives.h"

namespace reference {

Orthogonaliser::Orthogonaliser(Context& context, const NewtonSchulzPlan& plan, int32_t module,
                               const Communicator* summed_over)
    : c_(context), plan_(plan), module_(module), summed_over_(summed_over) {
  for (Operand operand : {Operand::kSquares, Operand::kInverse, Operand::kX, Operand::kY,
                          Operand::kGram, Operand::kMixed}) {
    at(operand) =
        c_.host.Alloc(c_.streams.compute, ElementsOf(operand) * spf::SizeOf(DtypeOf(operand)),
                      spf::For(SPF_FOR_SCRATCH, module_));
  }
}

void Orthogonaliser::Free() {
  for (spf_addr& block : blocks_) c_.host.Free(c_.streams.compute, block);
}

void Orthogonaliser::Run(const MatrixPiece& piece, spf_addr u) {
  c_.host.Fill(c_.streams.compute, at(Operand::kSquares), 1, SPF_F64, 0);
  for (const RowRange& range : piece) {
    c_.host.Launch(
        c_.streams.compute, plan_.squares.kernel,
        {Rows(u, range.begin, range.count, SPF_F32, SPF_READ), Whole(Operand::kSquares, SPF_ADD)});
  }
  AddUp(plan_.squares);
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
  for (const PlannedLaunch& launch : plan_.iterate) {
    Launch(launch);
    AddUp(launch);
  }
}

void Orthogonaliser::Apply(const std::vector<BlockMove>& parts, double a, double b,
                           spf_addr weight) {
  for (const BlockMove& part : parts) {
    const spf_addr from = at(plan_.result) + Count(part.from) * spf::SizeOf(plan_.dtype);
    c_.host.Axpby(c_.streams.compute, a, from, plan_.dtype, b,
                  weight + Count(part.to) * sizeof(float), SPF_F32, Count(part.count));
  }
}

uint64_t Orthogonaliser::ElementsOf(Operand operand) const {
  const int64_t matrix = plan_.rows * plan_.cols, gram = plan_.side * plan_.side;
  const bool scalar = operand == Operand::kSquares || operand == Operand::kInverse;
  const bool square = operand == Operand::kGram || operand == Operand::kMixed;
  return Count(scalar ? 1 : square ? gram : matrix);
}

int32_t Orthogonaliser::DtypeOf(Operand operand) const {
  const bool scalar = operand == Operand::kSquares || operand == Operand::kInverse;
  return scalar ? SPF_F64 : plan_.dtype;
}

spf_span Orthogonaliser::Whole(Operand operand, spf_access access) {
  return {at(operand), ElementsOf(operand), DtypeOf(operand), access};
}

spf_span Orthogonaliser::Rows(spf_addr matrix, int64_t begin, int64_t count, int32_t dtype,
                              spf_access access) const {
  const auto cols = Count(plan_.cols);
  return {matrix + Count(begin) * cols * spf::SizeOf(dtype), Count(count) * cols, dtype, access};
}

void Orthogonaliser::Launch(const PlannedLaunch& launch) {
  std::vector<spf_span> spans;
  for (const PlannedSpan& span : launch.spans) spans.push_back(Whole(span.operand, span.access));
  c_.host.Launch(c_.streams.compute, launch.kernel, spans, launch.scalars);
}

void Orthogonaliser::AddUp(const PlannedLaunch& launch) {
  if (!launch.partial) return;
  const Operand sum = launch.spans.back().operand;
  CollectiveBatch(c_.host, *summed_over_, c_.streams.compute)
      .AllReduce(DtypeOf(sum), SPF_SUM, at(sum), static_cast<int64_t>(ElementsOf(sum)),
                 spf::For(SPF_FOR_OPTIMIZER, module_))
      .Issue();
}

}  // namespace reference
