#include "conformance/model/model.h"

#include <set>
#include <stdexcept>

#include "conformance/model/data.h"
#include "conformance/model/dispatch.h"
#include "conformance/model/grids.h"
#include "conformance/model/network.h"
#include "conformance/model/static_bound.h"

namespace shardproof {

struct Model::Impl {
  ModelConfig config;
  std::vector<std::unique_ptr<const Network>> networks;  // by ep rank
};

namespace {

void RequireRange(const char* field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return;
  throw std::invalid_argument(std::string("model ") + field + " = " + std::to_string(value) +
                              ": use " + std::to_string(low) + " to " + std::to_string(high));
}

void RequireWord(const char* field, const std::string& value, const std::set<std::string>& words) {
  if (words.count(value) != 0) return;
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "'" : ", '") + word + "'";
  throw std::invalid_argument(std::string("model ") + field + " = '" + value + "': use one of " +
                              list);
}

void RequireValid(const ModelConfig& config, int64_t max_tokens) {
  RequireRange("layers", config.layers, 1, 1024);
  RequireRange("vocab", config.vocab, 2, 1 << 20);
  RequireRange("width", config.width, 1, 1 << 16);
  RequireRange("heads", config.heads, 1, config.width);
  RequireRange("ffn", config.ffn, 1, 1 << 18);
  RequireRange("sequence", config.sequence, 1, 1 << 16);
  RequireRange("ep", config.ep, 1, 1024);
  RequireRange("d_odd", config.d_odd, 1, 1 << 20);
  RequireRange("tokens per step", max_tokens, 1, int64_t{1} << 40);
  if (config.d_odd % 2 == 0)
    throw std::invalid_argument("model d_odd = " + std::to_string(config.d_odd) + " is even");
  if (!config.odd_sizes && config.width % config.heads != 0) {
    throw std::invalid_argument("model width = " + std::to_string(config.width) +
                                " is no multiple of heads = " + std::to_string(config.heads));
  }
  RequireWord("frozen", config.frozen, {"", "embedding", "layer", "norms"});
  RequireWord("unused", config.unused, {"", "step", "rank"});
}

}  // namespace

Model::Model(const ModelConfig& config, int64_t max_tokens) : impl_(std::make_unique<Impl>()) {
  RequireValid(config, max_tokens);
  impl_->config = config;
  for (int32_t ep_rank = 0; ep_rank < config.ep; ++ep_rank) {
    impl_->networks.push_back(std::make_unique<const Network>(config, ep_rank));
  }
  RequireExactSums(config, *impl_->networks.front(), max_tokens);
}

Model::~Model() = default;

const ModelConfig& Model::config() const { return impl_->config; }

const spf_model& Model::Tables(int32_t ep_rank) const {
  return impl_->networks.at(static_cast<size_t>(ep_rank))->tables();
}

const spf_program& Model::Program(int64_t step, int64_t sample, int32_t ep_rank) const {
  const std::string& unused = impl_->config.unused;
  const bool absent = (unused == "step" && step % 2 != 0) || (unused == "rank" && sample % 2 != 0);
  return impl_->networks.at(static_cast<size_t>(ep_rank))->program(absent);
}

const spf_node& Model::Node(int32_t id, int32_t ep_rank) const {
  const Network& network = *impl_->networks.at(static_cast<size_t>(ep_rank));
  if (id < 0 || id >= network.node_count())
    throw std::out_of_range("no node " + std::to_string(id));
  return network.node(id);
}

int32_t Model::node_count() const { return impl_->networks.front()->node_count(); }

void Model::Compute(const NodeArgs& args, int32_t ep_rank) const {
  Dispatch(impl_->config, *impl_->networks.at(static_cast<size_t>(ep_rank)), args).Run();
}

void Model::InitialValue(int32_t param, int32_t ep_rank, int64_t offset, int64_t count,
                         float* out) const {
  const Network& network = *impl_->networks.at(static_cast<size_t>(ep_rank));
  const ParamInfo& info = network.info(param);
  const Grid grid = info.norm ? grids::kNormWeight : grids::kWeight;
  const uint64_t hash = Mix(impl_->config.seed + HashText(network.tables().params[param].name));
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = Mix(hash + static_cast<uint64_t>(offset + i)) >> 40;  // 24 bits
    const float uniform = static_cast<float>(bits) * PowerOfTwo(-23) - 1.0f;
    out[i] = Quantise(info.center + info.spread * uniform, grid);
  }
}

}  // namespace shardproof
