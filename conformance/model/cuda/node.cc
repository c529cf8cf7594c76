#include "conformance/model/cuda/node.h"

#include "conformance/model/cuda/attention.h"
#include "conformance/model/cuda/common.h"
#include "conformance/model/cuda/embedding.h"
#include "conformance/model/cuda/linear.h"
#include "conformance/model/cuda/loss.h"
#include "conformance/model/cuda/moe_node.h"
#include "conformance/model/cuda/norm.h"
#include "conformance/model/cuda/swiglu.h"
#include "conformance/model/cuda/vocabulary.h"

namespace shardproof {
namespace {

using namespace device;

void Forward(const NodeContext& c) {
  if (OfSplitVocabulary(c.spec)) return SplitVocabularyForward(c);
  switch (c.spec.op) {
    case Op::kInput:
      return InputForward(c);
    case Op::kEmbed:
      return EmbeddingForward(c);
    case Op::kNorm:
      return NormForward(c);
    case Op::kGain:
      return GainForward(c);
    case Op::kLinear:
    case Op::kLinearResidual:
    case Op::kConcatLinear:
    case Op::kColumnLinear:
    case Op::kRowLinear:
      return LinearForward(c);
    case Op::kResidualAdd:
      return ResidualAddForward(c);
    case Op::kAttention:
      return AttentionForward(c);
    case Op::kKeysValues:
      return TakeKeysValues(c);
    case Op::kSwiglu:
      return SwigluForward(c);
    case Op::kLoss:
    case Op::kNextLoss:
      return LossForward(c);
    default:
      return RunMoeForward(c);
  }
}

void Dgrad(const NodeContext& c) {
  if (!c.spec.any_grad_in()) return;
  switch (c.spec.op) {
    case Op::kInput:
    case Op::kEmbed:
      return;
    case Op::kNorm:
      return NormDgrad(c);
    case Op::kGain:
      return GainDgrad(c);
    case Op::kLinear:
    case Op::kLinearResidual:
    case Op::kColumnLinear:
    case Op::kRowLinear:
      return LinearDgrad(c);
    case Op::kResidualAdd:
      return ResidualAddDgrad(c);
    case Op::kConcatLinear:
      return ConcatDgrad(c);
    case Op::kAttention:
      return AttentionDgrad(c);
    case Op::kKeysValues:
      return KeysValuesDgrad(c);
    case Op::kSwiglu:
      return SwigluDgrad(c);
    case Op::kLoss:
    case Op::kNextLoss:
      return LossDgrad(c);
    case Op::kSplitLoss:
      return SplitLossDgrad(c);
    default:
      return RunMoeDgrad(c);
  }
}

void Wgrad(const NodeContext& c) {
  if (!c.spec.grad_weight && !c.spec.grad_bias) return;
  switch (c.spec.op) {
    case Op::kEmbed:
    case Op::kEmbedStream:
      return EmbeddingWgrad(c);
    case Op::kNorm:
      return NormWgrad(c);
    case Op::kGain:
      return GainWgrad(c);
    case Op::kResidualAdd:  // a bias
    case Op::kColumnLinear:
    case Op::kRowLinear:
    case Op::kLinear:
    case Op::kLinearResidual:
    case Op::kConcatLinear:
      return LinearWgrad(c);
    default:
      return RunMoeWgrad(c);
  }
}

}  // namespace

void RunNode(Queue& queue, const Model& model, const NodeArgs& args, ModelRank rank) {
  const NodeContext c = ContextOf(queue, model, args, rank);
  if (args.phase == SPF_FWD) return Forward(c);
  if (args.phase == SPF_BWD || args.phase == SPF_DGRAD) Dgrad(c);
  if (args.phase == SPF_BWD || args.phase == SPF_WGRAD) Wgrad(c);
}

}  // namespace shardproof
