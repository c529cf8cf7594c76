#include "conformance/runner/replay_line.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>

#include "conformance/runner/fabric_row.h"

namespace shardproof {

namespace {

// A name without a slash is found along PATH, from any folder.
std::string FromTheRoot(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

std::string Program(const Options& options) {
  const std::string& called = options.program;
  if (called.empty()) return "shardproof";
  return ShellWord(called.find('/') == std::string::npos ? called : FromTheRoot(called));
}

// lib:PATH[:args], the path as the plug-in is looked for.
std::string Address(const std::string& impl) {
  constexpr std::string_view kLibrary = "lib:";
  if (!impl.starts_with(kLibrary)) return ShellWord(impl);
  const size_t end = impl.find(':', kLibrary.size());
  const std::string path = impl.substr(kLibrary.size(), end - kLibrary.size());
  return ShellWord(std::string(kLibrary) + FromTheRoot(path) +
                   (end == std::string::npos ? "" : impl.substr(end)));
}

std::string FabricOptions(const Options& options) {
  std::string line = " --fabric " + options.fabric;
  if (FabricNamed(options.fabric).starts_ranks)
    line += " --ranks " + std::to_string(options.ranks) + " --gemm " + options.gemm;
  return line;
}

std::string Launcher(const Options& options) {
  return options.fabric == "mpi" ? "mpirun -n " + std::to_string(options.ranks) + " " : "";
}

// What makes a run of the case this one, but for the fabric.
std::string SameRun(const Options& options, const std::string& case_id) {
  std::string line = " --impl " + Address(options.impl) + " --case " + ShellWord(case_id) +
                     " --seed " + std::to_string(options.seed);
  if (!options.timing.empty()) line += " --timing " + options.timing;
  if (options.queues > 0) line += " --queues " + std::to_string(options.queues);
  if (!options.fault.empty()) line += " --fault " + ShellWord(options.fault);
  if (options.strict) line += " --strict";
  return line;
}

}  // namespace

std::string ShellWord(std::string_view text) {
  bool plain = !text.empty();
  for (const char c : text)
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                      std::string_view("_-+=.,/:@%").find(c) != std::string_view::npos);
  if (plain) return std::string(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

std::string ReplayLine(const Options& options, const std::string& case_id) {
  const bool replays = FabricNamed(options.fabric).replays;
  const std::string line = Launcher(options) + Program(options) +
                           (replays ? " replay" : " run --verbose") + SameRun(options, case_id);
  return replays ? line : line + FabricOptions(options);
}

std::string ShrinkLine(const Options& options, const std::string& case_id) {
  if (!FabricNamed(options.fabric).replays) return "";
  return Program(options) + " shrink" + SameRun(options, case_id);
}

std::string StepLine(const Options& options, const std::string& case_id) {
  return Program(options) + " replay --step" + SameRun(options, case_id) + " --around " +
         std::to_string(options.view.around) + " --rank " +
         std::to_string(std::max(options.view.rank, 0));
}

std::string ReplayLineOfProbe(const Options& options) {
  return Program(options) + " run --verbose --impl " + Address(options.impl) + " --profile smoke";
}

std::string CheckLine(const Options& options, const std::string& kind, const std::string& folder) {
  return Program(options) + " check " + ShellWord(kind + ":" + FromTheRoot(folder));
}

std::string RecordAgainLine(const Options& options, const std::string& case_id) {
  return options.recorded_by + " " + ShellWord(case_id);
}

}  // namespace shardproof
