#include "conformance/model/network.h"

namespace shardproof {

Network::Network(const ModelConfig& config, ModelRank rank)
    : config_(config), dims_(DimsOf(config)), rank_(rank) {
  BuildTables(*this);
  BuildPrograms(*this);
  tables_ = {sizeof(spf_model),
             static_cast<int32_t>(modules_.size()),
             static_cast<int32_t>(params_.size()),
             static_cast<int32_t>(values_.size()),
             modules_.data(),
             params_.data(),
             values_.data()};
  for (int i = 0; i < 2; ++i) {
    programs_[i] = {sizeof(spf_program), static_cast<int32_t>(in_program_[i].size()),
                    in_program_[i].data()};
  }
}

std::vector<Stage> Network::Stages() const {
  std::vector<Stage> stages;
  const int32_t all = config_.pp * config_.chunks;
  const int64_t layers = config_.layers / all;
  for (int32_t chunk = 0; chunk < config_.chunks; ++chunk) {
    const int32_t v = chunk * config_.pp + rank_.pp;
    stages.push_back({chunk, v * layers, (v + 1) * layers, v == 0, v == all - 1});
  }
  return stages;
}

const char* Network::Keep(std::string text) { return names_.emplace_back(std::move(text)).c_str(); }

int32_t Network::FindParam(const std::string& name) const {
  for (size_t i = 0; i < params_.size(); ++i) {
    if (name == params_[i].name) return static_cast<int32_t>(i);
  }
  return -1;
}

int32_t Network::FindModule(const std::string& name) const {
  for (size_t i = 0; i < modules_.size(); ++i) {
    if (name == modules_[i].name) return static_cast<int32_t>(i);
  }
  return -1;
}

}  // namespace shardproof
