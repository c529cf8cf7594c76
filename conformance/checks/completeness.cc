#include "conformance/checks/completeness.h"

#include <algorithm>
#include <initializer_list>

#include "conformance/checks/base/one_row.h"
#include "conformance/checks/base/reduces.h"
#include "conformance/checks/knobs/knobs.h"
#include "conformance/checks/loss_chunks/loss_chunks.h"
#include "conformance/checks/meta_init/meta_init.h"
#include "conformance/checks/tensor_parallel/tensor_parallel.h"

namespace shardproof {

namespace {

using Ids = std::initializer_list<const char*>;

// How ranks answer and end.
constexpr Ids kEnds = {"GE-21", "GE-23", "GE-24", "GE-25", "GE-26", "GE-27"};
// Order and memory of any program; GE-01 where ranks have something to say to each other.
constexpr Ids kProgram = {"GE-03", "GE-04", "GE-05", "GE-06", "GE-11"};
// Of any engine that trains, whatever its strategy, in a world of one too.
constexpr Ids kTraining = {"BU-07", "FS-01", "FS-02", "FS-05", "FS-14", "FS-15", "FS-17", "FS-20",
                           "FS-23", "FS-24", "FS-27", "FS-28", "FS-29", "FS-31", "FS-32", "FS-33",
                           "FS-34", "FS-35", "GE-28", "GE-29", "GE-30", "GE-31", "GE-33", "PG-02",
                           "PG-07", "PG-09", "PG-10", "PG-11", "PG-14", "PG-15", "PG-17", "PG-18"};
// Where gradients are summed over several ranks.
constexpr Ids kReducing = {"GE-01", "FS-21", "FS-30", "FS-36", "FS-37"};
constexpr Ids kLayerWise = {"LW-01", "LW-02", "LW-03", "LW-06", "LW-13", "LW-16", "LW-17", "LW-19"};

// One engine makes two steps of a kind: what a step keeps is seen in the second (BU-03).
bool Repeats(const InstanceSpec& spec) {
  std::string seen;  // by the engine that lives
  for (const ScriptCall& call : ExpandScript(spec)) {
    if (call.letter == 'd') seen.clear();
    if (call.letter != 't' && call.letter != 'e') continue;
    if (seen.find(call.letter) != std::string::npos) return true;
    seen += call.letter;
  }
  return false;
}

void Add(std::set<std::string>& to, Ids ids) { to.insert(ids.begin(), ids.end()); }

bool Calls(const Analysis& a, std::string_view name) {
  return std::any_of(a.traces().begin(), a.traces().end(), [&](const Trace& trace) {
    return std::any_of(trace.events.begin(), trace.events.end(), [&](const Event& event) {
      return event.kind == EventKind::kCallBegin && trace.Text(event.text) == name;
    });
  });
}

std::set<std::string> ShownByForeign(const Analysis& a) {
  std::set<std::string> ids = {"GE-25", "GE-26", "GE-27"};
  Add(ids, kProgram);
  if (a.ranks() > 1) ids.insert("GE-01");
  if (Calls(a, "create")) ids.insert("FS-33");  // judged when the engine is destroyed
  return ids;
}

bool AnyEvent(const Analysis& a) {
  return std::any_of(a.traces().begin(), a.traces().end(),
                     [](const Trace& trace) { return !trace.events.empty(); });
}

bool AnyRange(const Analysis& a) {
  return std::any_of(a.traces().begin(), a.traces().end(),
                     [](const Trace& trace) { return !trace.ranges.empty(); });
}

}  // namespace

std::set<std::string> ShownByEveryRun(const Analysis& a) {
  if (a.run().spec == nullptr) return ShownByForeign(a);
  std::set<std::string> ids;
  Add(ids, kEnds);
  if (!a.legal()) {
    ids.erase("GE-23");
    return ids;
  }
  bool trains = true;
  for (const InstanceSpec& spec : a.run().spec->instances) {
    if (spec.script.find('t') == std::string::npos) {
      trains = false;
      continue;
    }
    if (Repeats(spec)) ids.insert("BU-03");
    if (MostRanksOfAParameter(spec) > 1) Add(ids, kReducing);
    if (spec.strategy == ShardingStrategy::kLayerWise) Add(ids, kLayerWise);
  }
  for (size_t i = 0; i < a.n_instances(); ++i) {
    ids.merge(ShownWithTensorParallel(a.Facts(i)));
    ids.merge(ShownWithLossChunks(a.Facts(i)));
    ids.merge(ShownWithMetaInit(a.Facts(i)));
    ids.merge(ShownWithBackwardCopies(a.Facts(i)));
  }
  if (!trains) return ids;
  Add(ids, kProgram);
  Add(ids, kTraining);
  return ids;
}

void SettleWhatIsOpen(const Analysis& a, CheckResult& result) {
  SettleWhatIsOpen(Shows{AnyEvent(a), AnyRange(a), ShownByEveryRun(a)}, result);
}

void SettleWhatIsOpen(const Shows& shows, CheckResult& result) {
  std::vector<NotCheckable>& rows = result.not_checkable;
  if (!shows.any_range) {
    for (const char* id : {"GE-05", "GE-06", "GE-11"}) {
      if (result.judged.contains(id))
        rows.push_back({id, "no event names the bytes that it touches (key r)"});
    }
  }
  if (!shows.any_event) {
    for (const std::string& id : result.judged) rows.push_back({id, "the traces have no events"});
    result.judged.clear();
  }
  KeepOneRowEach(result);
  std::set<std::string> told = result.judged;
  for (const NotCheckable& row : rows) told.insert(row.requirement);
  for (const std::string& id : shows.due)
    if (told.insert(id).second) rows.push_back({id, "nothing in the run shows it"});
}

}  // namespace shardproof
