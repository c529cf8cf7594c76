#include "conformance/cases/schedule_space.h"

#include <algorithm>
#include <map>
#include <utility>

#include "conformance/cases/bounds.h"
#include "conformance/cases/illegal.h"
#include "conformance/common/dtype.h"

namespace shardproof {
namespace {

bool IsLegal(const std::vector<IllegalRule>& rules, const InstanceSpec& spec, int32_t world) {
  return std::all_of(rules.begin(), rules.end(),
                     [&](const IllegalRule& rule) { return rule.broken(spec, world).empty(); });
}

Case WithoutSchedule(Case c) {
  const InstanceSpec usual;
  InstanceSpec& spec = c.instances.front();
  spec.overlap_moe = spec.delay_wgrad = spec.early_release = spec.recompute = false;
  spec.units = usual.units;
  spec.recompute_modules.clear();
  return c;
}

// What is computed again in backward: nothing, whole layers, parts of them.
void SetRecompute(Case& c, size_t value) {
  InstanceSpec& spec = c.instances.front();
  const char* const modules[] = {"", "", "norm", "core_attn", "norm,core_attn"};
  spec.recompute = value == 1;
  spec.recompute_modules = modules[value];
}

void SetCapacity(Case& c, size_t value) {
  MoeConfig& moe = c.instances.front().model.moe;
  const int32_t percent[] = {0, 100, 125, 100};
  moe.capacity_percent = percent[value];
  moe.pad = value == 3;
}

void SetExpertGroups(Case& c, size_t value) {
  MoeConfig& moe = c.instances.front().model.moe;
  const int32_t groups[] = {1, 2, 4}, top_groups[] = {1, 1, 2};
  moe.groups = groups[value];
  moe.top_groups = top_groups[value];
}

// How many units may be gathered ahead of need. One is the default of engines.
void SetPrefetch(Case& c, size_t value) {
  InstanceSpec& spec = c.instances.front();
  spec.prefetch_limit_bytes = value == 0 ? -1 : value == 1 ? 0 : BytesOfUnits(spec, 2);
}

}  // namespace

int64_t BytesOfUnits(const InstanceSpec& spec, int64_t units) {
  const Model model(spec.model, TokensPerStep(spec));
  const spf_model& tables = model.Tables(0);
  std::map<int32_t, int64_t> bytes_of_unit;
  for (int32_t id = 0; id < tables.n_params; ++id) {
    const spf_param& param = tables.params[id];
    for (int32_t module = param.module; module >= 0; module = tables.modules[module].parent) {
      if (std::string(tables.modules[module].type) != "TransformerLayer") continue;
      bytes_of_unit[module] += param.numel * static_cast<int64_t>(DtypeBytes(param.dtype));
      break;
    }
  }
  int64_t largest = 0;
  for (const auto& [module, bytes] : bytes_of_unit) largest = std::max(largest, bytes);
  return units * largest;
}

ScheduleSpace::ScheduleSpace(const std::vector<int32_t>& worlds, const std::vector<int32_t>& eps)
    : FactorSpace(Space::kSchedule) {
  AddRanks(worlds, eps);
  AddKnobs({"tp", "cp", "tensor_parallel", "num_optimizer_instances", "strategy", "outer_strategy",
            "skew", "overlap_moe_expert_parallel_comm", "delay_wgrad_compute",
            "ep_overlap_early_attn_memory_release", "units"});
  AddSetter("recompute", {"nothing", "layers", "norm", "core_attn", "norm,core_attn"},
            SetRecompute);
  AddKnobs({"high_priority_a2a_comm_stream"});
  AddSetter("prefetch", {"one unit", "nothing", "two units"}, SetPrefetch);
  AddKnobs({"loss_scale", "microbatches", "create_all_gather_group", "groups", "param_dtype",
            "optimizer", "overlap_grad_reduce", "calculate_per_token_loss", "script", "moe.experts",
            "layers", "moe.layers", "mtp", "top_k"});
  AddSetter("expert_groups", {"1 of 1", "1 of 2", "2 of 4"}, SetExpertGroups);
  AddKnobs({"score"});
  AddSetter("capacity", {"dropless", "drop 100%", "drop 125%", "pad 100%"}, SetCapacity);
  AddKnobs({"z_loss", "aux_loss", "shared", "biases"});
  AddOtherKnobs();
  RelateGridAndSchedule();
  RelateLayers();
  RelateChoices();
  Relate({"create_all_gather_group", "schedule", "high_priority_a2a_comm_stream"},
         CommScheduleGoes);
}

void ScheduleSpace::AddRanks(const std::vector<int32_t>& worlds, const std::vector<int32_t>& eps) {
  const auto shown = [](const std::vector<int32_t>& sizes) {
    std::vector<std::string> text;
    for (int32_t size : sizes) text.push_back(std::to_string(size));
    return text;
  };
  AddSetter("world", shown(worlds), [worlds](Case& c, size_t value) {
    c.world = c.instances.front().span = worlds[value];
  });
  AddSetter("ep", shown(eps),
            [eps](Case& c, size_t value) { c.instances.front().ep = eps[value]; });
}

void ScheduleSpace::RelateGridAndSchedule() {
  // Tuples of one grid follow each other: each grid is derived once, its schedules only meet the
  // rules about schedules.
  const std::vector<IllegalRule> rules = IllegalScheduleRules();
  Case last;
  bool last_askable = false;
  Relate({"world", "ep", "tp", "cp", "tensor_parallel", "num_optimizer_instances", "strategy",
          "outer_strategy", "skew", "overlap_moe_expert_parallel_comm", "delay_wgrad_compute",
          "ep_overlap_early_attn_memory_release", "units", "recompute"},
         [&](const Case& c) {
           const InstanceSpec& spec = c.instances.front();
           if (spec.span % (spec.tp * spec.cp) != 0 || spec.span % (spec.tp * spec.ep) != 0)
             return false;
           if (spec.tensor_parallel && spec.tp == 1) return false;  // nothing to split over
           if (!IsLegal(rules, spec, c.world)) return false;
           Case grid = WithoutSchedule(c);
           grid.instances.front().model.moe.experts = 8;
           if (grid == last) return last_askable;
           last = grid;
           return last_askable = LegalForOneToken(grid);
         });
}

void ScheduleSpace::RelateLayers() {
  Relate({"layers", "moe.layers", "mtp"}, [](Case c) {
    c.instances.front().model.moe.experts = 8;
    return LegalForOneToken(std::move(c));
  });
}

void ScheduleSpace::RelateChoices() {
  Relate({"top_k", "expert_groups"}, [](Case c) {
    c.instances.front().model.moe.experts = 8;
    return LegalForOneToken(std::move(c));
  });
}

Case ScheduleSpace::Make(const CoveringRow& row, uint64_t seed) const {
  const int prefetch = FactorIndex("prefetch");  // in bytes of the model's units: set last
  CoveringRow others = row;
  others[static_cast<size_t>(prefetch)] = 0;
  Case c;
  c.seed = seed;
  SetAll(c, others);
  InstanceSpec& spec = c.instances.front();
  spec.etp = EtpOf(spec);
  spec.model.sequence = LongestSequence(spec);
  Derive(c);
  Set(c, prefetch, row[static_cast<size_t>(prefetch)]);
  return c;
}

}  // namespace shardproof
