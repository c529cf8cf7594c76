#include "conformance/runner/report_options.h"

namespace shardproof {

namespace {

CLI::App* AddOne(CLI::App* app, Options* o, const char* name, const char* what,
                 Options::Command command) {
  CLI::App* one = app->add_subcommand(name, what);
  one->add_option("REPORT", o->target,
                  "folder of --report, its report.jsonl, or a folder of the folders of all shards")
      ->required();
  one->callback([o, command] { o->command = command; });
  return one;
}

}  // namespace

void AddReportCommands(CLI::App* app, Options* o) {
  AddOne(app, o, "verdict", "print a report's verdict in one line and exit with its code",
         Options::Command::kVerdict)
      ->add_flag("--allow-partial", o->allow_partial,
                 "exit code 0, not 4, if all is well where evidence was there to judge it");
  AddOne(app, o, "badge", "print an SVG badge with verdict and counts", Options::Command::kBadge)
      ->add_option("--output", o->output, "write it to this file, not to the console");
  AddOne(app, o, "waive", "draft a --waivers file for what failed; you write the reasons",
         Options::Command::kWaive)
      ->add_option("--output", o->output, "write it to this file, not to the console");
}

}  // namespace shardproof
