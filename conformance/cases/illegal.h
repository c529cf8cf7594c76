// illegal.h: which combinations must an engine refuse?
//
// Each rule is something that an engine can see on every rank from its knobs and groups alone,
// before any collective (requirement GE-20: rejected on ALL ranks, nobody left
// hanging).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "conformance/cases/knob.h"

namespace shardproof {

struct IllegalRule {
  std::string name;  // short, for lists and tests
  // What is wrong with the instance, naming fields and values; empty: nothing. REQUIRES: span is
  // set.
  std::function<std::string(const InstanceSpec& spec, int32_t world)> broken;
  // The cases that ask engines to refuse it, as ids; each breaks this rule before any other.
  std::vector<std::string> asked;
};

// All of them. Of several that a case breaks, the first is what the case is illegal for.
const std::vector<IllegalRule>& IllegalRules();
// The last of them: pipelines, and schedules that hide all-to-alls (illegal_schedule.cc).
std::vector<IllegalRule> IllegalScheduleRules();
// What of an instance contradicts its owner of the order of collectives (knob schedule); empty:
// nothing (illegal_schedule.cc).
std::string CommScheduleProblem(const InstanceSpec& spec);
// Part of them: Muon's words, numbers, and combinations that do not orthogonalise (muon.cc).
std::vector<IllegalRule> IllegalMuonRules();
// Part of them: layer-wise engines (layer_wise.cc).
std::vector<IllegalRule> IllegalLayerWiseRules();

// The rule that the knob has none of its words: "strategy-word". Where the knob means nothing
// (Knob::only) any word will do.
IllegalRule WordRule(const std::string& name, const std::string& knob,
                     const std::vector<std::string>& asked);
// Whether the instance is one that knobs of this kind are for.
bool IsFor(For only, const InstanceSpec& spec);

// The cases that ask for what these rules refuse, in their order.
std::vector<Case> CasesThatAsk(const std::vector<IllegalRule>& rules);

// Text of the first broken rule, empty if none. *rule, if given, is its name.
std::string IllegalText(const InstanceSpec& spec, int32_t world, std::string* rule = nullptr);

}  // namespace shardproof
