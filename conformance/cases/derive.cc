// case.h's Derive: what follows from a case's fields, and what cannot be asked at all.
#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "conformance/cases/askable.h"
#include "conformance/cases/bounds.h"
#include "conformance/cases/grid.h"
#include "conformance/cases/illegal.h"
#include "conformance/cases/legs.h"

namespace shardproof {
namespace {

constexpr int32_t kMaxWorld = 16384;
constexpr size_t kMaxInstances = 16;

[[noreturn]] void CannotAsk(const InstanceSpec& spec, const std::string& why) {
  throw std::invalid_argument("instance " + spec.name + ": " + why);
}

void CheckText(const InstanceSpec& spec, const char* field, const std::string& text) {
  const bool plain =
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_,-") ==
      std::string::npos;
  if (!plain || text.empty())
    CannotAsk(spec, std::string(field) + " '" + text + "': letters, digits and _,- only");
}

void CheckWords(const InstanceSpec& spec) {
  CheckText(spec, "name", spec.name);
  CheckText(spec, "order", spec.order);
  CheckText(spec, "script", spec.script);
  if (!spec.units.empty()) CheckText(spec, "units", spec.units);
  if (!spec.twin.known()) {
    CannotAsk(spec, "twin = " + spec.twin.Text() +
                        ": use none, given, permuted, default_order, full_span, short, "
                        "expert_permuted or expert_dense");
  }
  // Any word can be asked for, so that engines refuse those that they do not know.
  for (const Knob& knob : KnobTable()) {
    if (knob.words.empty()) continue;
    const std::string word = knob.text(spec);
    if (std::count(knob.words.begin(), knob.words.end(), word) == 0)
      CheckText(spec, knob.name.c_str(), word);
  }
  if (!std::set<std::string>{"", "embedding", "layer", "middle", "last", "norms"}.count(
          spec.model.frozen)) {
    CannotAsk(spec,
              "frozen = " + spec.model.frozen + ": use embedding, layer, middle, last or norms");
  }
  if (!std::set<std::string>{"", "step", "rank"}.count(spec.model.unused)) {
    CannotAsk(spec, "unused = " + spec.model.unused + ": use step or rank");
  }
}

void CheckPlace(const InstanceSpec& spec, int32_t world) {
  if (spec.offset < 0 || spec.span < 1 || spec.offset + spec.span > world) {
    CannotAsk(spec, "ranks [" + std::to_string(spec.offset) + ", " +
                        std::to_string(spec.offset + spec.span) + ") are not in a world of " +
                        std::to_string(world));
  }
  if (!std::isfinite(spec.lr + spec.weight_decay + spec.clip_grad + spec.skip_norm))
    CannotAsk(spec, "lr, wd, clip and skip are finite");
  if (spec.model.sequence < 1) CannotAsk(spec, "sequence = " + std::to_string(spec.model.sequence));
  ExpandScript(spec);
  // Explicit groups have members, not axes: a grid that does not exist yields none.
  if (!spec.grid) {
    if (const std::string problem = GridProblem(spec); !problem.empty()) CannotAsk(spec, problem);
  }
}

// A wrong twin must be wrong for every rank: each has to refuse it by itself.
void CheckWrongTwin(const InstanceSpec& spec, int32_t world) {
  if (spec.twin == GatherTwin::kDenseOnly || spec.twin == GatherTwin::kExpertsOnly) {
    if (!HasExperts(spec))
      CannotAsk(spec, "twin = " + spec.twin.Text() + ": there are no parameters of experts");
  }
  if (!HasWrongTwin(spec)) return;
  if (spec.grid)
    CannotAsk(spec, "twin = " + spec.twin.Text() +
                        ": an engine that builds its groups is handed no twin");
  InstanceSpec right = spec;
  right.twin = GatherTwin::kGiven;
  const std::vector<GroupFamily> wrong_groups = GroupFamilies(spec, world),
                                 right_groups = GroupFamilies(right, world);
  const std::string wrong = WrongTwin(spec);
  const auto named = [&](const GroupFamily& family) { return family.name == wrong; };
  if (std::none_of(right_groups.begin(), right_groups.end(), named))
    CannotAsk(spec, "twin = " + spec.twin.Text() + ": there is no group " + wrong);
  for (size_t f = 0; f < right_groups.size(); ++f) {
    if (!named(right_groups[f])) continue;
    for (int32_t rank = spec.offset; rank < spec.offset + spec.span; ++rank) {
      const RankList *wrong_list = nullptr, *right_list = nullptr;
      IndexIn(wrong_groups[f], rank, &wrong_list);
      IndexIn(right_groups[f], rank, &right_list);
      if (wrong_list != nullptr && *wrong_list == *right_list) {
        CannotAsk(spec, "twin = " + spec.twin.Text() + ": rank " + std::to_string(rank) +
                            " would get the right one");
      }
    }
  }
}

const GroupFamily& Family(const std::vector<GroupFamily>& families, const std::string& name) {
  for (const GroupFamily& family : families) {
    if (family.name == name) return family;
  }
  throw std::logic_error("no group family " + name);
}

// Replicas (tp, pp) see the same samples; they stay equal only if each sample meets the same expert
// in all of them, and an expert's gradient is complete only if its expt_dp group sees each of its
// samples once.
void CheckExperts(const InstanceSpec& spec, int32_t world) {
  if (!spec.model.experts) return;
  const std::vector<GroupFamily> families = GroupFamilies(spec, world);
  const GroupFamily& dp_cp = Family(families, "dp_cp");
  const GroupFamily& ep = Family(families, "ep");
  std::vector<int32_t> expert_of(static_cast<size_t>(DpCpSize(spec)), -1);
  std::vector<std::set<int32_t>> samples_of(static_cast<size_t>(spec.ep));
  for (int32_t rank = spec.offset; rank < spec.offset + spec.span; ++rank) {
    const int32_t data = IndexIn(dp_cp, rank, nullptr), expert = IndexIn(ep, rank, nullptr);
    int32_t& known = expert_of[static_cast<size_t>(data)];
    if (known >= 0 && known != expert) {
      CannotAsk(spec, "order " + spec.order + ": data rank " + std::to_string(data) +
                          " meets two experts");
    }
    known = expert;
    samples_of[static_cast<size_t>(expert)].insert(data);
  }
  for (const RankList& list : Family(families, "expt_dp").lists) {
    const auto expert = static_cast<size_t>(IndexIn(ep, list.front(), nullptr));
    std::set<int32_t> seen;
    for (int32_t rank : list) seen.insert(IndexIn(dp_cp, rank, nullptr));
    if (seen.size() != list.size() || seen != samples_of[expert]) {
      CannotAsk(spec,
                "an expt_dp group does not see each of its expert's samples once; is etp = tp?");
    }
  }
}

void DeriveModel(InstanceSpec& spec, bool legal) {
  spec.model.ep = spec.model.experts || spec.model.moe.experts > 0 ? spec.ep : 1;
  spec.model.pp = spec.chunks > 1 ? spec.pp : 1;  // else pipeline ranks hold the same model
  spec.model.chunks = spec.chunks;
  spec.model.tensor_parallel = spec.tensor_parallel;
  spec.model.sequence_parallel = spec.sequence_parallel && legal;
  spec.model.vocab_parallel = spec.vocab_parallel && legal;
  spec.model.vocab_multiple = VocabMultiple(spec);
  // Else ranks of tp hold the same model.
  spec.model.tp = spec.tensor_parallel && legal ? spec.tp : 1;
  spec.model.context_parallel = spec.context_parallel && legal;
  spec.model.cp = spec.model.context_parallel ? spec.cp : 1;  // else samples of cp ranks are whole
  spec.model.samples_together = spec.model.context_parallel ? DpCpSize(spec) : 1;
  spec.model.loss_chunks = legal ? spec.loss_chunks : 1;
  spec.model.bf16_params = spec.param_dtype == KnobDtype::kBf16;
  spec.model.narrow = NeedsNarrow(spec);
  spec.model.d_odd = legal && HasNumbers(spec) ? OddDivisor(spec) : 1;
}

void DeriveInstance(InstanceSpec& spec, Case& c, size_t index) {
  if (const std::string problem = SizeProblem(spec); !problem.empty()) CannotAsk(spec, problem);
  if (spec.span == 0) spec.span = c.world - spec.offset;
  if (spec.units == "none") spec.units.clear();
  CheckWords(spec);
  CheckPlace(spec, c.world);
  CheckWrongTwin(spec, c.world);
  for (const std::string& problem :
       {MoeProblem(spec), PipelineProblem(spec), ScheduleProblem(spec), MuonProblem(spec),
        NanLossProblem(spec), TensorParallelProblem(spec), ContextParallelProblem(spec),
        LossChunksProblem(spec)}) {
    if (!problem.empty()) CannotAsk(spec, problem);
  }
  const std::string illegal = IllegalText(spec, c.world);
  if (illegal.empty()) {
    CheckExperts(spec, c.world);
    if (const std::string problem = TokensProblem(spec, c.world); !problem.empty())
      CannotAsk(spec, problem);
    if (const std::string problem = BoundProblem(spec); !problem.empty()) CannotAsk(spec, problem);
  } else {
    if (c.instances.size() > 1)
      CannotAsk(spec, illegal + "; an illegal combination must be the only instance");
    if (spec.span != c.world)
      CannotAsk(spec, illegal + "; an illegal combination is asked of the whole world");
    c.illegal = illegal;
  }
  DeriveModel(spec, illegal.empty());
  spec.model.seed = c.seed + 1000003 * index;
}

void DeriveLeg(Case& c) {
  if (c.world < 1 || c.world > kMaxWorld) {
    throw std::invalid_argument("world = " + std::to_string(c.world) + ": 1 to " +
                                std::to_string(kMaxWorld) + " ranks");
  }
  if (c.instances.empty() || c.instances.size() > kMaxInstances) {
    throw std::invalid_argument("a case has 1 to " + std::to_string(kMaxInstances) +
                                " instances, not " + std::to_string(c.instances.size()));
  }
  c.illegal.clear();
  for (const InstanceSpec& spec : c.instances) {
    if (MustFail(spec) && c.instances.size() > 1)
      CannotAsk(spec, "nanloss with nan ends the run: it must be the only instance");
  }
  for (const InstanceSpec& spec : c.instances) {
    if (spec.schedule == CommSchedule::kOneQueue || QueuesOf(c) == 0) continue;
    CannotAsk(spec, "schedule = " + spec.schedule.Text() +
                        " beside an engine with one_queue: streams of all engines share the one "
                        "queue of a device");
  }
  std::set<std::string> names;
  for (size_t index = 0; index < c.instances.size(); ++index) {
    DeriveInstance(c.instances[index], c, index);
    if (!names.insert(c.instances[index].name).second) {
      throw std::invalid_argument("two instances are named " + c.instances[index].name);
    }
  }
}

}  // namespace

void Derive(Case& c) {
  const Case* last = nullptr;
  for (size_t i = 0; i <= c.before.size(); ++i) {
    Case& leg = i < c.before.size() ? c.before[i] : c;
    GoOnFrom(last, &leg);
    DeriveLeg(leg);
    if (const std::string problem = LegProblem(c, i); !problem.empty())
      throw std::invalid_argument(problem);
    last = &leg;
  }
}

}  // namespace shardproof
