#include "reference/plan/print.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "reference/core/at.h"

namespace reference {
namespace {

std::string GroupName(const PlanFacts& facts, int32_t group) {
  const BucketGroup& of = At(facts.buckets.groups, group);
  if (of.unit != kNoUnit) {
    const std::string name = facts.model.modules[facts.ModuleOf(of.unit)].name;
    return name + (of.expert ? " experts" : "") + (of.for_backward ? " for backward" : "");
  }
  const std::vector<ParamShape>& params = At(facts.buckets.buckets, of.buckets.front()).params;
  std::string first = facts.model.params[params.front().param].name;
  if (first.ends_with(".weight")) first.resize(first.size() - 7);
  return params.size() == 1 ? first : first + " +" + std::to_string(params.size() - 1);
}

// By spf_hook.
constexpr const char* kHooks[] = {"",
                                  "forward",
                                  "pre_forward",
                                  "register_backward",
                                  "post_forward",
                                  "root_pre_backward",
                                  "pre_backward",
                                  "post_backward",
                                  "accumulate",
                                  "root_post_backward",
                                  "finish_grad_sync",
                                  "install_weights",
                                  "start_param_sync",
                                  "zero_grad",
                                  "optimizer_step"};

// Of steps that need no more than their bucket group, if they have one.
constexpr std::pair<Do, const char*> kWords[] = {
    {Do::kZeroGrads, "compute zero     gradients"},
    {Do::kUpdate, "compute update   norm, clip, optimizer"},
    {Do::kInstall, "compute install  weights"},
    {Do::kGather, "gather  gather   "},
    {Do::kNeed, "compute need     "},
    {Do::kReshard, "compute reshard  "},
    {Do::kBegin, "compute begin    "},
    {Do::kFold, "compute fold     "},
    {Do::kReduced, "compute reduced  "}};

// Forward, backward, or the half of it that makes weight gradients.
std::string Direction(const Operation& operation) {
  if (operation.phase == SPF_WGRAD) return " dW";
  return operation.phase == SPF_FWD && !operation.recompute ? " f" : " b";
}

// The unit, or outside units what lies right below the root.
std::string Where(const PlanFacts& facts, const Step& run) {
  int32_t module = run.operation.node->module;
  const int32_t unit = facts.UnitOf(module);
  while (unit == kNoUnit && facts.model.modules[module].parent > 0)
    module = facts.model.modules[module].parent;
  const std::string name =
      facts.model.modules[unit == kNoUnit ? module : facts.ModuleOf(unit)].name;
  return *run.schedule_node == 0 ? name : name + " " + run.schedule_node;
}

std::string Messages(const Step& transfer) {
  std::string text;
  for (const auto& [message, values] : transfer.messages) {
    text += std::string(text.empty() ? "" : ", ") + (message.send ? "send " : "receive ") +
            (message.backward ? "gradients" : "values") + " of m" +
            std::to_string(message.pass.microbatch) + (message.send ? " to " : " from ") +
            std::to_string(message.peer);
  }
  return text;
}

struct Row {
  std::string microbatch, what, stream;
  std::vector<std::string> before, after;
};

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

class Table {
 public:
  explicit Table(const PlanFacts& facts) : facts_(facts) {}

  void Add(const Step& step) {
    switch (step.what) {
      case Do::kGather:
        return before_.push_back("gather " + GroupName(facts_, step.group) + kAhead);
      case Do::kNeed:
        return Need(GroupName(facts_, step.group));
      case Do::kReduced:
        return before_.push_back("reduced " + GroupName(facts_, step.group));
      case Do::kRelease:
        return facts_.config.LayerWise()
                   ? before_.push_back("publish " + GroupName(facts_, step.group))
                   : After("release " + GroupName(facts_, step.group));
      case Do::kReduce:
        return After("reduce " + GroupName(facts_, step.group) + (step.last ? " (last)" : ""));
      case Do::kReshard:
        return After("keep a part of " + GroupName(facts_, step.group));
      case Do::kRun:
        return Run(step);
      case Do::kZeroGrads:
        return Open({"", "zero gradients", "compute", {}, {}});
      case Do::kUpdate:
        return Open({"", "norm, clip, update", "compute", {}, {}});
      case Do::kInstall:
        return Open({"", "install weights", "compute", {}, {}});
      case Do::kTransfer:
        return step.messages.empty() ? void() : Open({"", Messages(step), "pipeline", {}, {}});
      case Do::kMark:
      case Do::kBegin:
      case Do::kFold:
        return;
      default:
        together_ = false;
    }
  }

  std::string Text() {
    if (!before_.empty()) Open({"", "", "", {}, {}});
    size_t width = 0;
    for (const Row& row : rows_) width = std::max(width, row.what.size());
    std::ostringstream out;
    for (const Row& row : rows_) {
      std::string line = row.microbatch;
      line.resize(6, ' ');
      line += row.what + std::string(width + 2 - row.what.size(), ' ') + row.stream;
      line.resize(width + 16, ' ');
      if (!row.before.empty()) line += Joined(row.before);
      if (!row.after.empty())
        line += (row.before.empty() ? "then " : "; then ") + Joined(row.after);
      line.erase(line.find_last_not_of(' ') + 1);
      out << line << "\n";
    }
    return out.str();
  }

 private:
  static constexpr const char* kAhead = " (ahead)";

  void Need(const std::string& group) {
    const auto here = std::find(before_.begin(), before_.end(), "gather " + group + kAhead);
    if (here == before_.end()) return before_.push_back("need " + group);
    here->resize(here->size() - std::string(kAhead).size());
  }
  void Run(const Step& run) {
    const Row row{"m" + std::to_string(run.of.microbatch) + Direction(run.operation),
                  Where(facts_, run),
                  run.on_a2a ? "a2a" : "compute",
                  {},
                  {}};
    const bool same = !rows_.empty() && rows_.back().microbatch == row.microbatch &&
                      rows_.back().what == row.what && rows_.back().stream == row.stream;
    if (!same || !together_ || !before_.empty() || !rows_.back().after.empty()) Open(row);
    together_ = true;
  }
  void After(const std::string& what) { rows_.back().after.push_back(what); }
  void Open(Row row) {
    row.before = std::exchange(before_, {});
    rows_.push_back(std::move(row));
  }

  const PlanFacts& facts_;
  std::vector<Row> rows_;
  std::vector<std::string> before_;
  bool together_ = false;  // nothing has come between since the last operation
};

std::string StepText(const PlanFacts& facts, const Step& step) {
  const std::string group = step.group < 0 ? "" : GroupName(facts, step.group);
  for (const auto& [what, words] : kWords) {
    if (what == step.what) return words + group;
  }
  switch (step.what) {
    case Do::kMark:
      return std::string("        mark     ") + kHooks[step.hook] +
             (step.module > 0 ? std::string(" ") + facts.model.modules[step.module].name : "");
    case Do::kRelease:
      return (facts.config.LayerWise() ? "compute publish  " : "compute release  ") + group;
    case Do::kReduce:
      return "reduce  reduce   " + group + (step.last ? " (last)" : "");
    case Do::kRun:
      return std::string(step.on_a2a ? "a2a     " : "compute ") + "run      m" +
             std::to_string(step.of.microbatch) + " " + step.operation.node->name;
    case Do::kTransfer:
      return "pipeline transfer " + Messages(step);
    default:
      return "";
  }
}

}  // namespace

std::string PrintTable(const Plan& plan, const PlanFacts& facts) {
  Table table(facts);
  for (const Step& step : plan) table.Add(step);
  return table.Text();
}

std::string PrintSteps(const Plan& plan, const PlanFacts& facts) {
  std::ostringstream out;
  for (const Step& step : plan) out << StepText(facts, step) << "\n";
  return out.str();
}

}  // namespace reference
