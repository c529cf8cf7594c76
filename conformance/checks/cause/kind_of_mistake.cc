#include "conformance/checks/cause/kind_of_mistake.h"

namespace shardproof::cause {

namespace {

struct Row {
  Kind kind;
  bool by_bytes;
  std::string_view ids;  // where several are found at one event, the first says most
};

constexpr Row kRows[] = {
    {Kind::kAnswers, false, "GE-20 GE-21 GE-22 GE-23 GE-24 PG-16 EP-37 LW-37"},
    {Kind::kFailures, false, "GE-25 GE-26 GE-27"},
    {Kind::kMatching, false,
     "EP-26 GE-01 EP-35 LW-15 EP-25 GE-02 GE-08 GE-09 GE-15 GE-16 PG-01 PG-02 PG-03 "
     "PG-04 PG-05 PG-06 PG-13"},
    {Kind::kSynchronisation, true, "FS-36 FS-42"},
    // What does not overlap at all needs no stream of its own: KN-08 says why EP-05 is broken.
    {Kind::kSynchronisation, false,
     "KN-08 EP-05 EP-06 EP-12 EP-19 EP-24 LW-17 LW-23 GE-03 GE-04 GE-10 GE-42 EP-34 GE-05 GE-06 "
     "GE-11 GE-07 GE-41"},
    {Kind::kLifetime, false, "EP-07 LW-24 LW-25 GE-17 GE-18 GE-19"},
    {Kind::kLifetime, true,
     "KN-15 "
     "EP-09 EP-10 EP-11 EP-13 EP-14 EP-15 EP-16 EP-17 EP-36 LW-35 LW-10 LW-11 LW-12 LW-18 LW-19 "
     "LW-22 "
     "FS-50 "
     "FS-02 KN-16 FS-03 FS-09 FS-13 FS-14 FS-23 FS-39 FS-43 GE-38"},
    {Kind::kStructure, false,
     "BU-01 BU-05 EP-01 EP-02 EP-03 EP-04 EP-20 EP-29 EP-38 LW-16 LW-21 LW-28 LW-29 LW-32 LW-34 "
     "FS-04 "
     "FS-46 FS-48 "
     "FS-06 FS-07 FS-26 FS-38 PG-07 PG-14 PG-15 PG-17 GE-28"},
    {Kind::kStructure, true,
     "CP-03 CP-01 CP-02 TP-03 TP-01 TP-02 TP-10 TP-11 TP-08 TP-04 TP-09 TP-07 EP-18 EP-21 LW-01 "
     "LW-02 LW-03 "
     "LW-05 LW-06 LW-07 "
     "LW-08 LW-13 "
     "LW-14 "
     "FS-37 FS-05 EP-23 LW-27 "
     "FS-08 FS-10 FS-11 FS-12 FS-19 FS-21 FS-22 FS-29 FS-30 FS-34 FS-35 PG-09 PG-10 PG-11 "
     "PG-18"},
    {Kind::kHiding, false, "EP-33 LW-38 GE-12 GE-13 GE-14 FS-44 FS-45 BU-07"},
    {Kind::kTotals, false,
     "LW-04 EP-08 FS-47 FS-49 FS-31 FS-32 FS-33 GE-37 GE-39 GE-40 BU-02 BU-03 BU-04"},
    {Kind::kTotals, true, "BU-06"},
    // Routers choose other rows once weights are wrong: EP-27 and EP-28 speak first if they come
    // first.
    {Kind::kNumbers, true,
     "TP-06 EP-27 EP-28 FS-17 EP-32 FS-15 FS-16 FS-18 FS-20 TP-05 FS-24 FS-25 EP-22 EP-30 EP-31 "
     "LW-09 LW-20 "
     "LW-26 LW-30 "
     "LW-31 LW-33 LW-36 FS-01 FS-27 FS-28 FS-40 FS-41 GE-29 GE-30 GE-31 GE-32 GE-33 GE-34 "
     "PG-08 PG-12"},
};

}  // namespace

std::optional<Traits> TraitsInTable(std::string_view requirement) {
  int order = 0;
  for (const Row& row : kRows) {
    // Every id has five characters, and one blank is between two.
    for (size_t at = 0; at < row.ids.size(); at += 6, ++order) {
      if (row.ids.substr(at, 5) == requirement) return Traits{row.kind, row.by_bytes, order};
    }
  }
  // What a knob asks for: which work is issued, and where. No row of these brings about another.
  if (requirement.starts_with("KN-")) return Traits{Kind::kStructure, false, order};
  return std::nullopt;
}

Traits TraitsOf(std::string_view requirement) {
  return TraitsInTable(requirement).value_or(Traits{});
}

bool CountsWhatIsCarried(std::string_view requirement) {
  return requirement == "BU-01" || requirement == "BU-04";
}

}  // namespace shardproof::cause
