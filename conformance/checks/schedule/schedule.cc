#include "conformance/checks/schedule/schedule.h"

#include <string_view>

#include "conformance/checks/cite.h"

namespace shardproof {

namespace {

bool Asked(const InstanceSpec& spec) { return spec.overlap_moe || spec.model.moe.experts > 0; }

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
         spec.model.moe.layers != "all" || !spec.recompute_modules.empty() || spec.loss_scale_log2 != 0;
}

// There is a scale to apply.
bool Scaled(const InstanceSpec& spec) {
  return spec.loss_scale_log2 != 0 || spec.model.moe.z_loss || spec.model.moe.aux_loss;
}

}  // namespace

CheckResult CheckSchedule(const Analysis& a) {
  CheckResult result;
  if (!a.has_case() || !a.legal()) return result;
  bool asked = false;
  for (size_t i = 0; i < a.n_instances(); ++i) asked |= Asked(a.Facts(i).spec());
  if (!asked) return result;
  for (const Trace& trace : a.traces()) {
    if (trace.provides.work && trace.provides.calls && trace.provides.collectives) continue;
    CannotJudge(result, {"EP-01", "EP-02", "EP-03", "EP-04", "EP-05", "EP-25", "EP-26"},
                "rank " + std::to_string(trace.rank) + "'s trace lacks work, calls or collectives");
    return result;
  }
  const schedule::Facts facts(a);
  result.Merge(CheckGolden(facts));
  result.Merge(CheckExchanges(facts));
  bool overlaps = false;
  for (size_t i = 0; i < a.n_instances(); ++i) overlaps |= facts.Overlaps(i);
  if (!overlaps) return result;
  result.Merge(CheckUnits(facts));
  result.Merge(CheckGradients(facts));
  result.Merge(CheckActivations(facts));
  schedule::Ordering ordering(a);
  result.Merge(CheckHiding(facts, ordering));
  result.Merge(CheckBuffers(facts, ordering));
  return result;
}

CheckResult CiteForSchedule(const Analysis& a, const CheckResult& result) {
  CheckResult cited;
  if (a.run().spec == nullptr) return cited;
  bool asked = false, overlap = false, varied = false, scaled = false, options = false;
  for (const InstanceSpec& spec : a.run().spec->instances) {
    asked |= Asked(spec);
    overlap |= spec.overlap_moe;
    varied |= Varied(spec);
    scaled |= Scaled(spec);
    options |= Options(spec);
  }
  for (const Cited& row : CitedRows()) {
    if (!asked && !(options && std::string_view(row.id) == "EP-37")) continue;
    if (row.only_overlap && !overlap) continue;
    if (std::string_view(row.id) == "EP-31" && !varied) continue;
    if (std::string_view(row.id) == "EP-32" && !scaled) continue;
    Cite({row.id, row.rows}, result, "with expert parallelism", cited);
  }
  return cited;
}

}  // namespace shardproof
