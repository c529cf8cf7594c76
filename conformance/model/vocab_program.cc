// program_builder.h: a vocabulary that is split over tp.
#include "conformance/model/program_builder.h"

namespace shardproof {

// Each rank looks up the rows of its range; what has all of them is their sum over tp.
int32_t ProgramBuilder::SplitEmbedding() {
  const std::string module = "embedding";
  const int32_t h = StreamValue(module);
  const size_t first = program_.size();
  int32_t sum = Value("embedding.lookup", d_.width);
  NodeSpec& embed = Add(Op::kEmbed, module, module, Integers("tokens"), sum);
  embed.weights = {n_.FindParam("embedding.weight")};
  embed.split = true;
  if (c_.sequence_parallel) {
    sum = ReduceScatter("embedding.scatter", module, sum);
  } else {
    AllReduce("embedding.reduce", module, sum, false);
  }
  // The gradient of the sum is that of the stream.
  program_[c_.sequence_parallel ? first + 1 : first].grad_from = h;
  NodeSpec& stream = Add(Op::kEmbedStream, "embedding.stream", module, sum, h);
  stream.biases = {n_.FindParam("position")};
  stream.part = c_.sequence_parallel;
  stream.forward = true;
  return h;
}

void ProgramBuilder::SplitHeadAndLoss(int32_t x, int32_t labels) {
  // With parts of the sequence the gather before it sums gradients.
  if (!c_.sequence_parallel || c_.odd_sizes) AllReduce("head.copy", "head", x, true);
  NodeSpec& head = Add(Op::kColumnLinear, "head", "head", x, Value("head", d_.local_vocab));
  Weights(head, "head");
  if (c_.tied) head.weights = {n_.FindParam("embedding.weight")};
  head.head = true;
  const int32_t logits = head.out[0];
  Add(Op::kLossMax, "loss.max", "model", logits, Value("loss.max", 1)).forward = true;
  const int32_t maxima =
      AddValue("loss.max.gather", {nullptr, 0, SPF_F32, d_.tp * d_.sequence, 1, -1});
  Add(Op::kAllGather, "loss.max.gather", "model", program_.back().out[0], maxima).forward = true;
  NodeSpec& sums = Add(Op::kLossSums, "loss.sums", "model", logits, Value("loss.sums", 2));
  sums.in = {logits, labels, maxima, -1};
  sums.forward = true;
  const int32_t all = sums.out[0];
  AllReduce("loss.sums.reduce", "model", all, false);
  NodeSpec& loss = Add(Op::kSplitLoss, "loss", "model", logits, Loss("loss", SPF_VALUE_LOSS));
  loss.in = {logits, labels, maxima, all};
}

}  // namespace shardproof
