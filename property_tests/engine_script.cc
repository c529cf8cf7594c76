#include "property_tests/engine_script.h"

#include <algorithm>
#include <limits>
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

// Whether the rank is one of the engine's.
bool IsIn(const InstanceSpec& spec, int32_t rank) {
  return rank >= spec.offset && rank < spec.offset + spec.span;
}

std::vector<HostConfig::NamedGroup> GroupsOf(const Case& c, int32_t rank) {
  const InstanceSpec& spec = c.instances[0];
  std::vector<int32_t> world;
  for (int32_t r = 0; r < c.world; ++r) {
    if (spec.grid || IsIn(spec, r)) world.push_back(r);
  }
  std::vector<HostConfig::NamedGroup> groups{{"world", "world", world}};
  if (spec.grid) return groups;
  for (const GroupFamily& family : GroupFamilies(spec, c.world)) {
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
  if (spec.model.experts || spec.model.moe.experts > 0)
    config.model_rank.ep = PlaceIn(families, "ep", rank).index;
  if (spec.model.pp > 1) config.model_rank.pp = PlaceIn(families, "pp", rank).index;
  if (spec.model.tp > 1) config.model_rank.tp = PlaceIn(families, "tp", rank).index;
  if (spec.model.cp > 1) config.model_rank.cp = PlaceIn(families, "cp", rank).index;
  config.groups = GroupsOf(c, rank);
  return config;
}

// One rank of the engine.
class EngineOnRank {
 public:
  EngineOnRank(const Case& c, const Model& model, Fabric& fabric)
      : recorder_(fabric.rank(), c.world, Id(c), RecordLevel::kDigests),
        host_(ConfigOf(c, model, fabric.rank()), fabric, recorder_) {}

  Trace Run(const std::string& folder, const std::string& script) {
    Create();
    for (size_t i = 0; i + 1 < script.size() && error_.empty(); i += 2) {
      const std::string in = folder + "/" + script[i + 1];
      const int64_t step = script[i + 1] - '0';
      switch (script[i]) {
        case 's':
          Call("save", -1, [&] { return plugin_->save(engine_, in.c_str()); });
          break;
        case 'l':
          Call("load", -1, [&] { return plugin_->load(engine_, in.c_str()); });
          break;
        case 't':
          Call("train_step", step, [&] { return plugin_->train_step(engine_, step); });
          break;
        case 'e':
          Call("eval_step", step, [&] { return plugin_->eval_step(engine_, step); });
          break;
        case 'r':
          Destroy();
          Create();
          break;
        default:
          throw std::invalid_argument("script " + script);
      }
    }
    Destroy();
    return recorder_.Finish(TraceEnd::kComplete, "");
  }
  const std::string& error() const { return error_; }

 private:
  void Create() {
    Call("create", -1, [&] { return plugin_->create(host_.table(), &engine_); });
  }
  void Destroy() {
    if (engine_ == nullptr) return;
    Call("destroy", -1, [&] { return plugin_->destroy(engine_), SPF_OK; });
    engine_ = nullptr;
  }
  template <class F>
  void Call(const char* what, int64_t step, F&& call) {
    host_.BeginCall(what, step);
    const spf_status status = call();
    host_.EndCall(status);
    if (status == SPF_OK || !error_.empty()) return;
    error_ = std::string(what) + ": " + host_.explanation() + host_.first_refusal();
  }

  const spf_plugin* const plugin_ = reference::ReferencePlugin(SPF_ABI_MAJOR);
  Recorder recorder_;
  Host host_;
  spf_engine* engine_ = nullptr;
  std::string error_;
};

// What ranks published, put together.
class Collector {
 public:
  explicit Collector(ScriptResult& result) : result_(result) {}

  void Add(const Trace& trace, const spf_model& model, Place data) {
    who_ = " on rank " + std::to_string(trace.rank);
    const int32_t last = LastOfWeights(trace);
    std::string call;
    int64_t step = -1;
    for (const Event& event : trace.events) {
      if (event.kind == EventKind::kCallBegin) {
        call = trace.Text(event.text);
        step = event.id;
      }
      if (event.kind != EventKind::kPublish) continue;
      const double* const values = trace.values.data() + event.values;
      const bool trains = call == "train_step";
      if (event.result == SPF_RESULT_LOSS) {
        const int64_t sample = event.id * int64_t{data.size} + data.index;
        Losses& losses = trains ? result_.losses : result_.eval_losses;
        Set(losses.try_emplace({step, sample}, kNothing).first->second, *values, "loss");
      }
      if (event.result == SPF_RESULT_GRAD) Put(result_.grads[step], model, event, values);
      if (event.result != SPF_RESULT_PARAM) continue;
      if (trains) Put(result_.params[step], model, event, values);
      if (call == "load") Put(result_.loaded[event.call], model, event, values);
      if (event.call == last) Put(result_.weights, model, event, values);
    }
  }
  // What was published has no holes.
  void Finish() {
    for (const auto& [step, tensors] : result_.params) CheckWhole(tensors);
    for (const auto& [step, tensors] : result_.grads) CheckWhole(tensors);
    for (const auto& [load, tensors] : result_.loaded) CheckWhole(tensors);
    CheckWhole(result_.weights);
  }

 private:
  static constexpr double kNothing = std::numeric_limits<double>::infinity();

  // The last entry call that published any.
  static int32_t LastOfWeights(const Trace& trace) {
    int32_t last = -1;
    for (const Event& event : trace.events) {
      if (event.kind == EventKind::kPublish && event.result == SPF_RESULT_PARAM) last = event.call;
    }
    return last;
  }
  void Set(double& at, double value, const char* what) {
    if (at != kNothing && at != value) result_.contradictions.push_back(std::string(what) + who_);
    at = value;
  }
  void Put(Weights& tensors, const spf_model& model, const Event& event, const double* values) {
    const spf_param& param = model.params[event.id];
    std::vector<double>& tensor = tensors[param.name];
    tensor.resize(static_cast<size_t>(param.numel), kNothing);
    for (int64_t i = 0; i < event.count; ++i)
      Set(tensor[static_cast<size_t>(event.offset + i)], values[i], param.name);
  }
  void CheckWhole(const Weights& tensors) {
    for (const auto& [name, values] : tensors) {
      if (std::find(values.begin(), values.end(), kNothing) != values.end())
        result_.contradictions.push_back(name + ": nobody published some of it");
    }
  }

  ScriptResult& result_;
  std::string who_;
};

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
    if (!c.instances[0].grid && !IsIn(c.instances[0], fabric.rank())) return;
    const auto rank = static_cast<size_t>(fabric.rank());
    EngineOnRank engine(c, model, fabric);
    traces[rank] = engine.Run(folder, script);
    fabric.Drain();
    result.errors[rank] = engine.error();
  });
  if (run.deadlock) throw std::runtime_error(id + " with " + script + ": deadlock");
  Collector collector(result);
  for (int32_t rank = 0; rank < c.world; ++rank) {
    const HostConfig config = ConfigOf(c, model, rank);
    collector.Add(traces[static_cast<size_t>(rank)], model.Tables(config.model_rank),
                  {config.data_rank, config.data_ranks});
  }
  collector.Finish();
  return result;
}

std::string Difference(const Weights& seen, const Weights& expected) {
  for (const auto& [name, values] : expected) {
    const auto at = seen.find(name);
    if (at == seen.end() || at->second.size() != values.size()) return name + " was not published";
    for (size_t i = 0; i < values.size(); ++i) {
      if (at->second[i] == values[i]) continue;
      return name + "[" + std::to_string(i) + "] is " + std::to_string(at->second[i]) + ", not " +
             std::to_string(values[i]);
    }
  }
  return seen.size() == expected.size() ? "" : "something else was published too";
}

Losses OfStep(const Losses& losses, int64_t step) {
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min();
  return {losses.lower_bound({step, kFirst}), losses.lower_bound({step + 1, kFirst})};
}

}  // namespace shardproof
