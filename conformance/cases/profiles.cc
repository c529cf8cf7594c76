#include "conformance/cases/profiles.h"

#include <algorithm>
#include <future>
#include <set>
#include <stdexcept>
#include <utility>

#include "conformance/cases/fabric_spaces.h"

namespace shardproof {
namespace {

// Collects cases that are not there yet. Each array is made by a thread of its own.
class CaseList {
 public:
  // The seed of arrays and of the data of their cases.
  explicit CaseList(uint64_t seed = 1) : seed_(seed) {}

  void Add(const Case& c) { Add(std::vector{c}); }
  void Add(const std::vector<Case>& cases) {
    known_.insert(known_.end(), cases.begin(), cases.end());
    std::promise<std::vector<Case>> known;
    known.set_value(cases);
    parts_.push_back(known.get_future());
  }
  void AddUpTo(int32_t world, std::vector<Case> cases) {
    std::erase_if(cases, [&](const Case& c) { return c.world > world; });
    Add(cases);
  }
  // Rows for what the single cases so far leave open. The space outlives the list.
  template <typename Space>
  void AddArray(const Space& space, CoveringOptions options) {
    options.given = space.RowsOf(known_);
    parts_.push_back(std::async(std::launch::async, [&space, options, seed = seed_] {
      std::vector<Case> cases;
      for (const CoveringRow& row : CoveringArray(space.problem(), options))
        cases.push_back(space.Make(row, seed));
      return cases;
    }));
  }
  // Every pair of the factors of `focus` (empty: of all), by cases that are as cheap as they can;
  // other factors have random values.
  template <typename Space>
  void AddPairs(const Space& space, const std::vector<int>& focus = {}) {
    CoveringOptions options{2, seed_, focus, 12};
    options.base = space.Cheap();
    for (int factor = 0; !focus.empty() && factor < static_cast<int>(options.base.size());
         ++factor) {
      if (std::find(focus.begin(), focus.end(), factor) == focus.end())
        options.base[static_cast<size_t>(factor)] = -1;
    }
    AddArray(space, options);
  }
  // Every triple, by cases whose other values are random.
  template <typename Space>
  void AddTriples(const Space& space) {
    AddArray(space, {3, seed_ + 1, {}, 4});
  }
  std::vector<Case> Take() {
    std::set<std::string> ids;
    std::vector<Case> cases;
    for (std::future<std::vector<Case>>& part : parts_) {
      for (Case& c : part.get()) {
        if (ids.insert(Id(c)).second) cases.push_back(std::move(c));
      }
    }
    return cases;
  }

 private:
  uint64_t seed_;
  std::vector<Case> known_;  // all but those of arrays
  std::vector<std::future<std::vector<Case>>> parts_;
};

// Derives the spaces of the fabric's core profile in two threads, before they are asked for: one
// for the dense spaces, which take as long as all others. Spaces keeps each kind apart.
void DeriveSpaces(const std::string& fabric, const std::vector<std::vector<int32_t>>& dense,
                  Spaces& spaces) {
  std::future<void> others = std::async(std::launch::async, [&] {
    ScheduleSpaceOf(fabric, spaces);
    LayerWiseSpaceOf(fabric, spaces);
    PipelineSpaceOf(fabric, spaces);
  });
  for (const std::vector<int32_t>& worlds : dense) spaces.Dense(worlds);
  others.get();
}

std::vector<int> Indices(const FactorSpace& space, const std::vector<std::string>& names) {
  std::vector<int> factors;
  for (const std::string& name : names) factors.push_back(space.FactorIndex(name));
  return factors;
}

// The knobs that decide which collectives run, in which order and on which group.
std::vector<int> CollectiveFactors(const CaseSpace& space) {
  return Indices(space, {"strategy", "outer_strategy", "num_optimizer_instances", "microbatches",
                         "create_all_gather_group", "groups", "experts", "recompute", "units",
                         "unused", "tied", "overlap_grad_reduce", "overlap_param_gather",
                         "average_in_collective", "prefetch_limit_bytes", "frozen"});
}

std::vector<int> CollectiveFactors(const LayerWiseSpace& space) {
  return Indices(space, {"world", "layer_wise_layout", "layer_wise_transport", "layer_wise_buffer",
                         "bucket_size", "overlap_grad_reduce", "overlap_param_gather"});
}

std::vector<Case> Smoke() {
  std::vector<Case> cases;
  for (const char* id :
       {"w2.ddp", "w4.zero1.k2", "w3.zero2.k2.tied", "w4.zero3.twin.adamw",
        "w8.zero3.n2.twin.k2.recompute", "w8.zero3.n2.hfsdp.bf16",
        "w8.zero3.tp2.pp2.etp2.grid.order=tp-pp-dp.twin", "w4.zero3.ep2.experts",
        "w4.zero3.do=ttsrlt", "w8.zero3.twin=permuted", "w8.zero2.n2.hfsdp",
        "w4.zero3.name=policy.n2+zero2.name=value.tp2.etp2", "w4.zero3.ep2.k2.moe4",
        "w4.zero3.ep2.k2.moe4.1f1b.dw", "w4.zero2.ep2.k2.layers3.moe4.shared.1f1b",
        "w3.lw.lr0p0625.bcast", "w8.lw.k2.ogr.opg.bs300.muon.lr0p0625.tied.gradbuf",
        "w4.lw.ogr.opg.adamw.lr0p0625.do=tetslett.aligned"}) {
    cases.push_back(ParseId(id));
  }
  return cases;
}

// Arrays come last: they have rows for what the single cases leave open.
std::vector<Case> SimCore(uint64_t seed, Spaces& spaces) {
  DeriveSpaces("sim", {SpaceWorlds("sim")}, spaces);
  CaseList list(seed);
  list.Add(Smoke());
  list.Add(NamedCases());
  list.Add(SharedWorldCases());
  list.Add(IllegalCases());
  list.Add(NamedScheduleCases());
  list.Add(PipelineCases());
  list.Add(NamedLayerWiseCases());
  list.Add(CrossCases());
  list.AddPairs(spaces.Dense(SpaceWorlds("sim")));
  list.AddPairs(ScheduleSpaceOf("sim", spaces));
  list.AddPairs(LayerWiseSpaceOf("sim", spaces));
  list.AddPairs(PipelineSpaceOf("sim", spaces));
  return list.Take();
}

std::vector<Case> SimFull(uint64_t seed, Spaces& spaces) {
  CaseList list(seed);
  list.Add(SimCore(seed, spaces));
  list.Add(FurtherScheduleCases());
  list.AddTriples(spaces.Dense(SpaceWorlds("sim")));
  list.AddTriples(ScheduleSpaceOf("sim", spaces));
  list.AddTriples(LayerWiseSpaceOf("sim", spaces));
  list.AddTriples(PipelineSpaceOf("sim", spaces));
  return list.Take();
}

std::vector<Case> MpiCore(uint64_t seed, Spaces& spaces) {
  DeriveSpaces("mpi", {{8, 4}, {3, 5, 6}}, spaces);
  CaseList list(seed);
  list.Add(Smoke());
  for (const char* id :
       {"w8.strategy=zero9", "w8.zero3.k0", "w8.ddp.avg.pertoken", "w8.zero3.grid.tp3", "w8.ddp.n3",
        "w8.zero3.hfsdp", "w8.zero3.n2.twin=full_span", "w6.zero2.n4",
        // programs of ranks differ, and so does what is used last: buckets have one order all the
        // same
        "w4.zero1.odd.unused=rank", "w8.zero3.odd.unused=rank",
        "w8.zero3.ep4.k3.layers3.moe8.1f1b.dw", "w8.zero2.cp2.ep4.k2.moe8.1f1b.dw",
        "w8.zero3.ep4.k2.moe8.skew=rank.1f1b.dw", "w4.zero3.dw", "w4.zero3.moe4.1f1b", "w8.lw.opg",
        "w8.lw.n2", "w4.ddp.aligned"}) {
    list.Add(ParseId(id));
  }
  const std::vector<Case> shared = SharedWorldCases();
  list.AddUpTo(8, {shared.begin(), shared.begin() + 5});
  list.AddUpTo(8, CrossCases());
  list.AddPairs(spaces.Dense({8, 4}));
  // Worlds that are no power of two: every pair of the knobs that decide which collectives run.
  const auto& odd = spaces.Dense({3, 5, 6});
  std::vector<int> factors = CollectiveFactors(odd);
  factors.push_back(odd.FactorIndex("world"));
  list.AddPairs(odd, factors);
  list.AddPairs(ScheduleSpaceOf("mpi", spaces));
  list.AddPairs(LayerWiseSpaceOf("mpi", spaces));
  list.AddPairs(PipelineSpaceOf("mpi", spaces));
  const LayerWiseSpace& few = spaces.LayerWise({3, 5});
  list.AddPairs(few, CollectiveFactors(few));
  return list.Take();
}

std::vector<Case> MpiFull(uint64_t seed, Spaces& spaces) {
  CaseList list(seed);
  list.Add(MpiCore(seed, spaces));
  list.AddUpTo(8, NamedCases());
  list.AddUpTo(8, SharedWorldCases());
  list.AddUpTo(8, IllegalCases());
  list.AddUpTo(8, NamedScheduleCases());
  list.AddUpTo(8, FurtherScheduleCases());
  list.AddUpTo(8, PipelineCases());
  list.AddUpTo(8, NamedLayerWiseCases());
  list.AddTriples(spaces.Dense(SpaceWorlds("mpi")));
  list.AddTriples(ScheduleSpaceOf("mpi", spaces));
  list.AddPairs(spaces.Schedule({8}));  // ep of one rank and of all, too
  list.AddTriples(LayerWiseSpaceOf("mpi", spaces));
  list.AddTriples(PipelineSpaceOf("mpi", spaces));
  return list.Take();
}

using ProfileMaker = std::vector<Case> (*)(uint64_t seed, Spaces& spaces);

// What a profile takes from a fabric's spaces, and which single situations.
struct Profiles {
  const char* fabric;
  ProfileMaker core, full;
};
constexpr Profiles kProfiles[] = {
    {"sim", SimCore, SimFull}, {"dry", SimCore, SimFull}, {"mpi", MpiCore, MpiFull}};

const Profiles& ProfilesOf(const FabricSpaces& fabric) {
  for (const Profiles& row : kProfiles) {
    if (row.fabric == fabric.name) return row;
  }
  throw std::logic_error("fabric " + fabric.name + " has no profiles");
}

}  // namespace

std::vector<Case> SmokeOfFewRanks(int32_t ranks) {
  if (ranks < 1 || ranks > 3) return {};
  const std::string world = "w" + std::to_string(ranks) + ".";
  CaseList list;
  for (const char* rest :
       {"ddp", "zero1.k2", "zero2.k2.tied", "zero3.twin.adamw", "zero3.k2.recompute",
        "zero3.do=ttsrlt", "lw.lr0p0625.bcast", "lw.ogr.opg.adamw.lr0p0625.do=tetslett.aligned"})
    list.Add(ParseId(world + rest));
  if (ranks != 2) return list.Take();
  for (const char* id : {"w2.zero3.ep2.k2.moe4", "w2.zero3.ep2.k2.moe4.1f1b.dw"})
    list.Add(ParseId(id));
  return list.Take();
}

std::vector<int32_t> SpaceWorlds(const std::string& fabric) {
  return SpacesOfFabric(fabric).worlds;
}

const ScheduleSpace& ScheduleSpaceOf(const std::string& fabric, Spaces& spaces) {
  const FabricSpaces& row = SpacesOfFabric(fabric);
  return spaces.Schedule(row.schedule_worlds, row.schedule_eps);
}

const LayerWiseSpace& LayerWiseSpaceOf(const std::string& fabric, Spaces& spaces) {
  return spaces.LayerWise(SpacesOfFabric(fabric).layer_wise_worlds);
}

const PipelineSpace& PipelineSpaceOf(const std::string& fabric, Spaces& spaces) {
  return spaces.Pipeline(SpacesOfFabric(fabric).pipeline_worlds);
}

std::vector<Case> Profile(const std::string& name, const std::string& fabric, Spaces& spaces,
                          uint64_t seed, int32_t ranks) {
  const FabricSpaces& row = SpacesOfFabric(fabric);
  if (!row.few_ranks_of.empty()) {
    CaseList list;
    list.AddUpTo(ranks, Profile(name, row.few_ranks_of, spaces, seed));
    return list.Take();
  }
  if (name == "smoke") return Smoke();
  if (name == "core") return ProfilesOf(row).core(seed, spaces);
  if (name == "full") return ProfilesOf(row).full(seed, spaces);
  throw std::invalid_argument("profile " + name + ": use smoke, core, full, reshard, crash or oom");
}

}  // namespace shardproof
