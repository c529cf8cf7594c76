// dispatch.h: nodes of a vocabulary that is split over tp.
#include "conformance/model/dispatch.h"

namespace shardproof {

SplitLossShape Dispatch::LogitsOfRange() const {
  return {Tokens(), d_.local_vocab, network_.first_word(), d_.vocab, d_.tp};
}

void Dispatch::ForwardSplitVocabulary() {
  const auto& in = spec_.in;
  float* out = Out(spec_.out[0]);
  switch (spec_.op) {
    case Op::kEmbed:
      return LookUp(Embedding(Tokens(), 0), Integers(in[0]), Param(spec_.weight()).data(), out);
    case Op::kEmbedStream: {
      const std::vector<float> position = Param(spec_.bias());
      return EmbeddingStream(n_, Embedding(Tokens(), network_.FirstTokenOf(spec_)), In(in[0]),
                             position.empty() ? nullptr : position.data(), out);
    }
    case Op::kLossMax:
      return SplitLossMax(LogitsOfRange(), In(in[0]), out);
    case Op::kLossSums:
      return SplitLossSums(n_, LogitsOfRange(), In(in[0]), Integers(in[1]), In(in[2]), out);
    default:
      *out = SplitLossForward(n_, LogitsOfRange(), In(in[2]), In(in[3]));
  }
}

void Dispatch::DgradSplitLoss() {
  const auto& in = spec_.in;
  SplitLossDgrad(n_, LogitsOfRange(), In(in[0]), Integers(in[1]), In(in[2]), In(in[3]),
                 Grad(in[0]));
}

}  // namespace shardproof
