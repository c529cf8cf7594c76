// requirement_ids.h: which requirements do the graph checks judge? Their sentences are in
// requirements/graph.toml.
#pragma once

namespace shardproof::graph {

constexpr char kSameSequence[] = "GE-01";
constexpr char kCountsAgree[] = "GE-02";
constexpr char kNoCycle[] = "GE-03";
constexpr char kNoCycleSerial[] = "GE-04";
constexpr char kNoDeviceRace[] = "GE-05";
constexpr char kNoHostRace[] = "GE-06";
constexpr char kWaitAfterRecord[] = "GE-07";
constexpr char kGroupsCreatedAlike[] = "GE-08";
constexpr char kMessagesPair[] = "GE-09";
constexpr char kNoCycleOneQueue[] = "GE-10";
constexpr char kNoLifetimeRace[] = "GE-11";
constexpr char kGathersHide[] = "GE-12";
constexpr char kReductionsHide[] = "GE-13";
constexpr char kTwinProgress[] = "GE-14";
constexpr char kOneInFlight[] = "GE-41";
constexpr char kNoCycleAsked[] = "GE-42";
constexpr char kRegisteredAlike[] = "GE-15";
constexpr char kRegisteredTogether[] = "GE-16";
constexpr char kRegisteredWhileLive[] = "GE-17";

}  // namespace shardproof::graph
