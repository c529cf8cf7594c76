#include "property_tests/engine_script.h"

#include <algorithm>
#include <stdexcept>

#include "conformance/cases/case.h"
#include "conformance/fabric/sim/sim.h"
#include "conformance/host/host.h"
#include "reference/plugin.h"

namespace shardproof {
namespace {

struct Place {
  int32_t index = 0, size = 1;
};

// This rank's place in its group of the family.
Place PlaceIn(const std::vector<GroupFamily>& families, const std::string& name, int32_t rank) {
  for (const GroupFamily& family : families) {
    const std::vector<int32_t>* list = nullptr;
    if (family.name != name) continue;
    const int32_t index = IndexIn(family, rank, &list);
    if (list != nullptr) return {index, static_cast<int32_t>(list->size())};
  }
  return {};
}

std::vector<HostConfig::NamedGroup> GroupsOf(const Case& c, int32_t rank) {
  std::vector<int32_t> world;
  for (int32_t r = 0; r < c.world; ++r) world.push_back(r);
  std::vector<HostConfig::NamedGroup> groups{{"world", "world", world}};
  if (c.instances[0].grid) return groups;
  for (const GroupFamily& family : GroupFamilies(c.instances[0], c.world)) {
    for (const std::vector<int32_t>& list : family.lists) {
      if (std::find(list.begin(), list.end(), rank) == list.end()) continue;
      groups.push_back({family.name, family.name + std::to_string(list.front()), list});
      break;
    }
  }
  return groups;
}

HostConfig ConfigOf(const Case& c, const Model& model, int32_t rank) {
  const InstanceSpec& spec = c.instances[0];
  const std::vector<GroupFamily> families = GroupFamilies(spec, c.world);
  const Place data = PlaceIn(families, "dp_cp", rank);
  HostConfig config;
  config.knobs = Knobs(spec);
  config.model = &model;
  config.microbatches = spec.microbatches;
  config.data_rank = data.index;
  config.data_ranks = data.size;
  if (spec.model.moe.experts > 0) config.model_rank.ep = PlaceIn(families, "ep", rank).index;
  if (spec.model.pp > 1) config.model_rank.pp = PlaceIn(families, "pp", rank).index;
  config.groups = GroupsOf(c, rank);
  return config;
}

// One rank of the engine.
class EngineOnRank {
 public:
  EngineOnRank(const Case& c, const Model& model, Fabric& fabric)
      : recorder_(fabric.rank(), c.world, Id(c), RecordLevel::kBytes),
        host_(ConfigOf(c, model, fabric.rank()), fabric, recorder_) {}

  Trace Run(const std::string& folder, const std::string& script) {
    const spf_plugin* plugin = reference::ReferencePlugin(SPF_ABI_MAJOR);
    spf_engine* engine = nullptr;
    Call("create", -1, [&] { return plugin->create(host_.table(), &engine); });
    for (size_t i = 0; i + 1 < script.size() && error_.empty(); i += 2) {
      const std::string in = folder + "/" + script[i + 1];
      const int64_t step = script[i + 1] - '0';
      switch (script[i]) {
        case 's':
          Call("save", -1, [&] { return plugin->save(engine, in.c_str()); });
          break;
        case 'l':
          Call("load", -1, [&] { return plugin->load(engine, in.c_str()); });
          break;
        case 't':
          Call("train_step", step, [&] { return plugin->train_step(engine, step); });
          break;
        default:
          throw std::invalid_argument("script " + script);
      }
    }
    if (engine != nullptr) Call("destroy", -1, [&] { return plugin->destroy(engine), SPF_OK; });
    return recorder_.Finish(TraceEnd::kComplete, "");
  }
  const std::string& error() const { return error_; }

 private:
  template <class F>
  void Call(const char* what, int64_t step, F&& call) {
    host_.BeginCall(what, step);
    const spf_status status = call();
    host_.EndCall(status);
    if (status == SPF_OK || !error_.empty()) return;
    error_ = std::string(what) + ": " + host_.explanation() + host_.first_refusal();
  }

  Recorder recorder_;
  Host host_;
  std::string error_;
};

// What a rank published for parameters in its last entry call that published any, and its losses.
void Add(const Trace& trace, const std::string& script, const spf_model& model, Place data,
         ScriptResult& result) {
  int32_t last = -1;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kPublish && event.result == SPF_RESULT_PARAM) last = event.call;
  }
  const auto set = [&](auto& map, auto key, double value, const std::string& what) {
    const auto [at, added] = map.try_emplace(key, value);
    if (at->second != value)
      result.contradictions.push_back(what + " on rank " + std::to_string(trace.rank));
  };
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kPublish) continue;
    const auto value = [&](int64_t i) {
      return trace.values[static_cast<size_t>(event.values + i)];
    };
    if (event.result == SPF_RESULT_LOSS) {
      const int64_t step = script[2 * static_cast<size_t>(event.call) - 1] - '0';  // 0 is create
      set(result.losses, std::pair{step, event.id * int64_t{data.size} + data.index}, value(0),
          "loss");
    }
    if (event.result != SPF_RESULT_PARAM || event.call != last) continue;
    const std::string name = model.params[event.id].name;
    for (int64_t i = 0; i < event.count; ++i)
      set(result.weights[name], event.offset + i, value(i), name);
  }
}

}  // namespace

ScriptResult RunEngineScript(const std::string& id, const std::string& folder,
                             const std::string& script) {
  const Case c = ParseId(id);
  if (!c.illegal.empty()) throw std::invalid_argument(id + ": " + c.illegal);
  const Model model(c.instances[0].model, TokensPerStep(c.instances[0]));
  std::vector<Trace> traces(static_cast<size_t>(c.world));
  ScriptResult result;
  result.errors.resize(traces.size());
  const SimResult run = RunSim(c.world, SimOptions(), [&](Fabric& fabric) {
    const auto rank = static_cast<size_t>(fabric.rank());
    EngineOnRank engine(c, model, fabric);
    traces[rank] = engine.Run(folder, script);
    fabric.Drain();
    result.errors[rank] = engine.error();
  });
  if (run.deadlock) throw std::runtime_error(id + " with " + script + ": deadlock");
  const std::vector<GroupFamily> families = GroupFamilies(c.instances[0], c.world);
  for (int32_t rank = 0; rank < c.world; ++rank) {
    const HostConfig config = ConfigOf(c, model, rank);
    Add(traces[static_cast<size_t>(rank)], script, model.Tables(config.model_rank),
        PlaceIn(families, "dp_cp", rank), result);
  }
  return result;
}

}  // namespace shardproof
