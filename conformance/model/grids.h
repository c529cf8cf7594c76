// grids.h: on which grid does each kind of operand lie?
//
// Forward grids are chosen; gradient grids were calibrated once (NUMERICS.md says how) and are
// constants since.
#pragma once
#include "conformance/model/quant.h"

namespace shardproof::grids {

// --- forward
inline constexpr Grid kWeight{-7, 127};  // linear weights, biases, embeddings, as nodes use them
inline constexpr Grid kNormWeight{-6, 127};  // weights of norms and gains
inline constexpr Grid kActivation{-5,
                                  127};  // every input of a linear module, queries, keys, values
inline constexpr Grid kResidual{-5,
                                511};  // the residual stream; only added to, and squared by norms
inline constexpr Grid kNumerator{-12, 4096};  // exp(s - max)
inline constexpr Grid kProbability{-7, 128};
inline constexpr Grid kTokenLoss{-10, 16383};
inline constexpr Grid kScore{-12, 4096};  // sigmoid of a router's logit

// --- gradients, of a loss that is the sum over tokens
inline constexpr Grid kDLogits{-7, 127};
inline constexpr Grid kDHeadIn{-6, 127};     // of the final norm's output, of the gain's input
inline constexpr Grid kDResidual{-7, 1023};  // of the residual stream
inline constexpr Grid kDBranch{-6, 127};     // the same, as operand of proj and fc2
inline constexpr Grid kDEmbedding{-6, 127};  // the same, as operand of the embedding's gradient
inline constexpr Grid kDMlp{-7, 127};        // of the activation function's output
inline constexpr Grid kDFc1{-8, 127};
inline constexpr Grid kDNormOut{-7, 127};     // of the layers' norms' outputs
inline constexpr Grid kDNormalised{-7, 127};  // of a norm's input after division by its rms
inline constexpr Grid kDAttention{-7, 127};   // of the attention's output
inline constexpr Grid kDProbability{-5, 127};
inline constexpr Grid kDScore{-9, 127};
inline constexpr Grid kDQkv{-8, 127};
inline constexpr Grid kDGain{-8, 127};  // of the gain, from one token

// --- gradients of mixture-of-experts layers
inline constexpr Grid kDExpertAct{-7, 127};       // of the gated activation's output
inline constexpr Grid kDExpertFc1{-8, 127};       // of an expert's fc1's output
inline constexpr Grid kDDispatched{-7, 127};      // of an expert's input row
inline constexpr Grid kDRowProbability{-5, 127};  // of the probability of a token's choice
inline constexpr Grid kDRouterLogits{-8, 127};
inline constexpr Grid kDRouterIn{-9, 127};  // of the router's input, by way of its logits
// Of the router's, the experts' and the shared expert's input together, as the norm takes it.
inline constexpr Grid kDMoeNormOut{-7, 127};

// --- the narrow profile: operands of parameter gradients are -1, 0 or 1 quanta of 2^(e +
// kNarrowShift), and every parameter gradient counts quanta of 2^kNarrowQuantum, so that tied and
// reused parameters add like to like.
inline constexpr int32_t kNarrowShift = 5;
inline constexpr int32_t kNarrowQuantum = 0;

}  // namespace shardproof::grids
