#include "conformance/model/model.h"

#include <stdexcept>

#include "conformance/model/data.h"
#include "conformance/model/dispatch.h"
#include "conformance/model/grids.h"
#include "conformance/model/network.h"
#include "conformance/model/require_valid.h"
#include "conformance/model/static_bound.h"

namespace shardproof {

std::string ShardName(const std::string& param, int32_t tp_rank, int32_t tp) {
  return param + " [tp " + std::to_string(tp_rank) + " of " + std::to_string(tp) + "]";
}

struct Model::Impl {
  ModelConfig config;
  std::vector<std::unique_ptr<const Network>> networks;  // by pp rank, then ep, tp, cp

  const Network& network(ModelRank rank) const {
    const bool known = rank.ep >= 0 && rank.ep < config.ep && rank.pp >= 0 && rank.pp < config.pp &&
                       rank.tp >= 0 && rank.tp < config.tp && rank.cp >= 0 && rank.cp < config.cp;
    if (!known) {
      throw std::out_of_range("the model has no rank with ep " + std::to_string(rank.ep) + ", pp " +
                              std::to_string(rank.pp) + ", tp " + std::to_string(rank.tp) +
                              " and cp " + std::to_string(rank.cp));
    }
    const int32_t part = (rank.pp * config.ep + rank.ep) * config.tp + rank.tp;
    return *networks[static_cast<size_t>(part * config.cp + rank.cp)];
  }
};

Model::Model(const ModelConfig& config, int64_t max_tokens) : impl_(std::make_unique<Impl>()) {
  RequireValid(config, max_tokens);
  impl_->config = config;
  for (int32_t pp = 0; pp < config.pp; ++pp) {
    for (int32_t ep = 0; ep < config.ep; ++ep) {
      for (int32_t part = 0; part < config.tp * config.cp; ++part) {
        const ModelRank rank(ep, pp, part / config.cp, part % config.cp);
        impl_->networks.push_back(std::make_unique<const Network>(config, rank));
      }
    }
  }
  for (const auto& network : impl_->networks) RequireExactSums(config, *network, max_tokens);
}

Model::~Model() = default;

const ModelConfig& Model::config() const { return impl_->config; }

const spf_model& Model::Tables(ModelRank rank) const { return impl_->network(rank).tables(); }

const spf_program& Model::Program(int64_t step, int64_t sample, ModelRank rank) const {
  const std::string& unused = impl_->config.unused;
  const int64_t together = impl_->config.samples_together;
  const int64_t turn = together == 1 ? sample : sample / together + step;
  const bool absent = (unused == "step" && step % 2 != 0) || (unused == "rank" && turn % 2 != 0);
  return impl_->network(rank).program(absent);
}

const spf_node& Model::Node(int32_t id, ModelRank rank) const {
  const Network& network = impl_->network(rank);
  if (id < 0 || id >= network.node_count())
    throw std::out_of_range("no node " + std::to_string(id));
  return network.node(id);
}

int32_t Model::node_count(ModelRank rank) const { return impl_->network(rank).node_count(); }

const Network& Model::Graph(ModelRank rank) const { return impl_->network(rank); }

void Model::Compute(const NodeArgs& args, ModelRank rank) const {
  Dispatch(impl_->config, impl_->network(rank), args).Run();
}

void Model::InitialValue(int32_t param, ModelRank rank, int64_t offset, int64_t count,
                         float* out) const {
  const Network& network = impl_->network(rank);
  const ParamInfo& info = network.info(param);
  const Grid grid = info.norm ? grids::kNormWeight : grids::kWeight;
  const spf_param& row = network.tables().params[param];
  const uint64_t start = 0x9E3779B97F4A7C15u * static_cast<uint64_t>(impl_->config.start);
  const uint64_t hash = Mix(impl_->config.seed + HashText(row.name) + start);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t element = ElementOfWhole(row, impl_->config.tp, rank.tp, offset + i);
    const uint64_t bits = Mix(hash + static_cast<uint64_t>(element)) >> 40;  // 24 bits
    const float uniform = static_cast<float>(bits) * PowerOfTwo(-23) - 1.0f;
    out[i] = Quantise(info.center + info.spread * uniform, grid);
  }
}

}  // namespace shardproof
