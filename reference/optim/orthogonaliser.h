// orthogonaliser.h: how is one Newton-Schulz plan launched, with which memory?
//
// Everything on the compute stream. Where the plan is of a shard, what is partial in it is
// all-reduced over the ranks that hold the others, on the same stream: in F64 the squared norm, in
// the plan's dtype the Gram matrices.
#pragma once
#include <array>

#include "reference/core/context.h"
#include "reference/muon/muon.h"
#include "reference/muon/tensor_parallel.h"

namespace reference {

class Orthogonaliser {
 public:
  // summed_over: needed where something in the plan is partial; outlives this.
  Orthogonaliser(Context& context, const NewtonSchulzPlan& plan, int32_t module,
                 const Communicator* summed_over = nullptr);
  void Free();

  // u: the rows of the piece, in order, as they lie in the parameter.
  void Run(const MatrixPiece& piece, spf_addr u);

  // weight = a * result + b * weight, for these parts of the result (OwnPart).
  void Apply(const std::vector<BlockMove>& parts, double a, double b, spf_addr weight);

 private:
  spf_addr& at(Operand operand) { return At(blocks_, operand); }
  uint64_t ElementsOf(Operand operand) const;
  int32_t DtypeOf(Operand operand) const;
  spf_span Whole(Operand operand, spf_access access);
  spf_span Rows(spf_addr matrix, int64_t begin, int64_t count, int32_t dtype,
                spf_access access) const;
  void Launch(const PlannedLaunch& launch);
  void AddUp(const PlannedLaunch& launch);

  Context& c_;
  const NewtonSchulzPlan plan_;
  const int32_t module_;
  const Communicator* const summed_over_;
  std::array<spf_addr, 7> blocks_{};  // by Operand
};

}  // namespace reference
