#include "conformance/runner/rank_main.h"

#include <cxxabi.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "conformance/cases/bounds.h"
#include "conformance/checks/base/entry_answer.h"
#include "conformance/checks/robustness/answers.h"
#include "conformance/fabric/in_device_work.h"
#include "conformance/host/cpu_executor.h"
#include "conformance/host/host.h"
#include "conformance/runner/rank_config.h"
#include "conformance/trace/recorder.h"

namespace shardproof {

namespace {

using Kind = EngineOutcome::Kind;

// One engine on one rank, through its script, or until it declines the case.
class EngineRun {
 public:
  EngineRun(Fabric& fabric, Recorder& recorder, const Case& c, size_t instance, const Model& model,
            const Plugin& plugin, const RankOptions& options,
            const std::shared_ptr<Executor>& executor)
      : fabric_(fabric),
        plugin_(plugin.table()),
        legal_(c.illegal.empty()),
        script_(ExpandScript(c.instances[instance])),
        saves_(c.instances[instance].saves_before),
        another_leg_(!c.before.empty()),
        folder_(options.folder + "/" + std::to_string(instance)),
        progress_(options.progress),
        end_after_saves_(options.end_after_saves),
        on_call_(options.on_call),
        on_created_(options.on_created),
        host_(ConfigFor(c, instance, fabric, model, plugin, options, executor), fabric, recorder) {
    table_ = host_.table();
    if (options.fault && options.fault->Hits(fabric.rank(), static_cast<int32_t>(instance))) {
      faulty_.emplace(host_.table(), *options.fault, options.fault_struck);
      table_ = faulty_->table();
    }
  }

  bool done() const { return next_ >= script_.size() || outcome_.kind != Kind::kOk; }
  void Step() {
    const ScriptCall call = script_[next_++];
    const Kind kind = Call(call);
    if (kind == Kind::kOk && host_.runaway().empty()) return;
    Fail(kind, call);
    if (declined()) End();  // others of this rank go on
  }
  void End() {
    if (engine_ != nullptr && !died_)
      Destroy();  // what an exception left behind is not called again
  }
  const EngineOutcome& outcome() const { return outcome_; }
  bool declined() const { return outcome_.kind == Kind::kUnsupported; }

 private:
  static HostConfig ConfigFor(const Case& c, size_t instance, const Fabric& fabric,
                              const Model& model, const Plugin& plugin, const RankOptions& options,
                              const std::shared_ptr<Executor>& executor) {
    HostConfig config = HostConfigOf(c, instance, fabric.rank(), model, *options.families);
    if (!plugin.args().empty()) config.knobs["plugin_args"] = plugin.args();
    config.progress = options.progress;
    if (options.no_memory.rank == fabric.rank()) config.no_memory_at = options.no_memory.allocation;
    if (options.most_bytes) config.most_bytes = *options.most_bytes;
    config.executor = executor;
    return config;
  }

  Kind Call(const ScriptCall& call) {
    switch (call.letter) {
      case 'c':
        return Create();
      case 'd':
        return Destroy();
      case 't':
        return Enter("train_step", call.step,
                     [&] { return plugin_.train_step(engine_, call.step); });
      case 'e':
        if (plugin_.eval_step == nullptr) return Missing("eval_step");
        return Enter("eval_step", call.step, [&] { return plugin_.eval_step(engine_, call.step); });
      case 's': {
        if (plugin_.save == nullptr) return Missing("save");
        const std::string folder = folder_ + "/" + std::to_string(++saves_);
        std::filesystem::create_directories(folder);
        SaveBegins();
        const Kind kind = Enter("save", -1, [&] { return plugin_.save(engine_, folder.c_str()); });
        if (kind == Kind::kOk) SaveReturned();
        return kind;
      }
      default: {
        if (plugin_.load == nullptr) return Missing("load");
        const std::string folder = folder_ + "/" + std::to_string(saves_);
        return Enter("load", -1, [&] { return plugin_.load(engine_, folder.c_str()); });
      }
    }
  }

  void SaveBegins() {
    if (progress_ != nullptr && progress_->saves < saves_) progress_->saves = saves_;
  }
  void SaveReturned() {
    if (progress_ != nullptr && ++progress_->saved == end_after_saves_) raise(SIGKILL);
  }

  Kind Create() {
    const Kind kind = Enter("create", -1, [&] { return plugin_.create(table_, &engine_); });
    if (kind == Kind::kRejected && legal_ && !Unread().empty()) {
      reason_ = UnreadText(Unread()) + " and answered SPF_REJECTED";
      if (!host_.explanation().empty()) reason_ += ": " + host_.explanation();
      return Kind::kUnsupported;
    }
    if (kind != Kind::kOk) return kind;
    if (engine_ == nullptr) {
      reason_ = "create answered SPF_OK without an engine: set *out";
      return Kind::kFailed;
    }
    if (!Unread().empty()) {
      reason_ = UnreadText(Unread());
      return Kind::kUnsupported;
    }
    if (on_created_) on_created_(fabric_.rank(), engine_);
    return Kind::kOk;
  }

  // The first knob that the case sets and that create has not read, but for those of the contract,
  // which are judged and not excused; empty: none.
  std::string Unread() const {
    const std::vector<std::string> contract = ContractKnobs();
    for (const std::string& knob : host_.UnreadKnobs()) {
      if (std::find(contract.begin(), contract.end(), knob) == contract.end()) return knob;
    }
    return "";
  }

  Kind Destroy() {
    return Enter("destroy", -1, [&] {
      plugin_.destroy(std::exchange(engine_, nullptr));
      return SPF_OK;
    });
  }

  Kind Missing(const char* what) {
    what_ = what;
    reason_ = std::string(what) + " is NULL in spf_plugin";
    return Kind::kUnsupported;
  }

  template <class F>
  Kind Enter(const char* what, int64_t step, F&& call) {
    what_ = what;
    if (on_call_) on_call_(what, step, true);
    host_.BeginCall(what, step);
    int status = SPF_FAILED;  // an engine may answer what is no spf_status
    try {
      status = static_cast<int>(call());
    } catch (const std::exception& error) {
      reason_ = std::string("an exception crossed the interface: ") + error.what();
      died_ = true;
    } catch (const abi::__forced_unwind&) {  // the thread is being ended: not to be stopped
      throw;
    } catch (...) {
      reason_ = "an exception crossed the interface that is no std::exception";
      died_ = true;
    }
    if (!host_.broken().empty()) throw std::runtime_error(host_.broken());
    host_.EndCall(status);
    if (on_call_) on_call_(what, step, false);
    if (died_) return Kind::kDied;
    const EntryAnswer answer =
        AnswerOf(what, status, {host_.refusals() > 0, host_.answered_aborted(), another_leg_});
    if (!answer.why.empty()) reason_ = answer.why;
    return answer.kind;
  }

  void Fail(Kind kind, const ScriptCall& call) {
    outcome_.kind = kind;
    if (!host_.runaway().empty()) outcome_ = {Kind::kHung, "", host_.runaway()};
    outcome_.call = what_;
    if (call.step >= 0) outcome_.call += " " + std::to_string(call.step);
    if (outcome_.kind == Kind::kHung) return;  // the host has ended the run
    if (!reason_.empty()) outcome_.reason = reason_;
    if (outcome_.reason.empty()) outcome_.reason = host_.explanation();
    if (outcome_.kind == Kind::kRefused ||
        (outcome_.kind == Kind::kFailed && outcome_.reason.empty())) {
      outcome_.reason = host_.first_refusal().empty() ? outcome_.reason : host_.first_refusal();
    }
    const bool declines = kind == Kind::kRejected || kind == Kind::kUnsupported;
    if (!declines && kind != Kind::kAborted) {
      fabric_.Fail("rank " + std::to_string(fabric_.rank()) + " ended in " + outcome_.call + ": " +
                   outcome_.reason);
    }
  }

  Fabric& fabric_;
  const spf_plugin& plugin_;
  bool legal_;
  std::vector<ScriptCall> script_;
  int saves_;         // the number of the latest checkpoint
  bool another_leg_;  // saved before this one began
  std::string folder_;
  Progress* progress_;
  int32_t end_after_saves_;
  std::function<void(std::string_view call, int64_t step, bool begins)> on_call_;
  std::function<void(int32_t rank, spf_engine*)> on_created_;
  Host host_;
  std::optional<FaultyHost> faulty_;
  spf_host* table_ = nullptr;
  spf_engine* engine_ = nullptr;
  size_t next_ = 0;
  bool died_ = false;
  std::string what_, reason_;
  EngineOutcome outcome_;
};

using EngineRuns = std::vector<std::unique_ptr<EngineRun>>;

// Of the first engine that failed, else of the first that declined the case.
EngineOutcome OutcomeOf(const EngineRuns& runs) {
  EngineOutcome outcome;
  for (const auto& run : runs) {
    if (run->outcome().kind == Kind::kOk) continue;
    if (!run->declined()) return run->outcome();
    if (outcome.kind == Kind::kOk) outcome = run->outcome();
  }
  return outcome;
}

// Of an illegal case nothing is run that need not be.
bool Over(const EngineRuns& runs, bool legal) {
  const Kind kind = OutcomeOf(runs).kind;
  return kind != Kind::kOk && !(legal && kind == Kind::kUnsupported);
}

// Call by call, round robin, until all are done or one has failed.
void RunScripts(const EngineRuns& runs, bool legal) {
  bool busy = true;
  while (busy && !Over(runs, legal)) {
    busy = false;
    for (const auto& run : runs) {
      if (run->done()) continue;
      run->Step();
      busy = true;
    }
  }
  for (const auto& run : runs) run->End();
}

// Creating a group of everybody blocks until everybody is there.
void Meet(Fabric& fabric, int32_t world, const char* where) {
  std::vector<int32_t> all;
  for (int32_t rank = 0; rank < world; ++rank) all.push_back(rank);
  int32_t group = -1;
  std::string key;
  fabric.CreateGroup(fabric.OpenGroup(where, all), all, &group, &key);
}

RankOutput Play(Fabric& fabric, const Case& c, const Models& models, const Plugin& plugin,
                const RankOptions& options) {
  Recorder recorder(fabric.rank(), c.world, Id(c), options.level);
  if (options.stop && options.stop_rank == fabric.rank())
    recorder.StopAt(options.stop_event, options.stop);
  if (options.start_together) Meet(fabric, c.world, "start");
  const EngineClock clock;
  const std::shared_ptr<Executor> executor =
      options.executor ? options.executor(fabric) : std::make_shared<CpuExecutor>();
  EngineRuns runs;
  for (size_t i = 0; i < c.instances.size(); ++i) {
    if (!TakesPart(c.instances[i], fabric.rank())) continue;
    runs.push_back(
        std::make_unique<EngineRun>(fabric, recorder, c, i, *models[i], plugin, options, executor));
  }
  RankOutput output;
  bool drained = false;
  try {
    RunScripts(runs, c.illegal.empty());
    output.outcome = OutcomeOf(runs);
    drained = fabric.Drain() == SPF_OK && !fabric.aborted();
  } catch (const std::exception& error) {
    // Device work refers to what is about to go: it must not run any more.
    fabric.Fail(error.what());
    fabric.Drain();
    throw;
  }
  output.time = clock.Elapsed();
  executor->Collect();
  // Nobody writes out its trace while others are still timed.
  if (options.start_together && drained) Meet(fabric, c.world, "end");
  if (!drained && output.outcome.kind == Kind::kOk) {
    output.outcome = {Kind::kAborted, "the end of the script", "device work could not finish"};
  }
  output.trace =
      recorder.Finish(drained ? TraceEnd::kComplete : TraceEnd::kAborted, output.outcome.reason);
  return output;
}

}  // namespace

Models MakeModels(const Case& c) {
  Models models;
  for (const InstanceSpec& spec : c.instances) {
    models.push_back(
        std::make_unique<const Model>(spec.model, c.illegal.empty() ? TokensToSum(spec) : 1));
  }
  return models;
}

RankOutput RunRank(Fabric& fabric, const Case& c, const Models& models, const Plugin& plugin,
                   const RankOptions& options) {
  try {
    if (options.families != nullptr) return Play(fabric, c, models, plugin, options);
    const CaseFamilies families(c);
    RankOptions with = options;
    with.families = &families;
    return Play(fabric, c, models, plugin, with);
  } catch (const std::exception& error) {
    throw std::runtime_error(kInTheSuite + (" on rank " + std::to_string(fabric.rank())) + ": " +
                             error.what());
  }
}

}  // namespace shardproof
