// starved.h: how may a run end in which an allocation was answered SPF_NO_MEMORY?
//
// GE-40. As if nothing had happened, since the engine released something and asked again (then it
// is judged as every run is); or with an error of the entry call on the rank that had no memory,
// by which every rank ends: none dies, hangs, or goes on with wrong values.
#pragma once
#include <string>

#include "conformance/checks/base/check.h"

namespace shardproof {

inline constexpr const char* kStarved = "GE-40";

enum class StarvedEnd { kEnded, kWentOn, kNeither };

// Whether an allocation of the rank was answered so at all.
bool WasStarved(const Run& run, int32_t rank);

// Of a run in which one allocation on that rank was answered so.
StarvedEnd EndOfStarved(const Run& run, int32_t rank);

// At most one finding. moment: which allocation, in words.
CheckResult JudgeStarved(const Run& run, int32_t rank, const std::string& moment);

// What is wrong with a run that went on, given what judging it as a run has found.
Finding WentOnWrong(const Finding& found, const std::string& moment);

}  // namespace shardproof
