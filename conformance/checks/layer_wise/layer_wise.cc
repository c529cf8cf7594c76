#include "conformance/checks/layer_wise/layer_wise.h"

#include <algorithm>

#include "conformance/checks/base/cite.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

bool LayerWise(const InstanceSpec& spec) { return spec.strategy == ShardingStrategy::kLayerWise; }

bool Asks(const InstanceSpec& spec, bool (*of)(const InstanceSpec&)) {
  return LayerWise(spec) && of(spec);
}

// Rows of other families that speak for a row here, and of which cases.
struct Row {
  CitedRow cited;
  bool (*asked)(const InstanceSpec&);
};

bool Always(const InstanceSpec&) { return true; }

const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = {
      {{"LW-04", {"FS-31"}}, Always},
      {{"LW-06", {"FS-10"}}, Always},
      {{"LW-09", {"FS-15", "FS-16", "FS-24"}},
       [](const InstanceSpec& spec) { return spec.bucket_size > 0; }},
      {{"LW-15", {"GE-01", "GE-02"}}, Always},
      {{"LW-20", {"FS-15", "FS-24", "FS-41", "GE-30"}},
       [](const InstanceSpec& spec) {
         return spec.overlap_param_gather || !(spec.layer_wise == LayerWiseSpec{});
       }},
      {{"LW-26", {"FS-15", "FS-16", "FS-17"}}, Always},
      {{"LW-27", {"FS-05", "FS-36", "FS-37"}}, Always},
      {{"LW-29", {"FS-26"}}, [](const InstanceSpec& spec) { return spec.check_for_nan; }},
      {{"LW-30", {"FS-25"}}, Always},
      {{"LW-31", {"FS-24"}}, [](const InstanceSpec& spec) { return spec.clip_grad > 0; }},
      {{"LW-32", {"GE-33", "GE-34"}}, [](const InstanceSpec& spec) { return spec.skip_norm > 0; }},
      {{"LW-33", {"FS-24"}}, Always},
      {{"LW-36", {"FS-23", "FS-24", "GE-30"}},
       [](const InstanceSpec& spec) { return spec.script.find('l') != std::string::npos; }},
      {{"LW-37", {"GE-20", "GE-21", "GE-23"}}, Always},
  };
  return rows;
}

// On its rank its instance was loaded before.
bool AfterLoad(const Run& run, const Finding& finding) {
  if (finding.rank < 0 || finding.event < 0) return false;
  const Trace& trace = At(run.traces, finding.rank);
  const int32_t instance = At(trace.events, finding.event).instance;
  return std::any_of(trace.events.begin(), trace.events.begin() + finding.event,
                     [&](const Event& event) {
                       return event.kind == EventKind::kCallBegin && event.instance == instance &&
                              trace.Text(event.text) == "load";
                     });
}

// Without findings of rows that fail before anything was loaded: they say nothing of loads.
CheckResult OfLoads(const Run& run, const CheckResult& from) {
  std::set<std::string> before;
  for (const Finding& finding : from.findings) {
    if (finding.requirement != "FS-23" && !AfterLoad(run, finding))
      before.insert(finding.requirement);
  }
  CheckResult of_loads = from;
  std::erase_if(of_loads.findings,
                [&](const Finding& finding) { return before.contains(finding.requirement); });
  return of_loads;
}

// Options that mean nothing under another strategy, and are illegal there.
bool OnlyOptions(const InstanceSpec& spec) {
  return !LayerWise(spec) && !(spec.layer_wise == LayerWiseSpec{});
}

// Owners are who publishes: why they are not known; empty: they are.
std::string WithoutOwners(const Analysis& a) {
  for (const Trace& trace : a.traces()) {
    if (trace.provides.results && trace.provides.calls) continue;
    return "rank " + std::to_string(trace.rank) +
           "'s trace lacks results or calls, so owners are not known";
  }
  return "";
}

}  // namespace

CheckResult CheckLayerWise(const Analysis& a) {
  CheckResult result;
  if (a.run().spec == nullptr || !a.legal()) return result;
  const auto& instances = a.run().spec->instances;
  if (std::none_of(instances.begin(), instances.end(), LayerWise)) return result;
  if (!a.has_flow()) {
    NeedsCase(a, result,
              {"LW-01", "LW-02", "LW-03", "LW-04", "LW-05", "LW-06", "LW-07", "LW-08", "LW-10",
               "LW-11", "LW-12", "LW-13", "LW-14", "LW-16", "LW-17", "LW-18", "LW-19", "LW-21",
               "LW-22", "LW-23", "LW-24", "LW-25", "LW-28", "LW-32", "LW-34", "LW-35", "LW-38"});
    return result;
  }
  const layer_wise::Facts facts(a);
  result.Merge(CheckWire(facts));
  result.Merge(CheckSizes(facts));
  result.Merge(CheckInFlight(facts));
  if (const std::string lacking = WithoutOwners(a); lacking.empty()) {
    result.Merge(CheckOwnership(facts));
    result.Merge(CheckGathers(facts));
    result.Merge(CheckReads(facts));
    result.Merge(CheckBuffers(facts));
  } else {
    CannotJudge(result,
                {"LW-01", "LW-02", "LW-03", "LW-04", "LW-06", "LW-10", "LW-11", "LW-12", "LW-13",
                 "LW-18", "LW-19", "LW-22", "LW-23", "LW-25", "LW-32", "LW-34", "LW-35"},
                lacking);
  }
  result.Merge(CheckHidden(facts));
  return result;
}

CheckResult CiteForLayerWise(const Analysis& a, const CheckResult& result) {
  CheckResult cited;
  if (a.run().spec == nullptr) return cited;
  const auto& instances = a.run().spec->instances;
  for (const Row& row : Rows()) {
    const bool refusal = std::string_view(row.cited.id) == "LW-37";
    const bool asked =
        std::any_of(instances.begin(), instances.end(), [&](const InstanceSpec& spec) {
          return Asks(spec, row.asked) || (refusal && OnlyOptions(spec));
        });
    if (!asked) continue;
    const bool load = std::string_view(row.cited.id) == "LW-36";
    Cite(row.cited, load ? OfLoads(a.run(), result) : result,
         "with whole parameters dealt to ranks", cited);
  }
  return cited;
}

}  // namespace shardproof
