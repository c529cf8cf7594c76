#include "conformance/oracle/trainer.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>

#include "conformance/common/at.h"
#include "conformance/model/data.h"
#include "conformance/model/loss.h"
#include "conformance/model/network.h"

namespace shardproof {
namespace {

// Values are F32, I32 or I64.
size_t BytesOf(const spf_value& value) { return value.dtype == SPF_I64 ? 8 : 4; }

// The value that this phase reads, and the one that it writes, of a node with one of each.
int32_t IdOf(const spf_uses& uses, spf_access access) {
  for (int32_t i = 0; i < uses.n; ++i) {
    if (uses.use[i].access == access) return uses.use[i].id;
  }
  return -1;
}

void AddTo(std::vector<float>& sum, const std::vector<uint16_t>& bf16) {
  for (size_t k = 0; k < sum.size(); ++k) sum[k] += FromBf16(bf16[k]);
}

}  // namespace

Trainer::Trainer(const Model& model, Probe& probe, bool bf16_node_grads)
    : model_(model), probe_(probe), bf16_node_grads_(bf16_node_grads) {
  std::map<std::string, size_t> index;
  for (int32_t ep = 0; ep < model.config().ep; ++ep) {
    const spf_model& tables = model.Tables(ep);
    std::vector<size_t>& slots = slot_.emplace_back();
    for (int32_t id = 0; id < tables.n_params; ++id) {
      slots.push_back(index.emplace(tables.params[id].name, index.size()).first->second);
    }
  }
  const spf_model& tables = model.Tables(0);
  for (int32_t id = 0; id < tables.n_values; ++id) {
    const spf_value& value = tables.values[id];
    act_.emplace_back(static_cast<size_t>(value.max_rows * value.row_elems) * BytesOf(value));
    dact_.emplace_back(act_.back().size());
  }
  rows_.resize(act_.size());
}

OracleState Trainer::InitialState() const {
  OracleState state;
  // Where layers can be split over tp, rows of Q, K and V lie by head.
  const ModelConfig& config = model_.config();
  const int64_t qkv_groups = config.tensor_parallel ? DimsOf(config).heads : 1;
  for (int32_t ep = 0; ep < model_.config().ep; ++ep) {
    const spf_model& tables = model_.Tables(ep);
    for (int32_t id = 0; id < tables.n_params; ++id) {
      if (At(At(slot_, ep), id) != state.params.size()) continue;
      const spf_param& param = tables.params[id];
      OracleParam& mine = state.params.emplace_back();
      mine.name = param.name;
      mine.frozen = (param.flags & SPF_PARAM_FROZEN) != 0;
      mine.shape = MuonShapeOf(tables, id, qkv_groups);
      mine.weight.resize(static_cast<size_t>(param.numel));
      model_.InitialValue(id, ep, 0, param.numel, mine.weight.data());
      mine.grad.resize(mine.weight.size());
      mine.first_moment.resize(mine.weight.size());
      mine.second_moment.resize(mine.weight.size());
    }
  }
  return state;
}

void Trainer::ZeroGrads(OracleState& state) const {
  for (OracleParam& param : state.params) std::fill(param.grad.begin(), param.grad.end(), 0.0f);
  probe_.NextStep();
}

void Trainer::RunNode(const spf_node& node, spf_phase phase, NodeArgs args, int32_t ep_rank) {
  if (node.uses[phase].n == 0) return;
  if (node.kind == SPF_NODE_ALL_REDUCE) return;  // of one summand: nothing is split here
  if (node.kind != SPF_NODE_COMPUTE && node.kind != SPF_NODE_INPUT) {
    Move(node, phase);
  } else {
    args.node = node.id;
    args.phase = phase;
    model_.Compute(args, ep_rank);
  }
  if (phase == SPF_FWD) CountRows(node, ep_rank);
}

// All experts are here, and the whole sequence: what would be sent stays where it is.
void Trainer::Move(const spf_node& node, spf_phase phase) {
  auto& table = phase == SPF_FWD ? act_ : dact_;
  const auto from = static_cast<size_t>(IdOf(node.uses[phase], SPF_READ));
  const auto to = static_cast<size_t>(IdOf(node.uses[phase], SPF_WRITE));
  const size_t bytes = std::min(table[from].size(), table[to].size());
  std::memcpy(table[to].data(), table[from].data(), bytes);
}

// Of what a router has chosen; each: of all parts together.
std::vector<int64_t> Trainer::RowsOfParts(const spf_uses& router,
                                          const std::vector<int64_t>& each) const {
  const auto parts = static_cast<size_t>(model_.config().moe.parts);
  if (parts == 1) return each;
  std::vector<int64_t> rows(parts * each.size());
  for (int32_t i = 0; i < router.n; ++i) {
    const spf_use& use = router.use[i];
    if (use.table != SPF_IN_ACT || use.access != SPF_WRITE) continue;
    if (model_.Tables(0).values[use.id].dtype != SPF_I32) continue;
    std::vector<int32_t> index(At(act_, use.id).size() / sizeof(int32_t));
    std::memcpy(index.data(), At(act_, use.id).data(), At(act_, use.id).size());
    for (size_t choice = 0; choice < index.size(); ++choice) {
      const size_t part = choice * parts / index.size();
      if (index[choice] >= 0) ++At(rows, part * each.size() + static_cast<size_t>(index[choice]));
    }
  }
  return rows;
}

// A node that writes counts says how many rows other values have, and how many go to each expert.
void Trainer::CountRows(const spf_node& node, int32_t ep_rank) {
  const spf_model& tables = model_.Tables(ep_rank);
  const spf_uses& uses = node.uses[SPF_FWD];
  for (int32_t i = 0; i < uses.n; ++i) {
    const int32_t counts = uses.use[i].id;
    if (uses.use[i].table != SPF_IN_ACT || uses.use[i].access != SPF_WRITE) continue;
    const spf_value& value = tables.values[counts];
    const bool of_experts =
        std::string_view(value.name).find(".expert_counts") != std::string_view::npos;
    if ((value.flags & SPF_VALUE_COUNTS) == 0 && !of_experts) continue;
    std::vector<int64_t> each(static_cast<size_t>(value.max_rows));
    std::memcpy(each.data(), At(act_, counts).data(), each.size() * 8);
    if (of_experts) expert_rows_[value.name] = RowsOfParts(uses, each);
    for (int32_t id = 0; id < tables.n_values; ++id) {
      if (tables.values[id].rows_from == counts)
        At(rows_, id) = std::accumulate(each.begin(), each.end(), int64_t{0});
    }
  }
}

void Trainer::FillParts(const spf_node& input, int64_t step, const std::vector<int64_t>& samples) {
  const ModelConfig& config = model_.config();
  const Dims dims = DimsOf(config);
  const auto tokens = static_cast<size_t>(dims.sequence) / samples.size();
  const DataShape shape{static_cast<int32_t>(dims.vocab), static_cast<int32_t>(tokens), config.seed,
                        config.nan_loss};
  const spf_uses& uses = input.uses[SPF_FWD];  // tokens, then labels
  auto* to = reinterpret_cast<int32_t*>(At(act_, uses.use[0].id).data());
  auto* labels = reinterpret_cast<int32_t*>(At(act_, uses.use[1].id).data());
  for (size_t i = 0; i < samples.size(); ++i)
    FillSample(shape, step, samples[i], to + i * tokens, labels + i * tokens);
}

// Of several parts: the same kernel on the rows of each.
std::vector<float> Trainer::LossesOf(const spf_program& program, size_t parts,
                                     int32_t ep_rank) const {
  const spf_model& tables = model_.Tables(ep_rank);
  std::vector<float> losses;
  for (int32_t n = 0; n < program.n_nodes; ++n) {
    const spf_uses& uses = program.nodes[n].uses[SPF_FWD];  // logits, labels, loss
    const spf_use* last = uses.n == 0 ? nullptr : uses.use + uses.n - 1;
    if (last == nullptr || last->table != SPF_IN_ACT) continue;
    if ((tables.values[last->id].flags & SPF_VALUE_LOSS) == 0) continue;
    if (parts == 1) {
      losses.push_back(0);
      std::memcpy(&losses.back(), At(act_, last->id).data(), sizeof(float));
      continue;
    }
    const Dims dims = DimsOf(model_.config());
    const int64_t tokens = dims.sequence / static_cast<int64_t>(parts);
    const auto* logits = reinterpret_cast<const float*>(At(act_, uses.use[0].id).data());
    const auto* labels = reinterpret_cast<const int32_t*>(At(act_, uses.use[1].id).data());
    Numerics numerics;
    numerics.quantised = model_.config().quantised;
    for (size_t i = 0; i < parts; ++i) {
      const auto first = static_cast<int64_t>(i) * tokens;
      losses.push_back(
          LossForward(numerics, tokens, dims.vocab, logits + first * dims.vocab, labels + first));
    }
  }
  return losses;
}

std::vector<float> Trainer::RunSequence(OracleState& state, int64_t step,
                                        const std::vector<int64_t>& samples, int32_t ep_rank,
                                        bool backward) {
  expert_rows_.clear();
  const std::vector<size_t>& slots = At(slot_, ep_rank);
  const bool bf16 = model_.config().bf16_params;
  const bool apart = backward && bf16_node_grads_;
  std::vector<std::vector<uint16_t>> narrow(bf16 ? slots.size() : 0);
  std::vector<std::vector<uint16_t>> added(apart ? slots.size() : 0);
  std::vector<const void*> param;
  std::vector<void*> grad, act, dact;
  for (size_t id = 0; id < slots.size(); ++id) {
    OracleParam& mine = state.params[slots[id]];
    param.push_back(mine.weight.data());
    grad.push_back(mine.grad.data());
    if (apart) {
      added[id].assign(mine.grad.size(), 0);
      grad.back() = added[id].data();
    }
    if (!bf16) continue;
    for (float value : mine.weight) narrow[id].push_back(ToBf16(value));
    param.back() = narrow[id].data();
  }
  for (auto& value : act_) act.push_back(value.data());
  for (auto& value : dact_) {
    std::memset(value.data(), 0, value.size());
    dact.push_back(value.data());
  }
  NodeArgs args;
  args.step = step;
  args.sample = samples.front();
  args.param = param.data();
  args.grad = grad.data();
  args.grad_dtype = apart ? SPF_BF16 : SPF_F32;
  args.act = act.data();
  args.dact = dact.data();
  args.rows = rows_.data();
  args.probe = &probe_;
  const spf_program& program = model_.Program(step, samples.front(), ep_rank);
  for (int32_t i = 0; i < program.n_nodes; ++i) {
    RunNode(program.nodes[i], SPF_FWD, args, ep_rank);
    if (program.nodes[i].kind == SPF_NODE_INPUT && samples.size() > 1)
      FillParts(program.nodes[i], step, samples);
  }
  for (int32_t i = program.n_nodes; backward && i-- > 0;)
    RunNode(program.nodes[i], SPF_BWD, args, ep_rank);
  for (size_t id = 0; id < added.size(); ++id) AddTo(state.params[slots[id]].grad, added[id]);
  return LossesOf(program, samples.size(), ep_rank);
}

}  // namespace shardproof
