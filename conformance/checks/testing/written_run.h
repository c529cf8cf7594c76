// written_run.h: how do traces that a test writes itself, rank by rank, become a run?
#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "conformance/checks/base/check.h"
#include "conformance/checks/base/facts.h"

namespace shardproof {

struct WrittenRun {
  std::unique_ptr<Case> spec;
  Run run;  // points to spec
};

using TraceWriter = std::function<Trace(const Case&, const InstanceFacts&, int32_t rank)>;

inline WrittenRun WriteRun(Case c, const TraceWriter& write) {
  WrittenRun made;
  made.spec = std::make_unique<Case>(std::move(c));
  const InstanceFacts facts(made.spec->instances[0], made.spec->world);
  made.run.spec = made.spec.get();
  for (int32_t rank = 0; rank < made.spec->world; ++rank)
    made.run.traces.push_back(write(*made.spec, facts, rank));
  made.run.outcomes.resize(size_t(made.spec->world));
  return made;
}

}  // namespace shardproof
