#include "conformance/runner/nccl/case_work.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "conformance/cases/legs.h"
#include "conformance/fabric/nccl/rendezvous/case_table.h"
#include "conformance/fabric/process/descendants.h"
#include "conformance/fabric/process/own_state.h"
#include "conformance/runner/selection.h"

namespace shardproof {
namespace {

constexpr char kBroken[] = "the machine failed: ";
// An engine that loops is found first, in stall_seconds; those who wait for it would call it a
// hang.
constexpr double kStallsOfAHang = 2;

// Behind the first line, each line of text on one of its own.
std::string Indented(const std::string& text) {
  std::string lines;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines += "\n  " + text.substr(at, end - at);
    at = end + 1;
  }
  return lines;
}

// Processes that engines have started here, also those that lost their parent: a rank process is
// the only child of its keeper.
size_t OthersBelowTheKeeper() {
  size_t others = 0;
  for (const pid_t pid : DescendantsOf(getppid())) others += pid != getpid() ? 1 : 0;
  return others;
}

class NcclWork : public RankWork {
 public:
  NcclWork(const NcclJob& job, const RankSide& side, std::unique_ptr<RankMachine> machine,
           std::unique_ptr<Store> store)
      : job_(job), side_(side), machine_(std::move(machine)), store_(std::move(store)) {}
  std::vector<std::string> Facts() override { return machine_->Facts(); }

  RankAnswer Run(const std::string& text) override {
    const NcclItem item = ItemOf(text);
    const Case c = LegsOf(ParseId(item.id)).at(item.leg);
    CaseTable meeting(*store_, item.Meeting(), side_.rank, c.world);
    std::unique_ptr<CaseMachine> machine;
    RankAnswer answer;
    try {
      machine = machine_->Begin(meeting, {kStallsOfAHang * job_.options.stall_seconds,
                                          [this] { side_.waits->fetch_add(1); }});
      answer = RunOn(*machine, c, item.run);
    } catch (const std::exception& error) {
      answer.end = {RankEnd::kException, std::string("an exception: ") + error.what(), false, ""};
      answer.reusable = false;
      meeting.Abort("rank " + std::to_string(side_.rank) + ": " + answer.end.detail);
    }
    // Device work may still run, on memory of the machine: it goes with the process.
    if (!answer.reusable) static_cast<void>(machine.release());
    return answer;
  }

 private:
  RankAnswer RunOn(CaseMachine& machine, const Case& c, size_t run) {
    const Models models = MakeModels(c);
    RankOptions rank =
        SimOptionsFor(job_.options, Id(c), job_.folder + "/" + std::to_string(run)).rank;
    rank.progress = side_.progress;
    rank.executor = [&](Fabric&) { return machine.MakeExecutor(); };
    const OwnState before;
    RankOutput output = RunRank(machine.fabric(), c, models, job_.plugin, rank);
    side_.progress->rank.store(-1);  // no engine code from here on
    output.changed = before.ChangedNow();
    const size_t left = OthersBelowTheKeeper();
    if (left > 0) {
      output.changed += (output.changed.empty() ? "" : "; ") + std::to_string(left) +
                        " processes of it still ran after the case";
    }
    RankAnswer answer = AnswerWith(output, machine.End());
    answer.reusable = answer.reusable && output.changed.empty();
    return answer;
  }

  const NcclJob job_;
  RankSide side_;
  std::unique_ptr<RankMachine> machine_;
  std::unique_ptr<Store> store_;
};

bool Died(const RankAnswer& answer) {
  return answer.end.kind == RankEnd::kSignal || answer.end.kind == RankEnd::kExit;
}
bool RunsForNothing(const RankAnswer& answer) {
  return answer.end.kind == RankEnd::kHung && answer.end.detail.starts_with("without progress");
}
bool MachineBroke(const RankAnswer& answer) {
  return answer.end.kind == RankEnd::kException && answer.end.detail.starts_with(kBroken);
}

}  // namespace

std::string NcclItem::Meeting() const {
  return "run " + std::to_string(run) + " leg " + std::to_string(leg);
}

std::string TextOf(const NcclItem& item) {
  return std::to_string(item.run) + " " + std::to_string(item.leg) + " " + item.id;
}

NcclItem ItemOf(const std::string& text) {
  std::istringstream in(text);
  NcclItem item;
  if (!(in >> item.run >> item.leg >> item.id)) throw std::invalid_argument("no item: " + text);
  return item;
}

std::unique_ptr<RankWork> MakeNcclWork(const NcclJob& job, const RankSide& side,
                                       std::unique_ptr<RankMachine> machine,
                                       std::unique_ptr<Store> store) {
  return std::make_unique<NcclWork>(job, side, std::move(machine), std::move(store));
}

RankAnswer AnswerWith(const RankOutput& output, const MachineEnd& end) {
  using Cause = MachineEnd::Cause;
  RankAnswer answer;
  answer.end.returned = true;
  answer.end.blob = Pack(output);
  answer.reusable = end.reusable;
  answer.mismatches = end.mismatches;
  // What the engine answered is in the output; a machine that failed inside of one of its calls is
  // not its answer.
  const bool inside =
      end.cause == Cause::kItself && output.outcome.kind == EngineOutcome::Kind::kAborted;
  if (end.cause == Cause::kBroken || inside) {
    answer.end.kind = RankEnd::kException;
    answer.end.detail = kBroken + end.reason + Indented(end.pending);
  } else if (end.cause == Cause::kHung || end.cause == Cause::kTold) {
    const bool hung = end.cause == Cause::kHung;
    answer.end.kind = hung ? RankEnd::kHung : RankEnd::kAborted;
    answer.end.detail = (hung ? "" : "ended because of ") + end.reason + Indented(end.pending);
    answer.waited = true;
  }
  return answer;
}

CaseEnd EndOf(std::vector<RankAnswer> answers) {
  const bool died = std::any_of(answers.begin(), answers.end(), Died);
  const bool loops = std::any_of(answers.begin(), answers.end(), RunsForNothing);
  const bool hung = std::any_of(answers.begin(), answers.end(), [](const RankAnswer& one) {
    return one.end.kind == RankEnd::kHung;
  });
  CaseEnd end;
  end.hang = hung && !died && !loops;
  std::set<std::string> mismatches;
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    RankAnswer& answer = answers[rank];
    mismatches.insert(answer.mismatches.begin(), answer.mismatches.end());
    if (end.hang && answer.end.kind == RankEnd::kAborted && answer.waited)
      answer.end.kind = RankEnd::kHung;
    if ((died || loops) &&
        (MachineBroke(answer) || (answer.end.kind == RankEnd::kHung && !RunsForNothing(answer)))) {
      answer.end.kind = RankEnd::kAborted;
    }
    if (answer.end.kind == RankEnd::kHung) {
      end.hang_report += (end.hang_report.empty() ? "" : "\n") + ("rank " + std::to_string(rank)) +
                         ": " + answer.end.detail;
    }
    end.ranks.push_back(std::move(answer.end));
  }
  end.mismatches.assign(mismatches.begin(), mismatches.end());
  return end;
}

}  // namespace shardproof
