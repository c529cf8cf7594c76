// words.h: which words does the suite know as values of knobs?
//
// One enumeration for each knob whose values have names, the default first, and beside it the words
// as engines read them (abi/KNOBS.md says what they mean).
#pragma once
#include "conformance/cases/choice.h"

namespace shardproof {

template <size_t n>
using WordList = std::array<std::string_view, n>;

enum class ShardingStrategy { kNoShard, kOptim, kOptimGrads, kOptimGradsParams, kLayerWise };
template <>
struct WordsOf<ShardingStrategy> {
  static constexpr WordList<5> kWords{"no_shard", "optim", "optim_grads", "optim_grads_params",
                                      "layer_wise"};
};

enum class OuterStrategy { kNoShard, kOptim };
template <>
struct WordsOf<OuterStrategy> {
  static constexpr WordList<2> kWords{"no_shard", "optim"};
};

// Gather twins: none, the right ones, or in which way they are wrong.
enum class GatherTwin {
  kNone,
  kGiven,
  kPermuted,
  kDefaultOrder,
  kFullSpan,
  kShort,
  // The dense one is right, that of the experts is not.
  kExpertPermuted,
  kExpertDense,
  // Right, but of one kind of parameter only: the others are gathered where they are reduced.
  kDenseOnly,
  kExpertsOnly
};
template <>
struct WordsOf<GatherTwin> {
  static constexpr WordList<10> kWords{"none",      "given",  "permuted",        "default_order",
                                       "full_span", "short",  "expert_permuted", "expert_dense",
                                       "dense",     "experts"};
};

// Who owns the order of collectives: nobody but each communicator of its own; the engine, which has
// one in flight at a time; the one hardware queue that all streams of a device share.
enum class CommSchedule { kCommunicators, kOneCommunicator, kOneQueue };
template <>
struct WordsOf<CommSchedule> {
  static constexpr WordList<3> kWords{"communicators", "one_communicator", "one_queue"};
};

enum class KnobDtype { kFp32, kBf16 };
template <>
struct WordsOf<KnobDtype> {
  static constexpr WordList<2> kWords{"fp32", "bf16"};
};

// Where parameters have their first values from: create asks for them; the first call after it
// brings them.
enum class InitDevice { kHost, kMeta };
template <>
struct WordsOf<InitDevice> {
  static constexpr WordList<2> kWords{"host", "meta"};
};

enum class Optimizer { kSgd, kAdamw, kMuon };
template <>
struct WordsOf<Optimizer> {
  static constexpr WordList<3> kWords{"sgd", "adamw", "muon"};
};

enum class GraphCapture { kNone, kFullIteration, kPerLayer };
template <>
struct WordsOf<GraphCapture> {
  static constexpr WordList<3> kWords{"", "full_iteration", "per_layer"};
};

// What each step of Newton-Schulz multiplies with. aol is known only to be refused.
enum class MuonCoefficients { kQuintic, kSimple, kPolarExpress, kCans, kDeepseekV4, kCubic5, kAol };
template <>
struct WordsOf<MuonCoefficients> {
  static constexpr WordList<7> kWords{"quintic", "simple", "polar_express", "cans", "deepseekv4",
                                      "cubic5",  "aol"};
};

enum class MuonScale { kSpectral, kUnitRmsNorm, kShapeScaling };
template <>
struct WordsOf<MuonScale> {
  static constexpr WordList<3> kWords{"spectral", "unit_rms_norm", "shape_scaling"};
};

enum class MuonPrecision { kHighest, kMedium };
template <>
struct WordsOf<MuonPrecision> {
  static constexpr WordList<2> kWords{"highest", "medium"};
};

// What ranks of tp do with their shards of a matrix.
enum class MuonTpMode { kDuplicated, kDistributed, kBlockwise };
template <>
struct WordsOf<MuonTpMode> {
  static constexpr WordList<3> kWords{"duplicated", "distributed", "blockwise"};
};

enum class LayerWiseLayout { kDealt, kAligned };
template <>
struct WordsOf<LayerWiseLayout> {
  static constexpr WordList<2> kWords{"dealt", "aligned"};
};

enum class LayerWiseTransport { kAllGatherV, kBroadcast, kPadded };
template <>
struct WordsOf<LayerWiseTransport> {
  static constexpr WordList<3> kWords{"all_gather_v", "broadcast", "padded"};
};

enum class LayerWiseBuffer { kOwn, kGrads };
template <>
struct WordsOf<LayerWiseBuffer> {
  static constexpr WordList<2> kWords{"own", "grads"};
};

}  // namespace shardproof
