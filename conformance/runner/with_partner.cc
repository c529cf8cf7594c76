#include "conformance/runner/with_partner.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "conformance/checks/metamorphic/metamorphic.h"
#include "conformance/checks/robustness/answers.h"

namespace shardproof {

namespace {

// Whether the oracle has other gradients, weights, losses or norms.
bool OfResults(const Finding& finding) {
  const std::string& id = finding.requirement;
  return id == "FS-15" || id == "FS-16" || id == "FS-17" || id == "FS-24" || id == "FS-25";
}

// Which of two runs that differ is wrong: nothing was found in the first one.
std::string WhoIsWrong(const PartnerRun& other) {
  const CheckResult found = JudgeRun(other.partner->spec, other.run).result;
  const std::set<std::string> warnings = WarningsOf(found);
  std::vector<const Finding*> broken;
  for (const Finding& finding : found.findings) {
    if (!warnings.contains(finding.requirement)) broken.push_back(&finding);
  }
  const std::string sound = "Nothing was found in this case's run by itself";
  if (broken.empty()) return sound + ", nor with the other one by itself: one of the two is wrong";
  const Finding& first = *broken.front();
  const bool results = std::any_of(broken.begin(), broken.end(),
                                   [](const Finding* finding) { return OfResults(*finding); });
  std::string text =
      sound + (results ? "; the other one is wrong: it breaks " : "; the other one breaks ") +
      first.requirement;
  if (first.rank >= 0) text += " on rank " + std::to_string(first.rank);
  if (first.event >= 0) text += " in event " + std::to_string(first.event);
  return text + (results ? ", and its results are not the oracle's" : ", which may be why");
}

// The case run again: it may even have had the same timing.
void NameAgain(bool ended, CheckResult& result) {
  for (Finding& finding : result.findings) {
    if (!ended) {
      finding.expected += ", in this run";
      finding.seen += ", in the other";
    }
    finding.message +=
        "; the other run is the same case run again: times of events are drawn anew and addresses "
        "may differ, and nothing may depend on these, on clocks or on memory that nobody set";
  }
}

void NamePartner(const PartnerRun& other, bool ended, CheckResult& result) {
  if (result.findings.empty()) return;
  const Partner& partner = *other.partner;
  const std::string id = Id(partner.spec);
  const std::string wrong = ended ? "" : ". " + WhoIsWrong(other);
  for (Finding& finding : result.findings) {
    if (!ended) {
      finding.expected += ", as in this case";
      finding.seen += ", in " + id;
    }
    finding.message += "; the other run is " + id + ", this case " + partner.why + wrong;
  }
}

}  // namespace

CheckResult CompareWithPartner(const Run& run, const PartnerRun& other) {
  const Partner& partner = *other.partner;
  CheckResult result;
  std::string ignored;
  if (Declines(other.run, &ignored)) {
    result.not_checkable.push_back({partner.requirement,
                                    "the engine does not support the case " + partner.why,
                                    NotCheckable::Kind::kNotAsked});
    return result;
  }
  const auto ended = EndedBadly(other.run, partner.requirement);
  if (ended) {
    result.findings.push_back(*ended);
  } else {
    result = CompareResults(run, other.run, partner.requirement);
    if (partner.sequences) {
      result.Merge(CompareCollectiveSequences(
          run, other.run, partner.requirement,
          partner.requirement == "PG-08" ? TwinAsReducingGroup : CommLabel()));
    }
  }
  if (partner.new_timing) {
    NameAgain(ended.has_value(), result);
  } else {
    NamePartner(other, ended.has_value(), result);
  }
  if (result.judged.empty() && result.findings.empty() && result.not_checkable.empty()) {
    const auto& specs = partner.spec.instances;
    const bool trains = std::any_of(specs.begin(), specs.end(), [](const InstanceSpec& spec) {
      return spec.script.find('t') != std::string::npos;
    });
    result.not_checkable.push_back(
        {partner.requirement,
         trains ? "the two runs have no results in common" : "no step trains: nothing to compare",
         trains ? NotCheckable::Kind::kMissing : NotCheckable::Kind::kNotAsked});
  }
  return result;
}

}  // namespace shardproof
