// network.h: values and nodes of routed experts and of the layer that predicts one token more.
#include "conformance/model/program_builder.h"

namespace shardproof {

int32_t ProgramBuilder::Moe(const std::string& moe, int32_t x, int32_t h,
                            const std::string& suffix) {
  const MoeSizes sizes = MoeSizesOf(c_);
  part_ = c_.sequence_parallel;
  const int32_t shared = c_.moe.shared ? SharedExpert(moe, x, suffix) : -1;
  Routed routed = Router(moe, x, suffix);
  const Rows permuted = Permute(moe, x, routed, suffix);
  if (!c_.moe.pad) Counts(moe, suffix, routed);

  const int32_t send = routed.send_counts, recv = routed.recv_counts;
  const std::string dispatch = moe + ".dispatch", combine = moe + ".combine";
  Rows received;
  received.rows = RowValue(moe + ".dispatched" + suffix, sizes.received, d_.width, recv);
  received.probs = RowValue(moe + ".dispatched_probs" + suffix, sizes.received, 1, recv);
  Exchange(dispatch + suffix, dispatch, permuted.rows, received.rows, send, recv);
  Exchange(moe + ".dispatch_probs" + suffix, dispatch, permuted.probs, received.probs, send, recv);
  const int32_t y = Experts(moe, received, routed, suffix);
  const int32_t rows_from = n_.values_[static_cast<size_t>(permuted.rows)].rows_from;
  const int32_t combined = RowValue(moe + ".combined" + suffix, sizes.sent, d_.width, rows_from);
  Exchange(combine + suffix, combine, y, combined, recv, send);

  const std::string out = moe + ".unpermute" + suffix;
  NodeSpec& unpermute = Add(Op::kUnpermute, out, combine, combined, Value(out, d_.width));
  unpermute.in = {combined, routed.index, shared, h};
  part_ = false;
  return unpermute.out[0];
}

int32_t ProgramBuilder::SharedExpert(const std::string& moe, int32_t x, const std::string& suffix) {
  return Mlp(moe + ".shared", x, -1, suffix);
}

ProgramBuilder::Routed ProgramBuilder::Router(const std::string& moe, int32_t x,
                                              const std::string& suffix) {
  const std::string router = moe + ".router";
  const int64_t k = c_.moe.top_k;
  Routed routed;
  routed.probs = Value(moe + ".probs" + suffix, k);
  routed.index =
      AddValue(moe + ".index" + suffix, {nullptr, 0, SPF_I32, MoeSizesOf(c_).tokens, k, -1});
  if (!c_.moe.pad) {  // nobody needs to know how many rows are no padding
    routed.expert_counts =
        AddValue(moe + ".expert_counts" + suffix, {nullptr, 0, SPF_I64, c_.moe.experts, 1, -1});
    routed.send_counts =
        AddValue(moe + ".send_counts" + suffix, {nullptr, SPF_VALUE_COUNTS, SPF_I64, c_.ep, 1, -1});
  }
  NodeSpec& spec = Add(Op::kRouter, router + suffix, router, x, routed.probs);
  spec.out = {routed.probs, routed.index, routed.expert_counts, routed.send_counts};
  spec.weights = {n_.FindParam(router + ".weight")};
  spec.biases = {n_.FindParam(router + ".expert_bias")};
  return routed;
}

ProgramBuilder::Rows ProgramBuilder::Permute(const std::string& moe, int32_t x,
                                             const Routed& routed, const std::string& suffix) {
  const MoeSizes sizes = MoeSizesOf(c_);
  // Without a capacity every choice has a row.
  const int32_t rows_from = sizes.capacity > 0 ? routed.send_counts : -1;
  Rows rows;
  rows.rows = RowValue(moe + ".permuted" + suffix, sizes.sent, d_.width, rows_from);
  rows.probs = RowValue(moe + ".permuted_probs" + suffix, sizes.sent, 1, rows_from);
  NodeSpec& spec = Add(Op::kPermute, moe + ".permute" + suffix, moe + ".dispatch", x, rows.rows);
  spec.in = {x, routed.probs, routed.index, -1};
  spec.out = {rows.rows, rows.probs, -1, -1};
  return rows;
}

void ProgramBuilder::Counts(const std::string& moe, const std::string& suffix, Routed& routed) {
  const std::string dispatch = moe + ".dispatch";
  routed.recv_expert_counts =
      AddValue(moe + ".recv_expert_counts" + suffix, {nullptr, 0, SPF_I64, c_.moe.experts, 1, -1});
  routed.recv_counts =
      AddValue(moe + ".recv_counts" + suffix, {nullptr, SPF_VALUE_COUNTS, SPF_I64, c_.ep, 1, -1});
  Exchange(moe + ".counts" + suffix, dispatch, routed.expert_counts, routed.recv_expert_counts, -1,
           -1);
  Add(Op::kSplits, moe + ".splits" + suffix, dispatch, routed.recv_expert_counts,
      routed.recv_counts);
}

int32_t ProgramBuilder::Exchange(const std::string& name, const std::string& module, int32_t in,
                                 int32_t out, int32_t send_counts, int32_t recv_counts) {
  NodeSpec& spec = Add(Op::kExchange, name, module, in, out);
  spec.send_counts = send_counts;
  spec.recv_counts = recv_counts;
  return out;
}

int32_t ProgramBuilder::Experts(const std::string& moe, const Rows& rows, const Routed& routed,
                                const std::string& suffix) {
  const std::string experts = moe + ".experts";
  const int32_t u = Grouped(moe, "fc1", rows.rows, 2 * d_.ffn, routed, suffix);
  const int32_t a =
      RowValue(experts + ".act" + suffix, MoeSizesOf(c_).received, d_.ffn, routed.recv_counts);
  NodeSpec& act = Add(Op::kGatedSwiglu, experts + ".act" + suffix, experts, u, a);
  act.in[1] = rows.probs;
  return Grouped(moe, "fc2", a, d_.width, routed, suffix);
}

int32_t ProgramBuilder::Grouped(const std::string& moe, const char* fc, int32_t in, int64_t out,
                                const Routed& routed, const std::string& suffix) {
  const MoeSizes sizes = MoeSizesOf(c_);
  const std::string experts = moe + ".experts", name = experts + "." + fc + suffix;
  const int32_t y = RowValue(name, sizes.received, out, routed.recv_counts);
  NodeSpec& spec = Add(Op::kGroupedLinear, name, experts, in, y);
  spec.in[1] = routed.recv_expert_counts;
  for (int64_t i = 0; i < sizes.local; ++i) {
    const std::string expert = experts + "." + std::to_string(n_.rank().ep * sizes.local + i);
    spec.weights.push_back(n_.FindParam(expert + "." + fc + ".weight"));
    spec.biases.push_back(n_.FindParam(expert + "." + fc + ".bias"));
  }
  return y;
}

int32_t ProgramBuilder::RowValue(const std::string& name, int64_t max_rows, int64_t width,
                                 int32_t rows_from) {
  const uint32_t flags = rows_from >= 0 ? static_cast<uint32_t>(SPF_VALUE_DYNAMIC) : 0u;
  return AddValue(name, {nullptr, flags, SPF_F32, max_rows, width, rows_from});
}

int32_t ProgramBuilder::Mtp(int32_t h, int32_t labels) {
  const size_t first = program_.size();
  const std::string embedding = "mtp.embedding", project = "mtp.eh_proj", layer = "mtp.layer";
  NodeSpec& embed = Add(Op::kEmbed, embedding, "embedding", labels, Value(embedding, d_.width));
  embed.weights = {n_.FindParam("embedding.weight")};
  const int32_t left = Norm("mtp.embed_norm", embed.out[0], "");
  const int32_t right = Norm("mtp.hidden_norm", h, "");
  NodeSpec& both = Add(Op::kConcatLinear, project, project, left, Value(project, d_.width));
  both.in[1] = right;
  Weights(both, project);
  const int32_t stream = Attention(layer, both.out[0], "");
  const int32_t x = Norm(layer + ".mlp_norm", stream, "");
  const int32_t out = Norm("mtp.final_norm", Moe(layer + ".moe", x, stream, ""), "");
  program_.back().head = true;
  SetLayer(first, d_.layers);
  return out;
}

void ProgramBuilder::MtpHead(int32_t x, int32_t labels) {
  NodeSpec& head = Add(Op::kLinear, "head.mtp", "head", x, Value("head.mtp", d_.vocab));
  Weights(head, "head");
  if (c_.tied) head.weights = {n_.FindParam("embedding.weight")};
  head.head = true;
  const int32_t logits = head.out[0];
  NodeSpec& loss = Add(Op::kNextLoss, "loss.mtp", "model", logits, Loss("mtp_loss", 0));
  loss.in[1] = labels;
}

}  // namespace shardproof
