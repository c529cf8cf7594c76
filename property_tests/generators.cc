#include "property_tests/generators.h"

#include <rapidcheck/state.h>

#include <ostream>
#include <utility>
#include <vector>

namespace shardproof {
namespace {

// One factor to 0, or one step down, as far as the relations allow it; larger steps first.
std::vector<CoveringRow> Smaller(const CoveringProblem& problem, const CoveringRow& row) {
  std::vector<CoveringRow> rows;
  const auto add = [&](size_t factor, int value) {
    CoveringRow smaller = row;
    smaller[factor] = value;
    if (Allowed(problem, smaller)) rows.push_back(std::move(smaller));
  };
  for (size_t factor = 0; factor < row.size(); ++factor) {
    if (row[factor] > 0) add(factor, 0);
  }
  for (size_t factor = 0; factor < row.size(); ++factor) {
    for (int value = row[factor] - 1; value > 0; --value) add(factor, value);
  }
  return rows;
}

// The first value, or now and then another.
template <typename T>
T Pick(std::vector<T> values) {
  if (*rc::gen::inRange(0, 12) != 0) return values.front();
  return *rc::gen::elementOf(std::move(values));
}

void RandomGrid(InstanceSpec& spec) {
  spec.tp = Pick<int32_t>({1, 2, 3, 0, -1});
  spec.cp = Pick<int32_t>({1, 2, 4});
  spec.ep = Pick<int32_t>({1, 2, 3});
  spec.pp = Pick<int32_t>({1, 2});
  spec.etp = Pick<int32_t>({1, 2, spec.tp});
  spec.order =
      Pick<std::string>({"tp-cp-ep-dp-pp", "tp-pp-dp", "dp", "pp-pp", "xp-dp", "dp-ep-cp-pp-tp"});
  spec.offset = Pick<int32_t>({0, 0, 1, 2, -1});
  spec.span = Pick<int32_t>({0, 0, 4, 8});
  spec.outer = Pick<int32_t>({1, 2, 3, 4, 0});
  spec.grid = Pick<int>({0, 1}) != 0;
  spec.twin = Choice<GatherTwin>::Parse(Pick<std::string>(
      {"none", "given", "permuted", "default_order", "full_span", "short", "other"}));
}

void RandomExperts(ModelConfig& model) {
  MoeConfig& moe = model.moe;
  moe.experts = Pick<int32_t>({8, 4, 6, 1, 0, -2});
  moe.top_k = Pick<int32_t>({2, 1, 4, 0});
  moe.layers = Pick<std::string>({"all", "odd", "even", "first", "last", "none"});
  moe.score = Pick<std::string>({"softmax", "presoftmax", "sigmoid", "hard"});
  moe.groups = Pick<int32_t>({1, 2, 4, 3});
  moe.top_groups = Pick<int32_t>({1, 2, 0});
  moe.z_loss = Pick<int>({0, 1}) != 0;
  moe.aux_loss = Pick<int>({0, 1}) != 0;
  moe.shared = Pick<int>({0, 1}) != 0;
  moe.capacity_percent = Pick<int32_t>({0, 100, 50, -1});
  moe.pad = Pick<int>({0, 1}) != 0;
  moe.skew = Pick<std::string>({"", "one", "empty", "rank", "left"});
  model.mtp = Pick<int>({0, 1}) != 0;
}

void RandomSchedule(InstanceSpec& spec) {
  spec.overlap_moe = Pick<int>({0, 1}) != 0;
  spec.delay_wgrad = Pick<int>({0, 1}) != 0;
  spec.early_release = Pick<int>({0, 1}) != 0;
  spec.high_priority = Pick<int>({0, 1}) != 0;
  spec.loss_scale_log2 = Pick<int32_t>({0, 3, -2, 25});
  spec.wrong_loss_scale = Pick<double>({0, 3, -2, 0.75, 4});
  spec.chunks = Pick<int32_t>({1, 2, 0});
  spec.recompute = Pick<int>({0, 1}) != 0;
  spec.recompute_modules = Pick<std::string>({"", "norm", "moe", "core_attn,norm", "norm,norm"});
  spec.shared_expert_overlap = Pick<int>({0, 1}) != 0;
  spec.double_buffer = Pick<int>({0, 1}) != 0;
  spec.nccl_ub = Pick<int>({0, 1}) != 0;
  spec.cuda_graph =
      Choice<GraphCapture>::Parse(Pick<std::string>({"", "full_iteration", "per_layer", "always"}));
}

void RandomLayerWise(InstanceSpec& spec) {
  spec.strategy = Choice<ShardingStrategy>::Parse(
      Pick<std::string>({"layer_wise", "layer_wise", "layer_wise", "no_shard"}));
  spec.layer_wise.layout =
      Choice<LayerWiseLayout>::Parse(Pick<std::string>({"dealt", "dealt", "aligned", "sliced"}));
  spec.layer_wise.transport = Choice<LayerWiseTransport>::Parse(
      Pick<std::string>({"all_gather_v", "broadcast", "padded", "two words"}));
  spec.layer_wise.buffer =
      Choice<LayerWiseBuffer>::Parse(Pick<std::string>({"own", "own", "grads", ""}));
  spec.overlap_grad_reduce = Pick<int>({0, 1}) != 0;
  spec.overlap_param_gather = Pick<int>({0, 1}) != 0;
  spec.nccl_ub = Pick<int>({0, 1}) != 0;
  spec.zero_count = Pick<int>({0, 1}) != 0;
  spec.skip_norm = Pick<double>({0, 0, 0.5, -1, 1e300});
}

// The states of an engine, as far as they decide what can be called next.
struct EngineLife {
  bool saved = false;  // there is a folder to load
};

struct EntryCall : rc::state::Command<EngineLife, std::string> {
  explicit EntryCall(char which) : letter(which) {}
  void run(const EngineLife&, std::string& script) const override { script += letter; }
  void show(std::ostream& out) const override { out << letter; }
  char letter;
};
struct Train : EntryCall {
  Train() : EntryCall('t') {}
};
struct Eval : EntryCall {
  Eval() : EntryCall('e') {}
};
struct Save : EntryCall {
  Save() : EntryCall('s') {}
  void apply(EngineLife& life) const override { life.saved = true; }
};
struct Load : EntryCall {
  Load() : EntryCall('l') {}
  void checkPreconditions(const EngineLife& life) const override { RC_PRE(life.saved); }
};
struct Again : EntryCall {
  Again() : EntryCall('r') {}
};

template <typename Space>
rc::Gen<CoveringRow> RowsOf(std::shared_ptr<const Space> space) {
  return rc::Gen<CoveringRow>([space](const rc::Random& random, int) {
    rc::Random source = random;
    return rc::shrinkable::shrinkRecur(
        RandomRow(space->problem(), source.next()), [space](const CoveringRow& row) {
          return rc::seq::fromContainer(Smaller(space->problem(), row));
        });
  });
}

template <typename Space>
rc::Gen<GeneratedCase> CasesOf(std::shared_ptr<const Space> space) {
  return rc::gen::map(RowsOf(space), [space](const CoveringRow& row) {
    return GeneratedCase{row, space->Make(row, 1)};
  });
}

}  // namespace

rc::Gen<CoveringRow> GenRow(std::shared_ptr<const CaseSpace> space) {
  return RowsOf(std::move(space));
}

std::ostream& operator<<(std::ostream& out, const GeneratedCase& generated) {
  return out << Id(generated.spec);
}

rc::Gen<GeneratedCase> GenCase(std::shared_ptr<const CaseSpace> space) {
  return CasesOf(std::move(space));
}

rc::Gen<GeneratedCase> GenCase(std::shared_ptr<const ScheduleSpace> space) {
  return CasesOf(std::move(space));
}

rc::Gen<GeneratedCase> GenCase(std::shared_ptr<const LayerWiseSpace> space) {
  return CasesOf(std::move(space));
}

rc::Gen<GeneratedCase> GenCase(std::shared_ptr<const PipelineSpace> space) {
  return CasesOf(std::move(space));
}

rc::Gen<std::string> GenScript(int calls) {
  const auto life = rc::state::gen::commands(
      EngineLife{}, rc::state::gen::execOneOfWithArgs<Train, Train, Eval, Save, Load, Again>());
  return rc::gen::map(rc::gen::resize(calls, life), [](const auto& commands) {
    std::string script;
    rc::state::runAll(commands, EngineLife{}, script);
    return script;
  });
}

rc::Gen<Case> GenAnyCase() {
  return rc::gen::exec([] {
    Case c;
    c.world = Pick<int32_t>({8, 4, 6, 3, 1, 16, 7, 0, 65});
    c.seed = *rc::gen::arbitrary<uint64_t>();
    InstanceSpec& spec = c.instances.front();
    RandomGrid(spec);
    spec.strategy = Choice<ShardingStrategy>::Parse(
        Pick<std::string>({"no_shard", "optim", "optim_grads", "optim_grads_params", "zero3"}));
    if (*rc::gen::inRange(0, 3) == 0) RandomLayerWise(spec);
    spec.outer_strategy =
        Choice<OuterStrategy>::Parse(Pick<std::string>({"no_shard", "optim", "full"}));
    spec.microbatches = Pick<int32_t>({1, 2, 3, 5, 0, -3});
    spec.per_token_loss = Pick<int>({0, 1}) != 0;
    spec.average_in_collective = Pick<int>({0, 1}) != 0;
    spec.grad_comm_dtype = Choice<KnobDtype>::Parse(Pick<std::string>({"fp32", "bf16", "fp16"}));
    spec.units = Pick<std::string>({"TransformerLayer", "", "none", "A,B", "two words"});
    spec.bucket_size = Pick<int64_t>({0, 100, -1});
    spec.prefetch_limit_bytes = Pick<int64_t>({-1, 0, 5, -9});
    spec.lr = Pick<double>({0.5, 1e-30, 1e300, -0.25, 1.0 / 3});
    spec.script = Pick<std::string>({"ttt", "tl", "tsl", "", "txt", "erse"});
    spec.model.experts = Pick<int>({0, 1}) != 0;
    spec.model.sequence = Pick<int32_t>({8, 1, 0, 4096});
    RandomSchedule(spec);
    if (*rc::gen::inRange(0, 2) != 0) {
      RandomExperts(spec.model);
      spec.overlap_moe = *rc::gen::inRange(0, 2) != 0;
    }
    return c;
  });
}

}  // namespace shardproof
