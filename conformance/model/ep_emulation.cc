#include "conformance/model/ep_emulation.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace shardproof {
namespace {

std::vector<int64_t> CountsIn(const Block& block) {
  std::vector<int64_t> counts(block.size() / sizeof(int64_t));
  std::memcpy(counts.data(), block.data(), block.size());
  return counts;
}

int32_t IdOf(const spf_uses& uses, spf_access access) {
  for (int32_t i = 0; i < uses.n; ++i) {
    if (uses.use[i].access == access) return uses.use[i].id;
  }
  throw std::logic_error("an exchange without a value to read or to write");
}

int64_t RowBytes(const spf_value& value) {
  return value.row_elems * (value.dtype == SPF_I64 ? 8 : 4);
}

void Require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

// The value that enters a chunk from the previous stage.
std::string StreamInto(const NodeBench& reader, int32_t chunk) {
  const spf_program& program = reader.program();
  for (int32_t i = 0; i < program.n_nodes; ++i) {
    const spf_uses& uses = program.nodes[i].uses[SPF_FWD];
    for (int32_t u = 0; u < uses.n && program.nodes[i].chunk == chunk; ++u) {
      if (uses.use[u].table != SPF_IN_ACT) continue;
      const spf_value& value = reader.tables().values[uses.use[u].id];
      if ((value.flags & SPF_VALUE_FROM_PREV) != 0) return value.name;
    }
  }
  throw std::logic_error("no value enters chunk " + std::to_string(chunk));
}

}  // namespace

std::vector<NamedConfig> RoutedConfigs(int32_t experts) {
  std::vector<NamedConfig> all;
  auto add = [&](const std::string& name, auto change) {
    ModelConfig config;
    config.moe.experts = experts;
    config.sequence = 4;
    change(config, config.moe);
    all.push_back({name, config});
  };
  add("plain", [](ModelConfig&, MoeConfig&) {});
  add("one choice", [](ModelConfig&, MoeConfig& moe) { moe.top_k = 1; });
  add("presoftmax", [](ModelConfig&, MoeConfig& moe) { moe.score = "presoftmax"; });
  add("sigmoid", [](ModelConfig&, MoeConfig& moe) { moe.score = "sigmoid"; });
  add("groups", [](ModelConfig&, MoeConfig& moe) { moe.groups = 4, moe.top_groups = 2; });
  add("losses", [](ModelConfig&, MoeConfig& moe) { moe.z_loss = moe.aux_loss = true; });
  add("shared", [](ModelConfig& c, MoeConfig& moe) { moe.shared = c.biases = true; });
  add("drop", [](ModelConfig&, MoeConfig& moe) { moe.capacity_percent = 75; });
  add("pad", [](ModelConfig& c, MoeConfig& moe) {
    moe.capacity_percent = 125;
    moe.pad = c.biases = true;
  });
  add("all to few", [](ModelConfig&, MoeConfig& moe) { moe.skew = "one"; });
  add("an empty expert", [](ModelConfig&, MoeConfig& moe) { moe.skew = "empty"; });
  add("an empty rank", [](ModelConfig&, MoeConfig& moe) { moe.skew = "rank"; });
  add("multi-token prediction", [](ModelConfig& c, MoeConfig& moe) { c.mtp = moe.shared = true; });
  add("mixed layers, odd sizes", [](ModelConfig& c, MoeConfig& moe) {
    moe.layers = "odd";
    c.layers = 3;
    c.mtp = c.tied = c.odd_sizes = c.biases = c.root_param = true;
  });
  add("twice, narrow, bf16",
      [](ModelConfig& c, MoeConfig&) { c.reused = c.narrow = c.bf16_params = true; });
  add("absent, frozen", [](ModelConfig& c, MoeConfig&) {
    c.unused = "step";
    c.frozen = "norms";
  });
  return all;
}

EpEmulation::EpEmulation(const ModelConfig& config, int64_t max_tokens, const MakeBench& make)
    : config_(config) {
  for (int32_t pp = 0; pp < config.pp; ++pp) {
    for (int32_t ep = 0; ep < config.ep; ++ep) {
      Rank& rank = ranks_.emplace_back();
      rank.place = ModelRank(ep, pp);
      rank.bench = make ? make(config, max_tokens, rank.place)
                        : std::make_unique<NodeBench>(config, max_tokens, rank.place);
      rank.blocks = rank.bench->Start();
    }
  }
  received_.resize(static_cast<size_t>(config.ep));
}

std::vector<EpEmulation::Rank*> EpEmulation::RanksOf(int32_t stage) {
  std::vector<Rank*> ranks;
  for (Rank& rank : ranks_) {
    if (rank.place.pp == stage % config_.pp) ranks.push_back(&rank);
  }
  return ranks;
}

std::vector<float> EpEmulation::Run(int64_t step, const std::vector<int64_t>& samples,
                                    const Options& options) {
  for (Rank& rank : ranks_) {  // stale bytes must not matter; gradients of values start at zero
    for (Block& block : rank.blocks.act) std::fill(block.begin(), block.end(), std::byte{0xFF});
    for (Block& block : rank.blocks.dact) std::fill(block.begin(), block.end(), std::byte{0});
  }
  Call call{0, SPF_FWD, step, &samples, options.scale, options.grad_dtype};
  const int32_t stages = config_.pp * config_.chunks;
  for (call.stage = 0; call.stage < stages; ++call.stage) {
    if (call.stage > 0) HandOver(call.stage - 1, call.stage, false);
    RunStage(call);
  }
  std::vector<float> losses;
  for (Rank* rank : RanksOf(stages - 1)) {
    const spf_model& tables = rank->bench->tables();
    for (int32_t id = 0; id < tables.n_values; ++id) {
      if ((tables.values[id].flags & SPF_VALUE_LOSS) != 0)
        losses.push_back(rank->blocks.Floats(SPF_IN_ACT, id)[0]);
    }
  }
  call.phase = options.delay_wgrad ? SPF_DGRAD : SPF_BWD;
  for (call.stage = stages - 1; call.stage >= 0; --call.stage) {
    if (call.stage < stages - 1) HandOver(call.stage + 1, call.stage, true);
    RunStage(call);
  }
  call.phase = SPF_WGRAD;
  for (call.stage = 0; options.delay_wgrad && call.stage < stages; ++call.stage) RunStage(call);
  return losses;
}

void EpEmulation::RunStage(const Call& call) {
  const std::vector<Rank*> ranks = RanksOf(call.stage);
  const int32_t n = ranks[0]->bench->program(call.step).n_nodes;
  for (int32_t i = 0; i < n; ++i) RunNode(call, ranks, call.phase == SPF_FWD ? i : n - 1 - i);
}

void EpEmulation::RunNode(const Call& call, const std::vector<Rank*>& ranks, int32_t index) {
  const spf_node& first = ranks[0]->bench->program(call.step).nodes[index];
  if (first.chunk != call.stage / config_.pp) return;
  if (first.kind == SPF_NODE_EXCHANGE) return Exchange(ranks, index, call);
  for (Rank* rank : ranks) {
    const auto ep = static_cast<size_t>(rank->place.ep);
    rank->bench->Run(rank->blocks, rank->bench->program(call.step).nodes[index], call.phase,
                     call.scale, call.grad_dtype, call.step, call.samples->at(ep));
  }
}

// all_to_all_v: piece r of every rank's value goes to rank r, which packs pieces by their source.
// Backward: the same with counts swapped.
void EpEmulation::Exchange(const std::vector<Rank*>& ranks, int32_t index, const Call& call) {
  if (ranks[0]->bench->program(call.step).nodes[index].uses[call.phase].n == 0) return;
  std::vector<std::vector<Block>> pieces;  // by source, then target
  for (Rank* rank : ranks) pieces.push_back(Send(*rank, index, call));
  for (Rank* rank : ranks) Receive(*rank, index, call, pieces);
}

std::vector<Block> EpEmulation::Send(const Rank& rank, int32_t index, const Call& call) const {
  const bool forward = call.phase == SPF_FWD;
  const spf_node& node = rank.bench->program(call.step).nodes[index];
  const auto from = static_cast<size_t>(IdOf(node.uses[call.phase], SPF_READ));
  const int32_t counts = forward ? node.send_counts : node.recv_counts;
  const spf_value& value = rank.bench->tables().values[from];
  std::vector<int64_t> rows(static_cast<size_t>(config_.ep), value.max_rows / config_.ep);
  if (counts >= 0) rows = CountsIn(rank.blocks.act[static_cast<size_t>(counts)]);
  Require(rows.size() == static_cast<size_t>(config_.ep), "counts that are not one per rank");
  const std::byte* at = (forward ? rank.blocks.act : rank.blocks.dact)[from].data();
  std::vector<Block> pieces;
  for (int64_t count : rows) {
    pieces.emplace_back(at, at + count * RowBytes(value));
    at += count * RowBytes(value);
  }
  return pieces;
}

void EpEmulation::Receive(Rank& rank, int32_t index, const Call& call,
                          const std::vector<std::vector<Block>>& pieces) {
  const bool forward = call.phase == SPF_FWD;
  const auto me = static_cast<size_t>(rank.place.ep);
  const spf_node& node = rank.bench->program(call.step).nodes[index];
  const int32_t to = IdOf(node.uses[call.phase], SPF_WRITE);
  const int32_t counts = forward ? node.recv_counts : node.send_counts;
  const spf_value& value = rank.bench->tables().values[to];
  std::vector<int64_t> rows;
  if (counts >= 0) rows = CountsIn(rank.blocks.act[static_cast<size_t>(counts)]);
  Block packed;
  for (size_t source = 0; source < pieces.size(); ++source) {
    const Block& piece = pieces[source][me];
    Require(counts < 0 || static_cast<int64_t>(piece.size()) == rows[source] * RowBytes(value),
            std::string(node.name) + ": sender and receiver disagree");
    packed.insert(packed.end(), piece.begin(), piece.end());
  }
  Require(packed.size() == rank.bench->LiveBytes(rank.blocks, to),
          std::string(node.name) + ": the pieces do not make the value");
  std::vector<Block>& table = forward ? rank.blocks.act : rank.blocks.dact;
  std::copy(packed.begin(), packed.end(), table[static_cast<size_t>(to)].begin());
  const std::string type = rank.bench->tables().modules[node.module].type;
  if (forward && type == "Dispatcher" && value.dtype == SPF_F32)
    received_[me] = static_cast<int64_t>(packed.size()) / RowBytes(value);
}

void EpEmulation::HandOver(int32_t from, int32_t to, bool gradient) {
  const std::vector<Rank*> senders = RanksOf(from), receivers = RanksOf(to);
  const int32_t chunk = (gradient ? from : to) / config_.pp;
  for (size_t r = 0; r < senders.size(); ++r) {
    const spf_model &mine = senders[r]->bench->tables(), &theirs = receivers[r]->bench->tables();
    const NodeBench& reader = gradient ? *senders[r]->bench : *receivers[r]->bench;
    const std::string name = StreamInto(reader, chunk);
    const int32_t source = FindValue(mine, name), target = FindValue(theirs, name);
    const uint32_t flags = gradient ? theirs.values[target].flags : mine.values[source].flags;
    Require((flags & SPF_VALUE_TO_NEXT) != 0, name + " is not flagged TO_NEXT");
    Blocks &a = senders[r]->blocks, &b = receivers[r]->blocks;
    (gradient ? b.dact : b.act)[static_cast<size_t>(target)] =
        (gradient ? a.dact : a.act)[static_cast<size_t>(source)];
  }
}

std::map<std::string, std::vector<float>> EpEmulation::Gradients() const {
  std::map<std::string, std::vector<float>> sums;
  for (const Rank& rank : ranks_) {
    const spf_model& tables = rank.bench->tables();
    for (int32_t id = 0; id < tables.n_params; ++id) {
      std::vector<float> grad(static_cast<size_t>(tables.params[id].numel));
      std::memcpy(grad.data(), rank.blocks.grad[static_cast<size_t>(id)].data(),
                  grad.size() * sizeof(float));
      std::vector<float>& sum = sums[tables.params[id].name];
      sum.resize(grad.size());
      for (size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + grad[i];
    }
  }
  return sums;
}

}  // namespace shardproof
