#include "conformance/runner/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/common/nearest.h"
#include "conformance/common/version.h"
#include "conformance/runner/option_groups.h"
#include "conformance/runner/report_options.h"

namespace shardproof {

namespace {

constexpr const char* kRecorded = "trace:DIR, or flight:DIR: dumps of PyTorch's flight recorder";

void AddPlan(CLI::App* app, Options* o) {
  CLI::App* plan =
      app->add_subcommand("plan", "print what one rank of an engine will issue in a train step");
  plan->add_option("--case", o->cases, "of this case")->required()->expected(1);
  plan->add_option("--impl", o->impl, "engine: builtin:reference or lib:PATH[:args]")
      ->capture_default_str();
  plan->add_option("--rank", o->rank, "of this rank")->check(FromZero())->capture_default_str();
  plan->add_option("--step", o->step, "of this train step")
      ->check(FromZero())
      ->capture_default_str();
  plan->add_flag("--verbose", o->verbose, "every single step, one a line");
}

void AddRun(CLI::App* app, Options* o) {
  CLI::App* run = app->add_subcommand("run", "judge an engine");
  AddSelection(run, o);
  AddEngine(run, o);
  run->add_flag("--list", o->list, "print the ids of the cases, run nothing");
  run->add_option("--last-failed", o->last_failed,
                  "report of an earlier run (its --report folder): only the cases that failed "
                  "there, under its seed");
  run->add_option("--max-fail", o->max_fail, "start no case after this many have failed")
      ->check(AboveZero());
  run->add_option(
         "--time-budget", o->time_budget,
         "begin no case after this long (90s, 10m, 2h); if that leaves one out, the verdict "
         "is conformant where judged at best")
      ->transform(
          CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"m", 60}, {"h", 3600}},
                                CLI::AsNumberWithUnit::CASE_INSENSITIVE, "TIME"))
      ->check(
          [](const std::string& seconds) {
            return std::strtod(seconds.c_str(), nullptr) > 0
                       ? ""
                       : "no case begins within no time: give more than 0, for example 10m";
          },
          "more than 0");
  run->add_option("--random", o->random,
                  "this many random legal cases of what the engine takes, seeds from --seed on, "
                  "instead of a profile, and as many combinations that it must refuse; legal cases "
                  "that fail are shrunk. Without --max-fail drawing stops after 10 failures")
      ->check(AboveZero());
  run->add_option("--waivers", o->waivers, "TOML file of known failures");
  AddReport(run, o);
  AddVerdict(run, o);
  run->add_option("--jobs", o->jobs, "sim: worker processes (0: one per core)")
      ->capture_default_str();
  run->add_option("--timings", o->timings,
                  "sim: run each case under so many timings, seeds from --seed on; the "
                  "results must be the same bits")
      ->check(AboveZero())
      ->capture_default_str();
  AddDisplay(run, o);
  CLI::Option* const verbose =
      run->add_flag("--verbose", o->verbose, "one line per case, and its notes");
  run->add_flag("--quiet", o->quiet, "print only what failed, and the verdict, at the end")
      ->excludes(verbose);
}

void AddCheck(CLI::App* app, Options* o) {
  CLI::App* check = app->add_subcommand(
      "check", "judge recorded traces, or dumps of PyTorch's flight recorder; runs no engine");
  check->add_option("address", o->target, kRecorded)->required();
  check
      ->add_option(
          "--profile", o->profile,
          "with --supports: count pairs (core) or triples (full) of values, or neither (smoke)")
      ->check(CLI::IsMember({"smoke", "core", "full"}))
      ->capture_default_str();
  check
      ->add_option("--supports", o->supports,
                   "TOML file of what the engine takes: says how many combinations of its values "
                   "were judged")
      ->check(CLI::ExistingFile);
  check
      ->add_option(
          "--part-events", o->part_events,
          "judge long runs in parts of this many events or more, read one after the other; "
          "0: whole")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  check
      ->add_option("--limit-memory", o->most_mib,
                   "exit with code 3 above this many MiB of address space; 0: no limit")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  check
      ->add_option("--limit-seconds", o->most_seconds,
                   "exit with code 3 after this many seconds of processor time; 0: no limit")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  check->add_option("--waivers", o->waivers, "TOML file of known failures")
      ->check(CLI::ExistingFile);
  AddReport(check, o);
  check->add_option("--recorded-by", o->recorded_by,
                    "command that records a case again; findings show it, followed by the case id, "
                    "instead of a check command");
  AddVerdict(check, o);
  AddDisplay(check, o);
}

void AddList(CLI::App* app, Options* o) {
  CLI::App* list =
      app->add_subcommand("list", "list cases, requirements, knobs, tokens of case ids, or values");
  list->add_option("what", o->target,
                   "cases, requirements, knobs, tokens, or values: those that profiles combine, as "
                   "a file for --supports")
      ->check(CLI::IsMember({"cases", "requirements", "knobs", "tokens", "values"}))
      ->default_val("cases");
  AddSelection(list, o);
}

void AddProbe(CLI::App* app, Options* o) {
  CLI::App* probe = app->add_subcommand(
      "probe", "ask an engine which values of which knobs it takes; prints a file for --supports");
  probe->add_option("--impl", o->impl, "engine: builtin:reference or lib:PATH[:args]")->required();
  probe->add_option("--output", o->output, "write it to this file, not to the console");
  probe
      ->add_option("--stall-seconds", o->stall_seconds,
                   "without progress for so long a case counts as taken, and is left to a run")
      ->check(AboveZero())
      ->capture_default_str();
}

// Which events are shown.
void AddView(CLI::App* command, Options* o) {
  command->add_option("--around", o->view.around, "show the events around this one, of --rank")
      ->check(FromZero());
  command
      ->add_option("--rank", o->view.rank,
                   "the rank of --around; with --whole: events of this rank alone")
      ->check(FromZero());
  command->add_option("--stream", o->view.stream, "show events on the stream of this name alone");
  command->add_option("--only", o->view.only, "show only events of these kinds")
      ->check(CLI::IsMember({"findings", "collectives", "memory"}));
  command->add_flag("--whole", o->view.whole, "show all events, not only where it fails");
}

void AddReplay(CLI::App* app, Options* o) {
  CLI::App* replay =
      app->add_subcommand("replay", "run the case of --case again on sim and show where it fails");
  AddSelection(replay, o);
  AddEngine(replay, o);
  AddVerdict(replay, o);
  replay->add_flag("--in-process", o->in_process,
                   "run the engine in this process, for a debugger; if it crashes or leaves, so "
                   "does shardproof");
  AddView(replay, o);
  replay->add_flag("--step", o->view.step,
                   "stop in a debugger where the event of --around and --rank, or of the first "
                   "finding, is issued; without a debugger: print the command that starts one");
  AddDisplay(replay, o);
}

void AddShow(CLI::App* app, Options* o) {
  CLI::App* show = app->add_subcommand("show", "show what happens where a recorded run fails");
  show->add_option("address", o->target, kRecorded)->required();
  AddView(show, o);
  AddVerdict(show, o);
  AddDisplay(show, o);
}

void AddTrace(CLI::App* app, Options* o) {
  CLI::App* trace = app->add_subcommand(
      "trace", "convert recorded traces: for Perfetto, or to and from the packed form");
  trace->require_subcommand(1);
  CLI::App* written =
      trace->add_subcommand("export", "write one run, all ranks, as one file for Perfetto");
  written->add_option("--perfetto", o->output, "output file, for ui.perfetto.dev")->required();
  written->add_option("address", o->target, "trace:DIR")->required();
  CLI::App* converted = trace->add_subcommand(
      "convert", "write one run in packed form, which check reads several times faster than text");
  converted->add_option("--to", o->output, "output folder; must hold no trace yet")->required();
  converted->add_flag("--text", o->as_text, "write text (JSON Lines) instead of packed");
  converted->add_option("address", o->target, "trace:DIR")->required();
}

void AddShrink(CLI::App* app, Options* o) {
  CLI::App* shrink = app->add_subcommand(
      "shrink", "find the smallest case that fails as a given one does, on --fabric sim");
  shrink->add_option("--case", o->cases, "the case that fails")->required()->expected(1);
  shrink->add_option("--seed", o->seed, "seed of timings")->capture_default_str();
  AddEngine(shrink, o);
  shrink->add_flag("--strict", o->strict, "a broken SHOULD fails its case");
  shrink->add_option("--jobs", o->jobs, "worker processes (0: one per core)")
      ->capture_default_str();
  AddDisplay(shrink, o);
}

void AddEdges(CLI::App* app, Options* o) {
  CLI::App* edges = app->add_subcommand(
      "edges",
      "which synchronisations of one rank does the engine need? Each is left out in a run of its "
      "own "
      "on --fabric sim: needed (what breaks), implied (by which others), not covered");
  edges->add_option("--case", o->cases, "of this case")->required()->expected(1);
  edges->add_option("--rank", o->rank, "of this rank")->check(FromZero())->capture_default_str();
  edges->add_option("--seed", o->seed, "seed of timings")->capture_default_str();
  AddEngine(edges, o);
  edges->get_option("--fault")->group("");  // it is refused, with the reason
  edges->add_option("--jobs", o->jobs, "worker processes (0: one per core)")->capture_default_str();
  AddDisplay(edges, o);
}

void AddDiff(CLI::App* app, Options* o) {
  CLI::App* diff = app->add_subcommand(
      "diff", "compare two reports of an engine; exit code 1 if something is worse");
  diff->add_option("EARLIER", o->target,
                   "folder of --report, its report.jsonl, or a folder of the folders of all shards")
      ->required();
  diff->add_option("LATER", o->later, "the same of the later run")->required();
  diff->add_flag("--markdown", o->markdown, "print Markdown, for a comment on a pull request");
}

// By what was parsed; the commands about reports have set theirs.
void SetCommand(const CLI::App& app, Options* o) {
  using Command = Options::Command;
  static constexpr std::pair<const char*, Command> kCommands[] = {
      {"run", Command::kRun},       {"check", Command::kCheck},   {"list", Command::kList},
      {"probe", Command::kProbe},   {"replay", Command::kReplay}, {"show", Command::kShow},
      {"plan", Command::kPlan},     {"trace", Command::kExport},  {"diff", Command::kDiff},
      {"shrink", Command::kShrink}, {"edges", Command::kEdges},   {"explain", Command::kExplain}};
  for (const auto& [name, command] : kCommands) {
    if (app.got_subcommand(name)) o->command = command;
  }
  if (o->command == Command::kExport && app.get_subcommand("trace")->got_subcommand("convert"))
    o->command = Command::kConvert;
}

// For the first option that there is none of: the nearest one.
void Suggest(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names, commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(command->get_name());
    if (argc < 2 || command->get_name() != argv[1]) continue;
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  const auto suggest = [](const std::string& written, const std::vector<std::string>& known) {
    if (std::find(known.begin(), known.end(), written) != known.end()) return false;
    const std::string nearest = Nearest(written, known);
    if (!nearest.empty()) std::cerr << written << ": did you mean " << nearest << "?\n";
    return true;
  };
  if (argc > 1 && argv[1][0] != '-') suggest(argv[1], commands);
  for (int i = 2; i < argc; ++i) {
    const std::string written = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
    if (written.starts_with("--") && suggest(written, names)) return;
  }
}

}  // namespace

bool ParseOptions(int argc, char** argv, Options* o, int* exit_code) {
  CLI::App app{
      "shardproof: conformance of training engines that shard parameters and overlap "
      "communication"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "shardproof " + VersionText() + ", ABI " +
                                        std::to_string(SPF_ABI_MAJOR) + "." +
                                        std::to_string(SPF_ABI_MINOR));
  o->program = argv[0];

  AddRun(&app, o);
  AddCheck(&app, o);
  AddList(&app, o);
  AddReplay(&app, o);
  AddShow(&app, o);
  AddPlan(&app, o);
  AddProbe(&app, o);
  app.add_subcommand(
         "explain",
         "print a requirement: its sentence, why, a published bug, how to mend it, an example")
      ->add_option("requirement", o->target, "for example FS-05")
      ->required();
  AddTrace(&app, o);
  AddDiff(&app, o);
  AddShrink(&app, o);
  AddEdges(&app, o);
  AddReportCommands(&app, o);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    if (code != 0) Suggest(app, argc, argv);
    *exit_code = code == 0 ? 0 : 3;
    return false;
  }
  SetCommand(app, o);
  const CLI::App& command = *app.get_subcommands().front();
  const CLI::Option* const profile = command.get_option_no_throw("--profile");
  o->profile_given = profile != nullptr && profile->count() > 0;
  if (o->random > 0 && o->max_fail == 0) o->max_fail = kMostRandomFailures;
  return true;
}

}  // namespace shardproof
