#include "conformance/runner/measure/gpu_step_time.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "conformance/fabric/nccl/rendezvous/case_table.h"
#include "conformance/runner/measure/tape.h"
#include "conformance/runner/nccl/rank_processes.h"
#include "conformance/runner/rank_main.h"
#include "conformance/runner/scratch_folder.h"

namespace shardproof {
namespace {

struct Item {
  Case spec;
  RecordLevel level = RecordLevel::kOff;
};

// Bare kernels are of a tape: nothing else is taken from the last step.
std::string Packed(const VariantTimes& times) {
  std::ostringstream text;
  text.precision(17);
  for (const std::vector<double>* list : {&times.steps, &times.bare}) {
    text << list->size();
    for (const double ms : *list) text << ' ' << ms;
    text << '\n';
  }
  return text.str();
}

VariantTimes Unpacked(const std::string& packed) {
  std::istringstream text(packed);
  VariantTimes times;
  for (std::vector<double>* list : {&times.steps, &times.bare}) {
    size_t n = 0;
    text >> n;
    list->resize(n);
    for (double& ms : *list) text >> ms;
  }
  return times;
}

// One rank's measurement of one item.
class Measurement {
 public:
  Measurement(CaseMachine& machine, Rendezvous& meeting, const StepTimeOptions& options)
      : machine_(machine), meeting_(meeting), options_(options), fabric_(machine.fabric()) {
    clock_stream_ = fabric_.CreateStream("timing", 0);
    play_stream_ = fabric_.CreateStream("bare kernels", 0);
  }

  RankOutput Run(const Item& item, const Models& models, const Plugin& plugin,
                 const RankOptions& given) {
    RankOptions rank = given;
    rank.level = item.level;
    rank.executor = [this](Fabric&) {
      return tape_ = std::make_shared<TapeExecutor>(machine_.MakeExecutor());
    };
    rank.on_call = [this](std::string_view call, int64_t step, bool begins) {
      if (call == "train_step" && !fabric_.aborted()) begins ? Begin(step) : End(step);
    };
    return RunRank(fabric_, item.spec, models, plugin, rank);
  }
  const VariantTimes& times() const { return times_; }

 private:
  int64_t last() const { return options_.warmup + options_.steps; }

  // Everybody's device has nothing to do.
  int32_t Start(const std::string& what) {
    fabric_.Drain();
    std::vector<int32_t> all;
    for (int32_t rank = 0; rank < fabric_.world(); ++rank) all.push_back(rank);
    AllGather(meeting_, what, all, "", nullptr);
    return machine_.Stamp(clock_stream_);
  }
  double Stop(int32_t start) {
    fabric_.Drain();
    const int32_t stop = machine_.Stamp(clock_stream_);
    fabric_.Drain();
    return machine_.MillisecondsBetween(start, stop);
  }

  void Begin(int64_t step) {
    started_ = Start("step " + std::to_string(step));
    tape_->Record(step == last());
    fabric_.Keep(step == last());
  }
  void End(int64_t step) {
    const double ms = Stop(started_);
    if (step >= options_.warmup && step < last()) times_.steps.push_back(ms);
    if (step != last()) return;
    tape_->Record(false);
    for (int play = -1; play < options_.steps; ++play) {  // the first one warms up
      const int32_t start = Start("play " + std::to_string(play));
      fabric_.Enqueue(play_stream_, "bare kernels", [this] { tape_->Play(play_stream_); });
      const double bare = Stop(start);
      if (play >= 0) times_.bare.push_back(bare);
    }
    fabric_.Keep(false);
  }

  CaseMachine& machine_;
  Rendezvous& meeting_;
  const StepTimeOptions& options_;
  KeepingFabric fabric_;
  std::shared_ptr<TapeExecutor> tape_;
  int32_t clock_stream_ = -1, play_stream_ = -1, started_ = -1;
  VariantTimes times_;
};

class StepTimeWork : public RankWork {
 public:
  StepTimeWork(const StepTimeOptions& options, const std::vector<Item>& items, const Plugin& plugin,
               const RankSide& side, std::unique_ptr<RankMachine> machine,
               std::unique_ptr<Store> store, const std::string& folder)
      : options_(options),
        items_(items),
        plugin_(plugin),
        side_(side),
        machine_(std::move(machine)),
        store_(std::move(store)),
        folder_(folder) {}
  std::vector<std::string> Facts() override { return machine_->Facts(); }

  RankAnswer Run(size_t number) override {
    const Item& item = items_[number % items_.size()];
    CaseTable meeting(*store_, "item " + std::to_string(number), side_.rank, item.spec.world);
    std::unique_ptr<CaseMachine> machine = machine_->Begin(
        meeting, {options_.case_seconds, [this] { side_.waits->fetch_add(1); }, /*poison=*/false});
    const Models models = MakeModels(item.spec);
    RankOptions rank;
    rank.folder = folder_;
    rank.progress = side_.progress;
    RankAnswer answer;
    std::string why;
    {
      Measurement measurement(*machine, meeting, options_);
      const RankOutput output = measurement.Run(item, models, plugin_, rank);
      side_.progress->rank.store(-1);
      answer.end.blob = Packed(measurement.times());
      if (output.outcome.kind != EngineOutcome::Kind::kOk)
        why = output.outcome.call + ": " + output.outcome.reason;
    }
    const MachineEnd end = machine->End();
    if (end.cause != MachineEnd::Cause::kNone) why += " " + end.reason + "\n" + end.pending;
    answer.end.returned = why.empty();
    if (!why.empty()) answer.end = {RankEnd::kException, why, false, ""};
    answer.reusable = end.reusable && why.empty();
    if (!answer.reusable) static_cast<void>(machine.release());  // goes with the process
    return answer;
  }

 private:
  const StepTimeOptions& options_;
  const std::vector<Item>& items_;
  const Plugin& plugin_;
  RankSide side_;
  std::unique_ptr<RankMachine> machine_;
  std::unique_ptr<Store> store_;
  std::string folder_;
};

// A step is over when the slowest rank's is.
VariantTimes Slowest(const std::vector<RankAnswer>& answers) {
  VariantTimes slowest;
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    const RankEnd& end = answers[rank].end;
    if (end.kind != RankEnd::kReturned)
      throw std::runtime_error("rank " + std::to_string(rank) + ": " + end.detail);
    const VariantTimes times = Unpacked(end.blob);
    if (rank == 0) slowest = times;
    for (size_t i = 0; i < times.steps.size(); ++i)
      slowest.steps[i] = std::max(slowest.steps[i], times.steps[i]);
    for (size_t i = 0; i < times.bare.size(); ++i)
      slowest.bare[i] = std::max(slowest.bare[i], times.bare[i]);
  }
  return slowest;
}

}  // namespace

Case StepTimeCase(const StepTimeOptions& options, int ranks, bool overlap) {
  Case c = ParseId("w" + std::to_string(ranks) + ".zero3.adamw.raw.bf16.wire16" +
                   (overlap ? ".ogr.opg" : ".pf0"));
  InstanceSpec& spec = c.instances.front();
  if (!options.tiny) {  // set here: ids are held to the bounds of the quantised model
    spec.model.layers = 13;
    spec.model.vocab = 8192;
    spec.model.width = 1536;
    spec.model.heads = 16;
    spec.model.ffn = 6144;
    spec.model.sequence = 1024;
  }
  spec.script = std::string(static_cast<size_t>(options.warmup + options.steps + 1), 't');
  return c;
}

int64_t ParameterCount(const Case& c) {
  const Models models = MakeModels(c);
  const spf_model& tables = models.front()->Tables({});
  int64_t count = 0;
  for (int32_t i = 0; i < tables.n_params; ++i) count += tables.params[i].numel;
  return count;
}

std::vector<StepTimeRound> RunStepTimes(const StepTimeOptions& options, const NcclKit& kit,
                                        const Plugin& plugin, std::vector<std::string>* facts) {
  const ScratchFolder scratch;
  const std::vector<Item> items = {{StepTimeCase(options, 1, true), RecordLevel::kOff},
                                   {StepTimeCase(options, 1, true), RecordLevel::kOrder},
                                   {StepTimeCase(options, options.ranks, false), RecordLevel::kOff},
                                   {StepTimeCase(options, options.ranks, true), RecordLevel::kOff}};
  VariantTimes StepTimeRound::*const places[] = {&StepTimeRound::alone,
                                                 &StepTimeRound::alone_recorded,
                                                 &StepTimeRound::apart, &StepTimeRound::overlapped};
  const std::unique_ptr<Store> store = Store::Local();
  RankProcessOptions launch;
  launch.ranks = options.ranks;
  launch.stall_seconds = launch.case_seconds = options.case_seconds;
  RankProcesses processes(launch, [&](const RankSide& side) -> std::unique_ptr<RankWork> {
    RankMachineOptions machine;
    machine.rank = machine.local_rank = side.rank;
    machine.local_ranks = options.ranks;
    machine.gemm = options.gemm;
    return std::make_unique<StepTimeWork>(options, items, plugin, side, kit.open(machine),
                                          store->ForChild(), scratch.path());
  });
  std::vector<StepTimeRound> rounds(static_cast<size_t>(options.rounds));
  size_t number = 0;
  for (StepTimeRound& round : rounds) {
    for (size_t i = 0; i < items.size(); ++i, ++number) {
      const int world = items[i].spec.world;
      CaseTable meeting(*store, "item " + std::to_string(number), 0, world);
      processes.Prepare(world);
      round.*places[i] = Slowest(processes.Run(number, world,
                                               {[&](const std::string& why) { meeting.Abort(why); },
                                                [&] { return meeting.Aborted(); }}));
    }
  }
  *facts = processes.facts();
  return rounds;
}

}  // namespace shardproof
