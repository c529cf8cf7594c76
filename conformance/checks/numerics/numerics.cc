#include "conformance/checks/numerics/numerics.h"

#include <algorithm>

#include "conformance/oracle/oracle.h"

namespace shardproof {

namespace {

bool NamesOnly(const Analysis& a) {
  return std::any_of(a.run().oracles.begin(), a.run().oracles.end(),
                     [](const OracleRun* oracle) { return oracle->names_only; });
}

// A publish without values says that something was published, not what; an oracle of names says
// what is due, not its values. Empty: both have values.
std::string WithoutValues(const Analysis& a) {
  if (NamesOnly(a)) return "no numbers are computed: only whether results are there is judged";
  bool some = false;  // values are recorded
  int32_t without = -1;
  for (const Trace& trace : a.traces()) {
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kPublish || event.count == 0) continue;
      some |= event.values >= 0;
      if (event.values < 0 && without < 0) without = trace.rank;
    }
  }
  if (without < 0) return "";
  return "rank " + std::to_string(without) + " publishes a result without values (key v): " +
         (some ? "others have some, so the run ended before these were there, or who recorded left "
                 "them out"
               : "record digests or bytes");
}

// A node that reads parameters without saying what it read. Empty: there is none.
std::string WithoutReads(const Analysis& a) {
  for (const Trace& trace : a.traces()) {
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kCompute || !event.reads.empty()) continue;
      const spf_uses& uses = a.Facts(event.instance).Node(event.id, trace.rank).uses[event.phase];
      const bool reads = std::any_of(uses.use, uses.use + uses.n,
                                     [](const spf_use& use) { return use.table == SPF_IN_PARAM; });
      if (reads)
        return "rank " + std::to_string(trace.rank) +
               " computes with parameters and says nothing of what it read (key rd): record "
               "digests";
    }
  }
  return "";
}

// Rows that ask for something that the case does not have.
bool Applies(const Analysis& a, const std::string& requirement) {
  for (size_t i = 0; i < a.n_instances(); ++i) {
    const InstanceFacts& facts = a.Facts(i);
    if (requirement == "GE-34" && facts.spec().skip_norm > 0) return true;
    for (int32_t key = 0; requirement == "FS-16" && key < facts.n_keys(); ++key) {
      if (facts.ByKey(key).expert) return true;
    }
  }
  return requirement != "GE-34" && requirement != "FS-16";
}

// Of results: whether they are there, and what they are.
constexpr std::initializer_list<const char*> kAll = {"FS-01", "FS-15", "FS-16", "FS-17", "FS-20",
                                                     "FS-23", "FS-24", "FS-25", "FS-28", "FS-34",
                                                     "GE-29", "GE-30", "GE-31", "GE-33", "GE-34"};
constexpr std::initializer_list<const char*> kOfValues = {"FS-01", "FS-15", "FS-16", "FS-17",
                                                          "FS-20", "FS-23", "FS-24", "FS-25",
                                                          "GE-30", "GE-33", "GE-34"};

CheckResult Judged(const Analysis& a) {
  CheckResult result;
  if (!a.has_case()) {
    NeedsCase(a, result, kAll);
    return result;
  }
  for (const Trace& trace : a.traces()) {
    if (trace.provides.results && trace.provides.calls) continue;
    CannotJudge(
        result, kAll,
        "rank " + std::to_string(trace.rank) + "'s trace has no results: record digests or bytes");
    return result;
  }
  if (a.run().oracles.size() != a.n_instances()) {
    CannotJudge(result, kAll, "the run comes without an oracle");
    return result;
  }
  result.Merge(CheckPublished(a));
  result.Merge(CheckScalars(a));
  const std::string no_values = WithoutValues(a);
  if (!NamesOnly(a)) result.Merge(CheckReads(a));
  if (!no_values.empty()) {
    for (const char* id : kOfValues) result.judged.erase(id);
    CannotJudge(result, kOfValues, no_values);
  }
  if (const std::string why = WithoutReads(a); !why.empty())
    CannotJudge(result, {"FS-01", "FS-23"}, why);
  return result;
}

}  // namespace

CheckResult CheckNumerics(const Analysis& a) {
  if (!a.legal()) return {};
  CheckResult result = Judged(a);
  std::erase_if(result.not_checkable, [&](const NotCheckable& row) {
    return a.has_case() && !Applies(a, row.requirement);
  });
  return result;
}

}  // namespace shardproof
