#include "conformance/checks/schedule/schedule.h"

#include <algorithm>
#include <exception>
#include <set>
#include <string_view>

#include "conformance/checks/base/cite.h"
#include "conformance/checks/schedule/asked.h"

namespace shardproof {

namespace {

// Options that may be illegal where nothing of the schedule is asked.
bool Options(const InstanceSpec& spec) {
  return spec.delay_wgrad || spec.early_release || spec.wrong_loss_scale != 0 || spec.chunks > 1;
}

// Which rows of other families speak for an EP row, and of which cases.
struct Cited {
  const char* id;
  std::vector<const char*> rows;
  bool only_overlap;
};

const std::vector<Cited>& CitedRows() {
  static const std::vector<Cited> rows = {
      {"EP-21", {"FS-11"}, true},
      {"EP-22", {"FS-16", "FS-17", "FS-20"}, false},
      {"EP-23", {"FS-05", "FS-18", "FS-22"}, false},
      {"EP-30", {"FS-15", "FS-24", "FS-41", "GE-29", "GE-30"}, false},
      {"EP-31", {"FS-15", "FS-24", "FS-41", "GE-29", "GE-30"}, true},
      {"EP-32", {"FS-17", "GE-29"}, false},
      {"EP-34", {"GE-03", "GE-04", "GE-10"}, false},
      {"EP-35", {"GE-01"}, false},
      {"EP-37", {"GE-20", "GE-21", "GE-23"}, false},
  };
  return rows;
}

// Options under which the schedule must give the same numbers.
bool Varied(const InstanceSpec& spec) {
  return spec.delay_wgrad || spec.early_release || spec.model.moe.shared || spec.model.mtp ||
         spec.model.moe.layers != "all" || !spec.recompute_modules.empty() ||
         spec.loss_scale_log2 != 0;
}

// There is a scale to apply.
bool Scaled(const InstanceSpec& spec) {
  return spec.loss_scale_log2 != 0 || spec.model.moe.z_loss || spec.model.moe.aux_loss;
}

// Without one of these it is not known to which schedule node an event belongs.
std::string Lacking(const Analysis& a) {
  if (!a.has_case()) return a.why();
  for (const Trace& trace : a.traces()) {
    const Provides& has = trace.provides;
    if (has.work && has.calls && has.collectives && has.memory) continue;
    return "rank " + std::to_string(trace.rank) +
           "'s trace lacks work, calls, collectives or memory";
  }
  return "";
}

std::set<std::string> AskedRows(const Analysis& a) {
  std::set<std::string> rows;
  const Case& spec = *a.run().spec;
  for (size_t i = 0; i < spec.instances.size(); ++i) {
    if (a.has_case()) {
      rows.merge(schedule::RowsAskedFor(a.Facts(i), spec.world));
      continue;
    }
    try {
      rows.merge(schedule::RowsAskedFor(InstanceFacts(spec.instances[i], spec.world), spec.world));
    } catch (const std::exception&) {
      // A model that cannot be built: the oracle and the other families say so.
    }
  }
  return rows;
}

// A row that one check could not judge is not judged, unless another one found something; a row
// that is asked for is judged or has a reason.
void Settle(const std::set<std::string>& asked, const std::string& why, CheckResult& result) {
  std::set<std::string> settled;
  for (const Finding& finding : result.findings) settled.insert(finding.requirement);
  std::erase_if(result.not_checkable,
                [&](const NotCheckable& row) { return !asked.contains(row.requirement); });
  for (const NotCheckable& row : result.not_checkable) {
    if (settled.insert(row.requirement).second) result.judged.erase(row.requirement);
  }
  settled.insert(result.judged.begin(), result.judged.end());
  for (const std::string& id : asked) {
    if (!settled.contains(id)) CannotJudge(result, {id.c_str()}, why);
  }
}

CheckResult CheckFacts(const Analysis& a, const schedule::Facts& facts) {
  CheckResult result;
  const bool known = facts.unknown().empty();
  if (known) {
    result.Merge(CheckGolden(facts));
    result.Merge(CheckExchanges(facts));
    result.Merge(CheckRouting(facts));
  } else {
    CannotJudge(result,
                {"EP-01", "EP-02", "EP-03", "EP-04", "EP-05", "EP-06", "EP-07", "EP-08", "EP-25",
                 "EP-26", "EP-27", "EP-28", "EP-29", "EP-33", "EP-36", "EP-38"},
                facts.unknown());
  }
  bool overlaps = false;
  for (size_t i = 0; i < a.n_instances(); ++i) overlaps |= facts.Overlaps(i);
  if (!overlaps) return result;
  result.Merge(CheckUnits(facts));
  result.Merge(CheckGradients(facts));
  if (known) result.Merge(CheckActivations(facts));
  const Ordering ordering(a);
  if (known) result.Merge(CheckHiding(facts, ordering));
  result.Merge(CheckBuffers(facts, ordering));
  return result;
}

}  // namespace

CheckResult CheckSchedule(const Analysis& a) {
  CheckResult result;
  if (a.run().spec == nullptr || !a.legal()) return result;
  const std::vector<InstanceSpec>& specs = a.run().spec->instances;
  if (std::none_of(specs.begin(), specs.end(), schedule::Asks)) return result;
  const std::set<std::string> asked = AskedRows(a);
  std::string why = Lacking(a);
  if (why.empty()) {
    const schedule::Facts facts(a);
    result = CheckFacts(a, facts);
    const auto ended = [](const schedule::Step& step) { return step.end >= 0; };
    const bool any = std::any_of(facts.steps().begin(), facts.steps().end(), ended);
    why = any ? "nothing in the run shows it" : "no step of the run ended well";
  }
  Settle(asked, why, result);
  return result;
}

CheckResult CiteForSchedule(const Analysis& a, const CheckResult& result) {
  CheckResult cited;
  if (a.run().spec == nullptr) return cited;
  bool asked = false, overlap = false, varied = false, scaled = false, options = false,
       trains = false;
  for (const InstanceSpec& spec : a.run().spec->instances) {
    asked |= schedule::Asks(spec);
    trains |= spec.script.find('t') != std::string::npos;
    overlap |= spec.overlap_moe;
    varied |= Varied(spec);
    scaled |= Scaled(spec);
    options |= Options(spec);
  }
  const std::string lacking = Lacking(a);
  for (const Cited& row : CitedRows()) {
    if (!asked && !(options && std::string_view(row.id) == "EP-37")) continue;
    if (row.only_overlap && !overlap) continue;
    if (std::string_view(row.id) == "EP-31" && !varied) continue;
    if (std::string_view(row.id) == "EP-32" && !scaled) continue;
    Cite({row.id, row.rows}, result, "with expert parallelism", cited);
    if (!a.legal() || !trains || cited.judged.contains(row.id)) continue;
    const bool told = std::any_of(cited.not_checkable.begin(), cited.not_checkable.end(),
                                  [&](const auto& one) { return one.requirement == row.id; });
    if (!told && !lacking.empty()) CannotJudge(cited, {row.id}, lacking);
  }
  return cited;
}

}  // namespace shardproof
