#include "conformance/runner/measure/gpu_step_time.h"

#include <utility>

#include "conformance/runner/measure/tape.h"
#include "conformance/runner/measure/timed_ranks.h"
#include "conformance/runner/rank_main.h"
#include "conformance/runner/scratch_folder.h"

namespace shardproof {
namespace {

struct Item {
  Case spec;
  RecordLevel level = RecordLevel::kOff;
};

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
    spec.model.sequence = options.tokens;
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
  const auto ranks_of = [&](size_t number) { return items[number % items.size()].spec.world; };
  TimedRanks ranks({options.ranks, options.gemm, options.case_seconds, ranks_of}, kit,
                   [&](CaseMachine& machine, Rendezvous& meeting, const RankSide& side,
                       size_t number) -> RankTimes {
                     const Item& item = items[number % items.size()];
                     RankOptions rank;
                     rank.folder = scratch.path();
                     rank.most_bytes = uint64_t{1} << 40;  // what the device has
                     rank.progress = side.progress;
                     Measurement measurement(machine, meeting, options);
                     const EngineOutcome outcome =
                         measurement.Run(item, MakeModels(item.spec), plugin, rank).outcome;
                     side.progress->rank.store(-1);
                     const bool well = outcome.kind == EngineOutcome::Kind::kOk;
                     return {{measurement.times().steps, measurement.times().bare},
                             well ? "" : outcome.call + ": " + outcome.reason};
                   });
  std::vector<StepTimeRound> rounds(static_cast<size_t>(options.rounds));
  size_t number = 0;
  for (StepTimeRound& round : rounds) {
    for (size_t i = 0; i < items.size(); ++i, ++number) {
      TimeLists times = ranks.Run(number);
      round.*places[i] = {std::move(times[0]), std::move(times[1])};
    }
  }
  *facts = ranks.facts();
  return rounds;
}

}  // namespace shardproof
