// list, explain.
#include <cctype>
#include <iostream>
#include <string>
#include <vector>

#include "conformance/cases/knob_text.h"
#include "conformance/common/nearest.h"
#include "conformance/common/safe_text.h"
#include "conformance/requirements/explain.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/runner/selection.h"
#include "conformance/runner/support/fitted_run.h"
#include "conformance/runner/support/supports_file.h"

namespace shardproof {

int ListCommand(const Options& given) {
  Options options = given;  // as the run has them
  if (options.fabric == "nccl" && options.ranks == 0) options.ranks = kDefaultRanks;
  if (options.target == "requirements") {
    const Registry registry = Registry::Builtin();
    for (const Requirement& row : registry.all()) {
      std::cout << row.id << "  " << (row.level == RequirementLevel::kMust ? "MUST  " : "SHOULD")
                << "  " << row.text << "\n";
    }
    return 0;
  }
  if (options.target == "knobs" || options.target == "tokens") {
    std::cout << (options.target == "knobs" ? KnobLines() : TokenLines());
    return 0;
  }
  if (options.target == "values") {
    Spaces kept;
    std::cout << SupportsText(AllOf(FactorsUpTo(options.ranks, kept)), "an engine takes all of it");
    return 0;
  }
  std::vector<std::string> facts;
  const bool fitted = IsFitted(options);
  for (const Case& c :
       fitted ? FittedRun(options, options.ranks).Cases() : SelectCases(options, &facts)) {
    std::cout << Id(c);
    if (!c.illegal.empty()) std::cout << "  (illegal: " << c.illegal << ")";
    std::cout << "\n";
  }
  for (const std::string& fact : facts) std::cerr << fact << "\n";
  return 0;
}

int ExplainCommand(const Options& options) {
  const Registry registry = Registry::Builtin();
  std::string id = options.target;
  for (char& c : id) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const Requirement* row = registry.Find(id);
  if (row == nullptr) {
    std::vector<std::string> ids;
    for (const Requirement& each : registry.all()) ids.push_back(each.id);
    std::cerr << "shardproof: no requirement " << IndentedText(options.target)
              << "; `shardproof list requirements` lists them" << DidYouMean(id, ids) << "\n";
    return 3;
  }
  const Examples examples = Examples::Builtin();
  std::cout << ExplainText(*row, Glossary::Builtin(), examples.Find(id));
  return 0;
}

}  // namespace shardproof
