#include "conformance/runner/command/command_line.h"

#include <unistd.h>

#include <exception>
#include <iostream>

#include "conformance/common/safe_stream.h"
#include "conformance/common/safe_text.h"
#include "conformance/fabric/process/descendants.h"
#include "conformance/runner/command/launched.h"
#include "conformance/runner/planted.h"
#include "conformance/trace/reader.h"

namespace shardproof {

namespace {

int CarryOut(const Options& given, int argc, char** argv, const OtherFabrics& others) {
  using Command = Options::Command;
  VoidOldReport(given);
  const Options options = WithFault(given);
  switch (options.command) {
    case Command::kRun:
      return RunCommand(options, others, argc, argv);
    case Command::kCheck:
      return CheckCommand(options);
    case Command::kList:
      return ListCommand(options);
    case Command::kProbe:
      return ProbeCommand(options);
    case Command::kReplay:
      return ReplayCommand(options);
    case Command::kShow:
      return ShowCommand(options);
    case Command::kShrink:
      return ShrinkCommand(options);
    case Command::kEdges:
      return EdgesCommand(options);
    case Command::kPlan:
      return PlanCommand(options);
    case Command::kExplain:
      return ExplainCommand(options);
    case Command::kExport:
      return ExportCommand(options);
    case Command::kConvert:
      return ConvertCommand(options);
    case Command::kDiff:
      return DiffCommand(options);
    case Command::kVerdict:
      return VerdictCommand(options);
    case Command::kBadge:
      return BadgeCommand(options);
    case Command::kWaive:
      return WaiveCommand(options);
    case Command::kNone:
      break;
  }
  return 3;
}

}  // namespace

static int Carry(int argc, char** argv, const OtherFabrics& others) {
  // Whatever is printed below: text of engines, traces and files does nothing to a terminal.
  const SafeStream safe_out(std::cout), safe_err(std::cerr);
  Options options;
  int code = 3;
  // Under mpirun every process meets the same mistake: rank 0 speaks.
  const bool speaks = IsFirstProcess();
  if (!speaks) std::cerr.setstate(std::ios::failbit);  // the parser's messages too
  if (!ParseOptions(argc, argv, &options, &code)) return code;
  std::cerr.clear();
  try {
    return CarryOut(options, argc, argv, others);
  } catch (const std::invalid_argument& error) {
    if (speaks) std::cerr << "shardproof: " << IndentedText(error.what()) << "\n";
    return 3;
  } catch (const TraceError& error) {
    std::cerr << "shardproof: input error: " << IndentedText(error.what()) << "\n";
    return 3;
  } catch (const std::exception& error) {
    std::cerr << "shardproof: the suite failed: " << IndentedText(error.what()) << "\n";
    return 2;
  }
  return 3;
}

int Main(int argc, char** argv, const OtherFabrics& others) {
  const bool alone = DescendantsOf(getpid()).empty();  // else some are a script's, which became us
  AdoptOrphans();  // of a keeper that an engine has killed (fabric/process/keeper.h)
  const int code = Carry(argc, argv, others);
  if (alone) EndDescendants();
  return code;
}

}  // namespace shardproof
