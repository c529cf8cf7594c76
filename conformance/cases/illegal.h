// illegal.h: which combinations must an engine refuse?
//
// Each rule is something that an engine can see on every rank from its knobs and groups alone,
// before any collective (requirement GE-20: rejected on ALL ranks, nobody left
// hanging).
#pragma once
#include <string>
#include <vector>

#include "conformance/cases/case.h"

namespace shardproof {

struct IllegalRule {
  std::string name;  // short, for lists and tests
  // What is wrong with the instance, naming fields and values; empty: nothing. REQUIRES: span is
  // set.
  std::string (*broken)(const InstanceSpec& spec, int32_t world);
};

std::vector<IllegalRule> IllegalRules();
// The last of them: pipelines, and schedules that hide all-to-alls (illegal_schedule.cc).
std::vector<IllegalRule> IllegalScheduleRules();
// Part of them: Muon's words, numbers, and combinations that do not orthogonalise (muon.cc).
std::vector<IllegalRule> IllegalMuonRules();
// Part of them: layer-wise engines (layer_wise.cc).
std::vector<IllegalRule> IllegalLayerWiseRules();

// Text of the first broken rule, empty if none. *rule, if given, is its name.
std::string IllegalText(const InstanceSpec& spec, int32_t world, std::string* rule = nullptr);

// What rules say of a word that is none of the known ones; empty: it is one.
std::string UnknownWord(const std::string& knob, const std::string& word,
                        const std::vector<std::string>& known);

}  // namespace shardproof
