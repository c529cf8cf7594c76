#include "conformance/runner/measure/timed_ranks.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "conformance/fabric/nccl/rendezvous/case_table.h"

namespace shardproof {
namespace {

std::string Packed(const TimeLists& lists) {
  std::ostringstream text;
  text.precision(17);
  for (const std::vector<double>& list : lists) {
    text << list.size();
    for (const double ms : list) text << ' ' << ms;
    text << '\n';
  }
  return text.str();
}

TimeLists Unpacked(const std::string& packed) {
  std::istringstream text(packed);
  TimeLists lists;
  for (size_t n = 0; text >> n;) {
    lists.emplace_back(n);
    for (double& ms : lists.back()) text >> ms;
  }
  return lists;
}

std::string NameOf(size_t number) { return "item " + std::to_string(number); }

int RanksOf(const TimedRanksOptions& options, size_t number) {
  return options.ranks_of ? options.ranks_of(number) : options.ranks;
}

class TimedWork : public RankWork {
 public:
  TimedWork(const TimedRanksOptions& options, const TimedRanks::Measure& measure,
            const RankSide& side, std::unique_ptr<RankMachine> machine,
            std::unique_ptr<Store> store)
      : options_(options),
        measure_(measure),
        side_(side),
        machine_(std::move(machine)),
        store_(std::move(store)) {}
  std::vector<std::string> Facts() override { return machine_->Facts(); }

  RankAnswer Run(const std::string& item) override {
    const size_t number = std::stoull(item);
    CaseTable meeting(*store_, NameOf(number), side_.rank, RanksOf(options_, number));
    std::unique_ptr<CaseMachine> machine = machine_->Begin(
        meeting, {options_.seconds, [this] { side_.waits->fetch_add(1); }, /*poison=*/false});
    const RankTimes times = measure_(*machine, meeting, side_, number);
    const MachineEnd end = machine->End();
    std::string why = times.why;
    if (end.cause != MachineEnd::Cause::kNone) why += " " + end.reason + "\n" + end.pending;
    RankAnswer answer;
    answer.end.blob = Packed(times.lists);
    answer.end.returned = why.empty();
    if (!why.empty()) answer.end = {RankEnd::kException, why, false, ""};
    answer.reusable = end.reusable && why.empty();
    if (!answer.reusable) static_cast<void>(machine.release());  // goes with the process
    return answer;
  }

 private:
  const TimedRanksOptions options_;
  const TimedRanks::Measure measure_;
  RankSide side_;
  std::unique_ptr<RankMachine> machine_;
  std::unique_ptr<Store> store_;
};

RankProcessOptions LaunchOf(const TimedRanksOptions& options) {
  RankProcessOptions launch;
  launch.ranks = options.ranks;
  launch.stall_seconds = launch.case_seconds = options.seconds;
  return launch;
}

}  // namespace

TimedRanks::TimedRanks(const TimedRanksOptions& options, const NcclKit& kit, const Measure& measure)
    : options_(options),
      store_(Store::Local()),
      processes_(LaunchOf(options),
                 [this, options, kit, measure](const RankSide& side) -> std::unique_ptr<RankWork> {
                   RankMachineOptions machine;
                   machine.rank = machine.local_rank = side.rank;
                   machine.local_ranks = options.ranks;
                   machine.gemm = options.gemm;
                   return std::make_unique<TimedWork>(options, measure, side, kit.open(machine),
                                                      store_->ForChild());
                 }) {}

TimeLists TimedRanks::Run(size_t number) {
  const int world = RanksOf(options_, number);
  CaseTable meeting(*store_, NameOf(number), 0, world);
  processes_.Prepare(world);
  const std::vector<RankAnswer> answers = processes_.Run(
      std::to_string(number), world,
      {[&](const std::string& why) { meeting.Abort(why); }, [&] { return meeting.Aborted(); }});
  TimeLists slowest;
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    const RankEnd& end = answers[rank].end;
    if (end.kind != RankEnd::kReturned)
      throw std::runtime_error("rank " + std::to_string(rank) + ": " + end.detail);
    const TimeLists times = Unpacked(end.blob);
    if (rank == 0) slowest = times;
    for (size_t list = 0; list < times.size(); ++list)
      for (size_t i = 0; i < times[list].size(); ++i)
        slowest[list][i] = std::max(slowest[list][i], times[list][i]);
  }
  return slowest;
}

}  // namespace shardproof
