#include "conformance/model/model.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "conformance/model/interim/data.h"
#include "conformance/model/interim/node_math.h"
#include "conformance/model/interim/tables.h"

namespace shardproof {

namespace {

void Require(bool ok, const std::string& what) {
  if (!ok) throw std::invalid_argument("model: " + what);
}

void CheckRange(const char* field, int64_t value, int64_t low, int64_t high) {
  Require(value >= low && value <= high, std::string(field) + " is " + std::to_string(value) + ", allowed " +
                                             std::to_string(low) + ".." + std::to_string(high));
}

void CheckBound(const std::string& sum, int64_t n, int64_t qa, int64_t qb, int64_t odd) {
  constexpr int64_t kExact = int64_t{1} << 24;
  const int64_t total = n * qa * qb * odd;
  Require(total < kExact, "the sum \"" + sum + "\" is not exact: " + std::to_string(n) + " products of " +
                              std::to_string(qa) + " * " + std::to_string(qb) + " quanta, times the odd divisor " +
                              std::to_string(odd) + ", reach 2^24; take fewer tokens or smaller sizes");
}

void CheckConfig(const ModelConfig& c, int64_t max_tokens) {
  CheckRange("layers", c.layers, 0, 64);
  CheckRange("heads", c.heads, 1, 64);
  CheckRange("sequence", c.sequence, 1, 4096);
  CheckRange("ep", c.ep, 1, 64);
  CheckRange("d_odd", c.d_odd, 1, 1023);
  Require(c.d_odd % 2 == 1, "d_odd is " + std::to_string(c.d_odd) + ": it must be odd");
  Require(c.frozen.empty() || c.frozen == "embedding" || c.frozen == "layer" || c.frozen == "norms",
          "frozen is \"" + c.frozen + "\": \"\", embedding, layer or norms");
  Require(c.unused.empty() || c.unused == "step" || c.unused == "rank",
          "unused is \"" + c.unused + "\": \"\", step or rank");
  const Dims d = DimsOf(c);
  CheckRange("vocab", d.vocab, 2, 4096);
  CheckRange("width", d.width, 2, 1024);
  CheckRange("ffn", d.ffn, 1, 4096);
  Require(d.width % d.heads == 0, "width " + std::to_string(d.width) + " is no multiple of heads " +
                                      std::to_string(d.heads));
  if (!c.quantised) return;
  CheckBound("rmsnorm x^2", d.width, 511, 511, 1);
  CheckBound("linear forward", std::max(d.width, d.ffn) + 4, 127, 127, 1);
  CheckBound("linear dgrad", std::max({3 * d.width, d.ffn, d.vocab}), 127, 127, 1);
  CheckBound("attention scores", d.width / d.heads, 127, 127, 1);
  CheckBound("attention values", d.sequence, 128, 127, 1);
  CheckBound("softmax denominator", d.vocab, 4096, 1, 1);
  CheckBound("loss", d.sequence, 16383, 1, 1);
  if (c.narrow) {
    Require(max_tokens * c.d_odd <= 256, "the weight gradient on a bf16 wire is not exact: " +
                                             std::to_string(max_tokens) + " tokens times the odd divisor " +
                                             std::to_string(c.d_odd) + " exceed 256");
  } else {
    CheckBound("weight gradient", max_tokens, 127, 127, c.d_odd);
  }
}

}  // namespace

struct Model::Impl {
  ModelConfig config;
  Dims dims{};
  std::vector<std::unique_ptr<TableSet>> tables;  // by ep rank
  std::vector<Site> sites;

  const TableSet& At(int32_t ep_rank) const {
    return *tables[tables.size() == 1 ? 0 : static_cast<size_t>(ep_rank)];
  }
  bool Short(int64_t step, int64_t sample) const {
    return (config.unused == "step" && step % 2 == 1) || (config.unused == "rank" && sample % 2 == 1);
  }
};

Model::Model(const ModelConfig& config, int64_t max_tokens) : impl_(std::make_unique<Impl>()) {
  CheckConfig(config, max_tokens);
  impl_->config = config;
  impl_->dims = DimsOf(config);
  const int32_t variants = config.experts ? config.ep : 1;
  for (int32_t e = 0; e < variants; ++e) impl_->tables.push_back(std::make_unique<TableSet>(impl_->config, e));
  impl_->sites = Calibrate(impl_->config, *impl_->tables[0]);
}
Model::~Model() = default;

const ModelConfig& Model::config() const { return impl_->config; }
const spf_model& Model::Tables(int32_t ep_rank) const { return impl_->At(ep_rank).model(); }
const spf_program& Model::Program(int64_t step, int64_t sample, int32_t ep_rank) const {
  return impl_->At(ep_rank).program(impl_->Short(step, sample));
}
const spf_node& Model::Node(int32_t id, int32_t ep_rank) const { return impl_->At(ep_rank).node(id); }
int32_t Model::node_count() const { return impl_->tables[0]->node_count(); }

void Model::Compute(const NodeArgs& args, int32_t ep_rank) const {
  const TableSet& tables = impl_->At(ep_rank);
  const NodeDef& def = tables.defs()[static_cast<size_t>(args.node)];
  NodeMath(impl_->config, impl_->dims, tables, def, impl_->sites[static_cast<size_t>(def.site)]).Run(args);
}

void Model::InitialValue(int32_t param, int32_t ep_rank, int64_t offset, int64_t count, float* out) const {
  const ParamDef& def = impl_->At(ep_rank).params()[static_cast<size_t>(param)];
  for (int64_t i = 0; i < count; ++i) out[i] = InitialElement(impl_->config.seed, def, offset + i);
}

uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}
float FromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace shardproof
