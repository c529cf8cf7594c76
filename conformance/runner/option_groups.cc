#include "conformance/runner/option_groups.h"

#include <CLI/CLI.hpp>
#include <cfloat>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "conformance/cases/fabric_spaces.h"

namespace shardproof {

namespace {

// The number, or one below all that are taken.
double NumberIn(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const bool whole = !text.empty() && *end == 0 && number <= DBL_MAX;
  return whole ? number : -1;
}

// What lies there, or above it, is no folder.
std::string WhyNoFolderThere(const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path there = fs::absolute(text, error);
  while (there.has_relative_path() && !fs::exists(there, error)) there = there.parent_path();
  if (error || fs::is_directory(there, error)) return "";
  const std::string why = "\"" + there.string() + "\" is no folder";
  return there == fs::absolute(text, error) ? why : why + ", so there can be no " + text;
}

}  // namespace

const CLI::Validator& FromZero() {
  static const CLI::Validator from_zero(
      [](const std::string& text) {
        return NumberIn(text) >= 0 ? "" : "it takes a number from 0 on, not " + text;
      },
      "NONNEGATIVE");
  return from_zero;
}

const CLI::Validator& AboveZero() {
  static const CLI::Validator above_zero(
      [](const std::string& text) {
        return NumberIn(text) > 0 ? "" : "it takes a number above 0, not " + text;
      },
      "POSITIVE");
  return above_zero;
}

void AddVerdict(CLI::App* app, Options* o) {
  app->add_flag("--allow-partial", o->allow_partial,
                "exit code 0, not 4, if all is well where evidence was there to judge it");
  app->add_flag("--strict", o->strict,
                "a broken SHOULD fails its case; without this it is a warning that is counted");
}

void AddSelection(CLI::App* app, Options* o) {
  app->add_option("--profile", o->profile,
                  "smoke, core (every pair of knob values), full (every triple), reshard (saved "
                  "under one configuration, loaded under another), crash (killed while it saves; "
                  "sim) or oom (allocations without device memory; sim)")
      ->check(CLI::IsMember({"smoke", "core", "full", "reshard", "crash", "oom"}))
      ->capture_default_str();
  app->add_option("--case", o->cases,
                  "judge this case instead of a profile (may be given several times)");
  app->add_option("--select", o->select,
                  "of the profile, cases whose id matches this glob (* and ?; may be given several "
                  "times)");
  app->add_option("--exclude", o->exclude, "of the profile, no case whose id matches this glob");
  app->add_option("--shard", o->shard,
                  "I/N: every N-th case of the profile from the I-th on, for N machines");
  app->add_option("--supports", o->supports,
                  "TOML file of what the engine takes (shardproof probe writes it): core and full "
                  "combine these values; one that the engine declines turns the run red");
  app->add_option("--fabric", o->fabric,
                  "sim: all ranks in this process. dry: each rank alone, up to 16384 of them, no "
                  "numbers. mpi: under mpirun, one process a rank. "
                  "nccl: CUDA and NCCL, ranks started here or given by a launcher")
      ->check(CLI::IsMember(FabricNames()))
      ->capture_default_str();
  app->add_option("--ranks", o->ranks,
                  "nccl: processes to start here, on the GPUs of this machine (default: 2)")
      ->check(CLI::Range(1, 64));
  app->add_option("--seed", o->seed, "seed of cases and timings")->capture_default_str();
}

void AddEngine(CLI::App* app, Options* o) {
  app->add_option(
         "--impl", o->impl,
         "engine: builtin:reference or lib:PATH[:args]; run also takes trace:DIR, as check does")
      ->capture_default_str();
  app->add_option("--timing", o->timing,
                  "sim: what runs first: eager (all as soon as it can), lazy-comm (communication "
                  "last), lazy-compute (compute last), random, pct (random priorities); default: "
                  "one of these, by seed and case");
  app->add_option("--queues", o->queues,
                  "sim: hardware queues that the streams of a rank share, each served strictly in "
                  "the order of issue (0: one for each stream)")
      ->check(FromZero())
      ->capture_default_str();
  app->add_option("--level", o->level,
                  "what is recorded: off (nothing can be judged), order (no numbers), digests (of "
                  "values read; published values) or bytes (also the values read)")
      ->check(CLI::IsMember({"off", "order", "digests", "bytes"}))
      ->capture_default_str();
  app->add_option(
      "--fault", o->fault,
      "plant one wrong service call, for example event_wait:3:drop@1, or a knob that the "
      "engine reads and ignores: knob:recompute:ignore; one that never strikes turns the run red");
  app->add_option("--trace", o->trace, "write the traces of every case below this folder")
      ->check(WhyNoFolderThere, "FOLDER");
  app->add_option(
         "--stall-seconds", o->stall_seconds,
         "a run without progress for this long counts as hung (sim sees deadlocks at once)")
      ->check(AboveZero())
      ->capture_default_str();
  app->add_option("--case-seconds", o->case_seconds,
                  "nccl: a case that has not ended after so long is ended")
      ->check(AboveZero())
      ->capture_default_str();
  app->add_option("--gemm", o->gemm,
                  "nccl: units that compute products, fp32, tf32 or bf16; all give the same bits")
      ->check(CLI::IsMember({"fp32", "tf32", "bf16"}))
      ->capture_default_str();
}

void AddDisplay(CLI::App* app, Options* o) {
  app->add_option("--color", o->color,
                  "colours: auto (on a terminal without NO_COLOR), always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  app->add_flag("--all", o->all_findings,
                "tell every finding in full, those too that follow from another one");
}

}  // namespace shardproof
