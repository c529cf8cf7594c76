// generators.h: how is a random case drawn, so that it shrinks towards the simplest one?
#pragma once
#include <rapidcheck.h>

#include <memory>
#include <string>

#include "conformance/cases/layer_wise_space.h"
#include "conformance/cases/pipeline_space.h"
#include "conformance/cases/schedule_space.h"
#include "conformance/cases/space.h"

namespace shardproof {

// Allowed rows of the space. A row shrinks by setting one factor to a smaller value; value 0 is a
// knob's default, or the smallest world.
rc::Gen<CoveringRow> GenRow(std::shared_ptr<const CaseSpace> space);

// Rows as they are run: legal cases with one instance, shrunk with their rows, shown as ids.
struct GeneratedCase {
  CoveringRow row;
  Case spec;
};
std::ostream& operator<<(std::ostream& out, const GeneratedCase& generated);
rc::Gen<GeneratedCase> GenCase(std::shared_ptr<const CaseSpace> space);
rc::Gen<GeneratedCase> GenCase(std::shared_ptr<const ScheduleSpace> space);
rc::Gen<GeneratedCase> GenCase(std::shared_ptr<const LayerWiseSpace> space);
rc::Gen<GeneratedCase> GenCase(std::shared_ptr<const PipelineSpace> space);

// Scripts of at most this many entry calls, in any order that makes sense: what is loaded was
// saved.
rc::Gen<std::string> GenScript(int calls);

// Something that any of the fields of an instance may be, legal or not.
rc::Gen<Case> GenAnyCase();

}  // namespace shardproof
