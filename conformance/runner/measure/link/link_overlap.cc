#include "conformance/runner/measure/link/link_overlap.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/common/frame.h"
#include "conformance/runner/measure/link/steal_time.h"
#include "conformance/runner/rank_main.h"

namespace shardproof {
namespace {

using Clock = std::chrono::steady_clock;
double MicrosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

std::vector<int32_t> Everybody(const Fabric& fabric) {
  std::vector<int32_t> ranks(static_cast<size_t>(fabric.world()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::string Precise(double value) {
  std::ostringstream text;
  text.precision(17);
  text << value;
  return text.str();
}

[[noreturn]] void Give(const std::string& what, size_t rank, const RankEnd& end) {
  throw std::runtime_error(what + ": rank " + std::to_string(rank) + ": " + end.detail);
}

// ---- the link

// Time of an all_gather of so many bytes of each rank among others of its kind, as in a step: the
// median of batches.
double GatherUs(MpiWorld& world, uint64_t bytes) {
  MpiOptions mpi;
  mpi.looks_steadily = true;  // as in a step
  const CaseEnd end = world.RunCase(world.size(), mpi, [bytes](Fabric& fabric) {
    const int32_t all = fabric.OpenGroup("all", Everybody(fabric)),
                  stream = fabric.CreateStream("s", 0);
    const Block send = fabric.Alloc(stream, bytes, false),
                recv = fabric.Alloc(stream, bytes * static_cast<uint64_t>(fabric.world()), false);
    CommOp op;
    op.kind = SPF_ALL_GATHER;
    op.dtype = SPF_U8;
    op.group = all;
    op.stream = stream;
    op.send = send.host;
    op.recv = recv.host;
    op.count = bytes;
    op.what = "gather";
    constexpr int kBatch = 12;
    std::vector<double> times;
    for (int batch = 0; batch < 5; ++batch) {
      const auto begin = Clock::now();
      for (int i = 0; i < kBatch; ++i) fabric.Communicate({op});
      if (fabric.SyncStream(stream) != SPF_OK) return std::string();
      if (batch > 0) times.push_back(MicrosecondsSince(begin) / kBatch);
    }
    return Precise(Median(times));
  });
  double slowest = 0;
  for (size_t rank = 0; world.rank() == 0 && rank < end.ranks.size(); ++rank) {
    if (end.ranks[rank].blob.empty()) Give("timing the link", rank, end.ranks[rank]);
    slowest = std::max(slowest, std::stod(end.ranks[rank].blob));
  }
  return slowest;
}

LinkCost TimeLink(MpiWorld& world, bool tiny) {
  const uint64_t small = 4096, large = tiny ? 65536 : 1 << 18;
  const double us[] = {GatherUs(world, small), GatherUs(world, large)};
  const double pairs = (world.size() / 2) * (world.size() - world.size() / 2);
  LinkCost link;
  link.us_per_byte = std::max(1e-6, (us[1] - us[0]) / (pairs * static_cast<double>(large - small)));
  link.latency_us = std::max(0.0, us[0] - link.us_per_byte * pairs * static_cast<double>(small));
  return link;
}

// ---- one run

struct MeasuredRun {
  double step_us = 0;   // of the slowest rank
  double other_us = 0;  // a step; of the rank that has most
  int64_t nodes = 0, late = 0;
  std::vector<Trace> traces;
};

// Of the train steps behind the first one, from everybody's begin to the end of this rank's work.
class StepClock {
 public:
  StepClock(Fabric& fabric, WorkTally& tally, int steps)
      : fabric_(fabric), tally_(tally), steps_(steps) {
    all_ = fabric_.OpenGroup("clock", Everybody(fabric_));
  }
  void On(std::string_view call, int64_t step, bool begins) {
    if (call != "train_step" || fabric_.aborted()) return;
    if (begins && step == 1) {
      fabric_.Drain();
      int32_t none = -1;
      std::string key;
      fabric_.CreateGroup(all_, {}, &none, &key);  // all meet, and nothing is made
      tally_.Count(true);
      begin_ = Clock::now();
    }
    if (begins || step != steps_) return;
    fabric_.Drain();
    step_us_ = MicrosecondsSince(begin_) / steps_;
    tally_.Count(false);
  }
  double step_us() const { return step_us_; }

 private:
  Fabric& fabric_;
  WorkTally& tally_;
  int steps_;
  int32_t all_ = -1;
  Clock::time_point begin_;
  double step_us_ = 0;
};

ModelRank PlaceOf(const Case& c, int32_t rank) { return ModelRank(rank % c.instances.front().ep); }

MeasuredRun Run(MpiWorld& world, const Case& c, double us_per_element, int steps) {
  const Models models = MakeModels(c);
  const auto tally = std::make_shared<WorkTally>();
  const auto times =
      std::make_shared<NodeTimes>(*models.front(), PlaceOf(c, world.rank()), us_per_element);
  MpiOptions mpi;
  mpi.stall_seconds = 60;
  mpi.looks_steadily = true;
  mpi.lasts_us = [tally, times](std::string_view what, double took_us) {
    return tally->Lasts(*times, what, took_us);
  };
  // Muon's products take long themselves.
  mpi.apart = [](std::string_view what) { return what == "GEMM"; };
  const CaseEnd end = world.RunCase(c.world, mpi, [&](Fabric& fabric) {
    const Plugin plugin("builtin:reference");
    StepClock clock(fabric, *tally, steps);
    RankOptions options;
    options.level = RecordLevel::kOrder;
    options.on_call = [&](std::string_view call, int64_t step, bool begins) {
      clock.On(call, step, begins);
    };
    const RankOutput output = RunRank(fabric, c, models, plugin, options);
    if (output.outcome.kind != EngineOutcome::Kind::kOk)
      throw std::runtime_error(output.outcome.reason);
    return PackFrame({Precise(clock.step_us()), Precise(tally->other_us() / steps),
                      std::to_string(tally->nodes()), std::to_string(tally->late()), Pack(output)});
  });
  MeasuredRun run;
  for (size_t rank = 0; world.rank() == 0 && rank < end.ranks.size(); ++rank) {
    std::string blob = end.ranks[rank].blob;
    bool bad = false;
    const std::optional<Frame> fields = TakeFrame(&blob, &bad);
    if (!fields || fields->size() != 5) Give(Id(c), rank, end.ranks[rank]);
    run.step_us = std::max(run.step_us, std::stod((*fields)[0]));
    run.other_us = std::max(run.other_us, std::stod((*fields)[1]));
    run.nodes += NumberOf((*fields)[2]);
    run.late += NumberOf((*fields)[3]);
    run.traces.push_back(Unpack((*fields)[4], static_cast<int32_t>(rank), c).trace);
  }
  return run;
}

std::vector<NodeTimes> TimesOfAll(const Case& c, const Models& models, double us_per_element) {
  std::vector<NodeTimes> times;
  for (int32_t rank = 0; rank < c.world; ++rank)
    times.emplace_back(*models.front(), PlaceOf(c, rank), us_per_element);
  return times;
}

// ---- one engine

// Rank 0's number, on all ranks.
double Shared(MpiWorld& world, double value) { return std::stod(world.Broadcast(Precise(value))); }

// What is measured once counts for all rounds: it is measured again, too, until it is calm.
template <typename Measure>
auto Calm(MpiWorld& world, int again, const Measure& measure) {
  std::optional<decltype(measure())> calmest;
  double least = 0;
  for (int i = 0; i <= again && (!calmest || least > kCalm); ++i) {
    const ProcessorTime begin = ProcessorTimeNow();
    auto one = measure();
    const double steal = Shared(world, StealPercent(begin, ProcessorTimeNow()));
    if (calmest && steal >= least) continue;
    calmest = std::move(one);
    least = steal;
  }
  return *std::move(calmest);
}

constexpr double kAtOnce = 1e-9;  // not 0: then they would not be known as nodes

class EngineLab {
 public:
  EngineLab(MpiWorld& world, const OverlapEngine& engine, const LinkCost& link,
            const OverlapOptions& options)
      : world_(world),
        engine_(engine),
        models_(MakeModels(engine.with)),
        link_(link),
        steps_(options.steps) {
    // Kernels that end at once: what there is to hide, behind how much, and what else takes time.
    const MeasuredRun run =
        Calm(world_, options.again, [&] { return Run(world_, engine_.with, kAtOnce, steps_); });
    if (world_.rank() != 0) return;
    const NodeTimes elements(*models_.front(), PlaceOf(engine_.with, 0), 1);
    unit_ = CostsOf(run.traces.front(), elements, link_);
    unit_.other = run.other_us;
  }

  OverlapTimes Measure(double ratio) {
    const double us_per_element =
        Shared(world_, world_.rank() == 0 ? unit_.communication / ratio / unit_.compute : 0);
    const std::vector<NodeTimes> nodes = TimesOfAll(engine_.with, models_, us_per_element);
    const ProcessorTime begin = ProcessorTimeNow();
    const MeasuredRun baseline = Run(world_, engine_.baseline, us_per_element, steps_);
    const MeasuredRun with = Run(world_, engine_.with, us_per_element, steps_);
    OverlapTimes times;
    if (world_.rank() != 0) return times;
    times.steal = StealPercent(begin, ProcessorTimeNow());
    times.costs = CostsOf(with.traces.front(), nodes.front(), link_);
    times.costs.other = unit_.other;
    times.baseline = baseline.step_us;
    times.with = with.step_us;
    times.predicted =
        PredictedStep(with.traces, nodes, link_,
                      unit_.other / static_cast<double>(std::max<int64_t>(1, unit_.launches)));
    for (const MeasuredRun* run : {&baseline, &with}) Require(*run, nodes);
    return times;
  }
  double late() const { return late_; }

 private:
  // Kernels have lasted, or nothing was measured.
  void Require(const MeasuredRun& run, const std::vector<NodeTimes>& nodes) {
    int64_t issued = 0;
    double compute = 0;
    for (size_t rank = 0; rank < run.traces.size(); ++rank) {
      const StepCosts costs = CostsOf(run.traces[rank], nodes[rank], link_);
      issued += costs.nodes * steps_;
      compute = std::max(compute, costs.compute);
    }
    if (issued != run.nodes || run.step_us < compute) {
      throw std::runtime_error(engine_.name + ": of " + std::to_string(issued) + " kernels " +
                               std::to_string(run.nodes) + " lasted, and a step of " +
                               Precise(run.step_us) + " us has " + Precise(compute) +
                               " us of them");
    }
    late_ = std::max(late_, static_cast<double>(run.late) / static_cast<double>(run.nodes));
  }

  MpiWorld& world_;
  const OverlapEngine& engine_;
  const Models models_;
  const LinkCost link_;
  const int steps_;
  StepCosts unit_;  // with one microsecond for an element; rank 0
  double late_ = 0;
};

std::vector<OverlapTimes> RoundsOf(MpiWorld& world, EngineLab& lab, double ratio,
                                   const OverlapOptions& options) {
  std::vector<OverlapTimes> rounds;
  while (AnotherRound(rounds, options.rounds, options.again)) {
    rounds.push_back(lab.Measure(ratio));
    rounds.back().steal = Shared(world, rounds.back().steal);
  }
  return Calmest(std::move(rounds), options.rounds);
}

}  // namespace

OverlapReport MeasureOverlap(MpiWorld& world, const std::vector<OverlapEngine>& engines,
                             const OverlapOptions& options, const OverlapListener& listener) {
  OverlapReport report;
  report.link = Calm(world, options.again, [&] { return TimeLink(world, options.tiny); });
  if (world.rank() == 0) listener.on_link(report.link);
  for (const OverlapEngine& engine : engines) {
    EngineLab lab(world, engine, report.link, options);
    for (const double ratio : options.ratios) {
      const std::vector<OverlapTimes> rounds = RoundsOf(world, lab, ratio, options);
      if (world.rank() != 0) continue;
      report.rows.push_back(RowOf(engine.name, rounds));
      listener.on_row(report.rows.back());
    }
    report.late = std::max(report.late, lab.late());
  }
  return report;
}

}  // namespace shardproof
