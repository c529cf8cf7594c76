// cut_save.h: what may a load answer to a checkpoint whose save was cut short?
//
// GE-39. It loads, and then it is the state that was being saved (which is judged as every load
// is); or every rank refuses it, with words, none of them hanging, ending or going on.
#pragma once
#include <string>

#include "conformance/checks/base/check.h"

namespace shardproof {

inline constexpr const char* kCutSave = "GE-39";

enum class LoadAnswer { kTaken, kRefused, kNeither };

// Of a run whose first entry call after create is a load.
LoadAnswer AnswerToCutSave(const Run& run);

// Whether a run took it, or refused what may be refused; at most one finding. moment: of the cut,
// in words. complete: every rank had returned from the save before.
CheckResult JudgeCutSave(const Run& run, const std::string& moment, bool complete);

// What is wrong with what was loaded, given what judging that as a load has found.
// before: what was loaded is an earlier checkpoint, since the cut one was refused.
Finding LoadedWrong(const Finding& found, const std::string& moment, bool before);

}  // namespace shardproof
