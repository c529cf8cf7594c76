#include "conformance/runner/report_options.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>

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

// "junit=out" and "out.xml" would become folders of these names.
std::string WhyNotAFolder(const std::string& text) {
  static constexpr std::string_view kKinds[] = {"html", "json", "jsonl", "junit",
                                                "md",   "svg",  "xml"};
  const auto names = [&](std::string_view kind) {
    return text.starts_with(std::string(kind) + "=") || text.ends_with("." + std::string(kind));
  };
  if (std::filesystem::is_directory(text) || std::ranges::none_of(kKinds, names)) return "";
  return "it takes a folder, in which report.html, report.jsonl, junit.xml and summary.md are "
         "written, not \"" +
         text + "\"";
}

}  // namespace

void AddReport(CLI::App* app, Options* o) {
  app->add_option("--report", o->report,
                  "folder for report.html, report.jsonl, junit.xml and summary.md")
      ->check(WhyNotAFolder, "FOLDER");
}

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
